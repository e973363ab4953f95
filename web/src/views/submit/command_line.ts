// The command that submits a job as a specification says it.
import { toJson } from "@bufbuild/protobuf";
import type { InputFile } from "@gen/artifact_pb.js";
import type { CaptureSet } from "@gen/block_replay_pb.js";
import { type JobSpec, JobSpecSchema } from "@gen/job_pb.js";
import type { Layout } from "@gen/layout_pb.js";
import { layoutText } from "./layout.js";

const quoted = (text: string) => (/^[\w@%+=:,./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// A file given by its artifact was uploaded from somewhere only its owner knows.
const fileText = (file: InputFile | undefined) =>
  file?.source.case === "workerPath" ? `worker:${file.source.value}` : file?.source.case === "artifact" ? "FILE" : "";

class Words {
  private readonly words: string[];

  constructor(...words: string[]) {
    this.words = words;
  }

  flag(name: string, value: string | number | undefined) {
    if (value !== undefined && value !== "") this.words.push(`--${name}=${quoted(String(value))}`);
    return this;
  }

  set(name: string, on: boolean) {
    if (on) this.words.push(`--${name}`);
    return this;
  }

  layouts(layouts: readonly Layout[]) {
    const texts = layouts.map(layoutText);
    this.flag("layouts", texts.filter((text) => !text.includes(",")).join(","));
    for (const text of texts.filter((each) => each.includes(","))) this.flag("layout", text);
    return this;
  }

  captures(captures: CaptureSet | undefined) {
    this.flag("inputs", fileText(captures?.inputs)).flag("golden", fileText(captures?.golden));
    for (const [name, file] of Object.entries(captures?.providers ?? {})) this.flag("provider", `${name}=${fileText(file)}`);
    return this.flag("candidate", fileText(captures?.candidate));
  }

  common(spec: JobSpec) {
    this.flag("composition", spec.composition).flag("inject", spec.inject);
    for (const [key, value] of Object.entries(spec.labels)) this.flag("label", `${key}=${value}`);
    if (spec.priority !== 0) this.flag("priority", spec.priority);
    return this;
  }

  toString() {
    return this.words.join(" ");
  }
}

export function commandLineOf(spec: JobSpec): string {
  const submit = (kind: string) => new Words("plumbline", "submit", kind).flag("checkpoint", spec.checkpoint);
  switch (spec.kind.case) {
    case "blockReplay": {
      const { block, layouts, backward, captures } = spec.kind.value;
      return String(
        submit("block-replay")
          .flag("block", block || undefined)
          .layouts(layouts)
          .set("backward", backward)
          .captures(captures)
          .common(spec),
      );
    }
    case "fullModel": {
      const { layouts, captures, providers, ruleSource, allowOtherDevice, ablation, keep } = spec.kind.value;
      const words = submit("full-model");
      for (const layout of layouts) words.flag("layout", layoutText(layout));
      words.captures(captures).flag("providers", providers.join(","));
      if (ruleSource.case === "freezeRule") words.flag("freeze-rule", "rule.json");
      if (ruleSource.case === "rule") words.flag("rule", fileText(ruleSource.value));
      for (const name of keep) words.flag("keep", name);
      return String(words.set("allow-other-device", allowOtherDevice).set("ablation", ablation).common(spec));
    }
    case "sweep": {
      const { block, layouts, seeds, swapEachNode } = spec.kind.value;
      const words = submit("sweep")
        .flag("block", block || undefined)
        .layouts(layouts)
        .flag("seeds", seeds.join(","));
      return String(words.flag("swap", swapEachNode ? "each-node" : undefined).common(spec));
    }
    case "generation": {
      const { seeds, conditioning, noise, authorisation, against, verifyLastStep, latentsOnly } = spec.kind.value;
      const words = submit("generation")
        .flag("contract", "contract.json")
        .flag("conditioning", fileText(conditioning))
        .flag("seeds", seeds.join(","))
        .flag("noise", fileText(noise));
      if (authorisation.case === "gate") words.flag("gate", authorisation.value);
      words.set("preflight", authorisation.case === "preflight" && authorisation.value);
      words.flag("against", against).set("verify-last-step", verifyLastStep).set("latents-only", latentsOnly);
      return String(words.common(spec));
    }
    case "diagnostic": {
      const { run, step } = spec.kind.value;
      return String(new Words("plumbline", "submit", "diagnostic").flag("run", run).flag("step", step || undefined).common(spec));
    }
    default:
      return `plumbline, as ${JSON.stringify(toJson(JobSpecSchema, spec))}`;
  }
}
