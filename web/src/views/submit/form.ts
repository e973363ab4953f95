// The form's fields, as text, and the specification that they make. What a field may hold is for the server to say.
import { create, fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { type InputFile, InputFileSchema } from "@gen/artifact_pb.js";
import { GenerationContractSchema } from "@gen/generation_pb.js";
import { type JobSpec, JobSpecSchema } from "@gen/job_pb.js";
import { layoutsOf, layoutText } from "./layout.js";

export const FORM_KINDS = ["block-replay", "full-model", "sweep", "generation", "diagnostic"] as const;
export type FormKind = (typeof FORM_KINDS)[number];

export interface Form {
  kind: FormKind;
  checkpoint: string;
  composition: string;
  inject: string;
  labels: string;
  priority: string;
  block: string;
  layouts: string;
  backward: boolean;
  providers: string;
  freezeRule: boolean;
  rule: string;
  ablation: boolean;
  seeds: string;
  swapEachNode: boolean;
  contract: string;
  conditioning: string;
  gate: string;
  preflight: boolean;
  against: string;
  verifyLastStep: boolean;
  latentsOnly: boolean;
  run: string;
  step: string;
  inputs: string;
  golden: string;
  candidate: string;
}

export const EMPTY_FORM: Form = {
  kind: "block-replay",
  checkpoint: "synthetic:tiny",
  composition: "",
  inject: "",
  labels: "",
  priority: "",
  block: "",
  layouts: "tiny",
  backward: true,
  providers: "",
  freezeRule: true,
  rule: "",
  ablation: false,
  seeds: "",
  swapEachNode: false,
  contract: "",
  conditioning: "",
  gate: "",
  preflight: false,
  against: "",
  verifyLastStep: false,
  latentsOnly: false,
  run: "",
  step: "",
  inputs: "",
  golden: "",
  candidate: "",
};

export class FieldMistake extends Error {
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message);
  }
}

const words = (text: string) =>
  text
    .split(/[,\s]+/)
    .map((word) => word.trim())
    .filter(Boolean);

function whole(field: string, text: string): number {
  if (text.trim() === "") return 0;
  if (!/^-?\d{1,9}$/.test(text.trim())) throw new FieldMistake(field, `'${text}' is no whole number`);
  return Number(text);
}

// "42, 44..46" -> 42, 44, 45, 46.
export function seedsOf(text: string): bigint[] {
  return words(text).flatMap((word) => {
    const range = /^(\d+)(?:\.\.(\d+))?$/.exec(word);
    if (!range?.[1]) throw new FieldMistake("seeds", `'${word}' is no seed: write 42, or 42..45`);
    const [first, last] = [BigInt(range[1]), BigInt(range[2] ?? range[1])];
    if (last < first || last - first > 10_000n) throw new FieldMistake("seeds", `'${word}' is no range of at most 10000 seeds`);
    return Array.from({ length: Number(last - first) + 1 }, (_, index) => first + BigInt(index));
  });
}

// "artifacts/7" is uploaded, "worker:PATH" lies with the workers.
export function fileOf(field: string, text: string): InputFile | undefined {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  if (trimmed.startsWith("artifacts/")) return create(InputFileSchema, { source: { case: "artifact", value: trimmed } });
  if (trimmed.startsWith("worker:")) {
    return create(InputFileSchema, { source: { case: "workerPath", value: trimmed.slice("worker:".length) } });
  }
  throw new FieldMistake(field, `'${trimmed}' is no file: choose one to upload, or write worker:PATH`);
}

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    words(text).map((word) => {
      const at = word.indexOf("=");
      if (at < 1) throw new FieldMistake("labels", `'${word}' is no label: write key=value`);
      return [word.slice(0, at), word.slice(at + 1)];
    }),
  );
}

function kindOf(form: Form): JobSpec["kind"] {
  const layouts = layoutsOf(form.layouts);
  const block = whole("block", form.block);
  const captures = {
    inputs: fileOf("inputs", form.inputs),
    golden: fileOf("golden", form.golden),
    candidate: fileOf("candidate", form.candidate),
    providers: {},
  };
  const captured = captures.inputs || captures.golden || captures.candidate ? captures : undefined;
  const init = (() => {
    switch (form.kind) {
      case "block-replay":
        return { case: "blockReplay" as const, value: { block, layouts, backward: form.backward, captures: captured } };
      case "full-model": {
        const rule = fileOf("rule", form.rule);
        const ruleSource = rule
          ? { case: "rule" as const, value: rule }
          : form.freezeRule
            ? { case: "freezeRule" as const, value: true }
            : { case: undefined };
        return {
          case: "fullModel" as const,
          value: { layouts, providers: words(form.providers), ablation: form.ablation, ruleSource, captures: captured },
        };
      }
      case "sweep":
        return { case: "sweep" as const, value: { block, layouts, seeds: seedsOf(form.seeds), swapEachNode: form.swapEachNode } };
      case "generation":
        return {
          case: "generation" as const,
          value: {
            contract: contractOf(form.contract),
            conditioning: fileOf("conditioning", form.conditioning),
            seeds: seedsOf(form.seeds),
            against: form.against.trim(),
            verifyLastStep: form.verifyLastStep,
            latentsOnly: form.latentsOnly,
            authorisation: form.gate.trim()
              ? { case: "gate" as const, value: form.gate.trim() }
              : form.preflight
                ? { case: "preflight" as const, value: true }
                : { case: undefined },
          },
        };
      case "diagnostic":
        return { case: "diagnostic" as const, value: { run: form.run.trim(), step: whole("step", form.step) } };
    }
  })();
  return create(JobSpecSchema, { kind: init }).kind;
}

function contractOf(text: string) {
  try {
    return fromJsonString(GenerationContractSchema, text || "{}");
  } catch (error) {
    throw new FieldMistake("contract", error instanceof Error ? error.message : String(error));
  }
}

// Throws FieldMistake where a field's text cannot be read at all.
export function specOf(form: Form): JobSpec {
  return create(JobSpecSchema, {
    checkpoint: form.kind === "diagnostic" ? "" : form.checkpoint.trim(),
    composition: form.composition.trim(),
    inject: form.inject.trim(),
    labels: labelsOf(form.labels),
    priority: whole("priority", form.priority),
    kind: kindOf(form),
  });
}

const fileText = (file: InputFile | undefined) =>
  file?.source.case === "workerPath" ? `worker:${file.source.value}` : (file?.source.value ?? "");

// A form that makes `spec` again, to submit one like it; undefined where the form has no such kind.
export function formOf(spec: JobSpec): Form | undefined {
  const form: Form = {
    ...EMPTY_FORM,
    checkpoint: spec.checkpoint,
    composition: spec.composition,
    inject: spec.inject,
    priority: spec.priority ? String(spec.priority) : "",
    labels: Object.entries(spec.labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(", "),
  };
  const captures = (set: { inputs?: InputFile; golden?: InputFile; candidate?: InputFile } | undefined) => ({
    inputs: fileText(set?.inputs),
    golden: fileText(set?.golden),
    candidate: fileText(set?.candidate),
  });
  switch (spec.kind.case) {
    case "blockReplay": {
      const { block, layouts, backward } = spec.kind.value;
      return {
        ...form,
        ...captures(spec.kind.value.captures),
        kind: "block-replay",
        block: block ? String(block) : "",
        layouts: layouts.map(layoutText).join("; "),
        backward,
      };
    }
    case "fullModel": {
      const { layouts, providers, ablation, ruleSource } = spec.kind.value;
      return {
        ...form,
        ...captures(spec.kind.value.captures),
        kind: "full-model",
        layouts: layouts.map(layoutText).join("; "),
        providers: providers.join(", "),
        ablation,
        freezeRule: ruleSource.case === "freezeRule",
        rule: ruleSource.case === "rule" ? fileText(ruleSource.value) : "",
      };
    }
    case "sweep": {
      const { block, layouts, seeds, swapEachNode } = spec.kind.value;
      return { ...form, kind: "sweep", block: block ? String(block) : "", layouts: layouts.map(layoutText).join("; "), seeds: seeds.join(", "), swapEachNode };
    }
    case "generation": {
      const { contract, conditioning, seeds, authorisation, against, verifyLastStep, latentsOnly } = spec.kind.value;
      return {
        ...form,
        kind: "generation",
        contract: contract ? toJsonString(GenerationContractSchema, contract, { prettySpaces: 2, useProtoFieldName: true }) : "",
        conditioning: fileText(conditioning),
        seeds: seeds.join(", "),
        gate: authorisation.case === "gate" ? authorisation.value : "",
        preflight: authorisation.case === "preflight" && authorisation.value,
        against,
        verifyLastStep,
        latentsOnly,
      };
    }
    case "diagnostic":
      return { ...form, kind: "diagnostic", run: spec.kind.value.run, step: spec.kind.value.step ? String(spec.kind.value.step) : "" };
    default:
      return undefined;
  }
}
