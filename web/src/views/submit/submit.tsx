import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import type { JobSpec } from "@gen/job_pb.js";
import { artifacts, jobs } from "../../api/client.js";
import { type FieldProblem, fieldProblemsOf, messageOf, wantsSignIn } from "../../api/errors.js";
import { Problem } from "../../app/errors.js";
import { idOf } from "../../ui/format.js";
import { commandLineOf } from "./command_line.js";
import { EMPTY_FORM, FieldMistake, FORM_KINDS, type Form, type FormKind, formOf, specOf } from "./form.js";
import { upload } from "./upload.js";

const TYPING_MS = 300;

// ?like=JOB fills the form with that job's specification.
export default function Submit() {
  const like = useSearchParams()[0].get("like");
  const job = useQuery({
    queryKey: ["job", like, "like"],
    enabled: like !== null,
    queryFn: ({ signal }) => jobs.getJob({ name: `jobs/${like}` }, { signal }),
  });
  if (like !== null && job.isPending) return <p role="status">Loading…</p>;
  const form = job.data?.spec && formOf(job.data.spec);
  return (
    <>
      {job.error && <Problem error={job.error} what={`read job ${like}`} />}
      {job.data && !form && <p className="problem">The form has no jobs of that kind; submit one with the command line.</p>}
      <SubmitForm start={form ?? EMPTY_FORM} />
    </>
  );
}

interface Checked {
  problems: readonly FieldProblem[];
  error?: unknown;
}

// Last part of "spec.block_replay.layouts[0].frames" that is a field of the form.
function fieldOf(path: string, form: Form): string | undefined {
  const camel = (word: string) => word.replace(/\[\d+\]$/, "").replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const alias: Record<string, string> = { layout: "layouts", seed: "seeds", freezeRule: "freezeRule" };
  return path
    .split(".")
    .map(camel)
    .map((name) => alias[name] ?? name)
    .reverse()
    .find((name) => name in form);
}

function SubmitForm({ start }: { start: Form }) {
  const [form, setForm] = useState(start);
  const [checked, setChecked] = useState<Checked>({ problems: [] });
  const [sending, setSending] = useState(false);
  const requestId = useRef(crypto.getRandomValues(new Uint32Array(4)).join("-"));
  const navigate = useNavigate();
  const edit = (fields: Partial<Form>) => setForm((now) => ({ ...now, ...fields }));

  const made = useMemo<{ spec?: JobSpec; mistake?: FieldProblem }>(() => {
    try {
      return { spec: specOf(form) };
    } catch (error) {
      if (error instanceof FieldMistake) return { mistake: { field: error.field, description: error.message } };
      throw error;
    }
  }, [form]);

  // The server judges every change as it would a submission.
  useEffect(() => {
    const { spec, mistake } = made;
    if (!spec) return setChecked({ problems: mistake ? [mistake] : [] });
    const stop = new AbortController();
    const timer = setTimeout(() => {
      jobs
        .createJob({ spec, validateOnly: true }, { signal: stop.signal })
        .then(() => setChecked({ problems: [] }))
        .catch((error: unknown) => {
          if (!stop.signal.aborted) setChecked({ problems: fieldProblemsOf(error), error });
        });
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [made]);

  const submit = async () => {
    if (!made.spec) return;
    setSending(true);
    try {
      const job = await jobs.createJob({ spec: made.spec, requestId: requestId.current });
      navigate(`/jobs/${idOf(job.name)}`);
    } catch (error) {
      setChecked({ problems: fieldProblemsOf(error), error });
      setSending(false);
    }
  };

  const problemsOf = (field: string) => checked.problems.filter((problem) => fieldOf(problem.field, form) === field);
  const others = checked.problems.filter((problem) => fieldOf(problem.field, form) === undefined);
  const text = (field: keyof Form, label: string, hint = "", placeholder = "") => (
    <Field field={field} label={label} hint={hint} problems={problemsOf(field)}>
      {(attributes) => (
        <input {...attributes} value={String(form[field])} placeholder={placeholder} onChange={(event) => edit({ [field]: event.target.value })} />
      )}
    </Field>
  );
  const check = (field: keyof Form, label: string) => (
    <Field field={field} label={label} hint="" problems={problemsOf(field)}>
      {(attributes) => <input {...attributes} type="checkbox" checked={Boolean(form[field])} onChange={(event) => edit({ [field]: event.target.checked })} />}
    </Field>
  );
  const file = (field: keyof Form, label: string, hint: string) => (
    <Field field={field} label={label} hint={hint} problems={problemsOf(field)}>
      {(attributes) => (
        <FileField attributes={attributes} label={label} value={String(form[field])} onChange={(value) => edit({ [field]: value })} />
      )}
    </Field>
  );
  const layouts = text("layouts", "Layouts", "Names, or TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES; a semicolon parts them", "tiny; 104,2,12,16,8,first");
  const captures = (
    <>
      {file("inputs", "Captured inputs", "")}
      {file("golden", "Captured golden", "")}
      {file("candidate", "Captured candidate", "What a kernel outside Plumbline wrote")}
    </>
  );
  const parts: Record<FormKind, ReactNode> = {
    "block-replay": (
      <>
        {text("block", "Block", "Index; default 0")}
        {layouts}
        {check("backward", "Backward too")}
        {captures}
      </>
    ),
    "full-model": (
      <>
        {layouts}
        {text("providers", "Providers", "Of the ensemble; default all")}
        {check("freezeRule", "Freeze a rule of the providers")}
        {file("rule", "Rule", "Judge by this rule instead")}
        {check("ablation", "Ablation")}
        {captures}
      </>
    ),
    sweep: (
      <>
        {text("block", "Block", "Index; default 0")}
        {layouts}
        {text("seeds", "Seeds", "E.g. 0..9; default 0..9")}
        {check("swapEachNode", "Swap each node")}
      </>
    ),
    generation: (
      <>
        <Field field="contract" label="Contract" hint="JSON" problems={problemsOf("contract")}>
          {(attributes) => <textarea {...attributes} rows={8} value={form.contract} onChange={(event) => edit({ contract: event.target.value })} />}
        </Field>
        {file("conditioning", "Conditioning", "Encoded prompt and keyframes")}
        {text("seeds", "Seeds", "Default: the contract's")}
        {text("gate", "Gate", "A full-model job that the composition passed", "jobs/…")}
        {check("preflight", "Without a gate (cannot be cited)")}
        {text("against", "Against", "A generation job of the provider", "jobs/…")}
        {check("verifyLastStep", "Compute the last saved step again")}
        {check("latentsOnly", "Stop at the latents")}
      </>
    ),
    diagnostic: (
      <>
        {text("run", "Run", "", "runs/…")}
        {text("step", "Step", "From 0")}
      </>
    ),
  };

  return (
    <section aria-labelledby="submit-heading">
      <h1 id="submit-heading">Submit a job</h1>
      <form
        className="submit"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Field field="kind" label="Kind" hint="" problems={problemsOf("kind")}>
          {(attributes) => (
            <select {...attributes} value={form.kind} onChange={(event) => edit({ kind: event.target.value as FormKind })}>
              {FORM_KINDS.map((kind) => (
                <option key={kind}>{kind}</option>
              ))}
            </select>
          )}
        </Field>
        {form.kind !== "diagnostic" && text("checkpoint", "Checkpoint", "Folder under the workers' roots, or synthetic:NAME[:SEED]")}
        {text("composition", "Composition", "Default candidate", "candidate+provider:attention")}
        {form.kind !== "diagnostic" && text("inject", "Fault to put in", "See `plumbline faults`")}
        {parts[form.kind]}
        {text("labels", "Labels", "key=value, several with commas")}
        {text("priority", "Priority", "-100 to 100, larger first; default 0")}
        {others.map((problem) => (
          <p key={problem.field + problem.description} className="problem" role="alert">
            {problem.field}: {problem.description}
          </p>
        ))}
        {checked.error !== undefined && checked.problems.length === 0 && <Problem error={checked.error} what="submit this" />}
        <div className="row">
          <button type="submit" disabled={sending || !made.spec || checked.problems.length > 0 || wantsSignIn(checked.error)}>
            Submit
          </button>
          {checked.error !== undefined && checked.problems.length > 0 && <span className="soft">{messageOf(checked.error)}</span>}
        </div>
        <label className="hint" htmlFor="command">
          The same from the command line
        </label>
        <output id="command" className="mono">
          {made.spec ? commandLineOf(made.spec) : ""}
        </output>
      </form>
    </section>
  );
}

interface Attributes {
  id: string;
  "aria-describedby": string;
  "aria-invalid": boolean;
}

interface FieldProps {
  field: string;
  label: string;
  hint: string;
  problems: readonly FieldProblem[];
  children: (attributes: Attributes) => ReactNode;
}

function Field({ field, label, hint, problems, children }: FieldProps) {
  const id = `field-${field}`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": `${id}-note`, "aria-invalid": problems.length > 0 })}
      <div id={`${id}-note`}>
        {hint && <span className="hint">{hint}</span>}
        {problems.map(({ field: path, description }) => (
          <p key={path + description} className="mistake" role="alert">
            {description}
          </p>
        ))}
      </div>
    </div>
  );
}

interface FileFieldProps {
  attributes: Attributes;
  label: string;
  value: string;
  onChange: (value: string) => void;
}

function FileField({ attributes, label, value, onChange }: FileFieldProps) {
  const [state, setState] = useState("");
  const send = async (chosen: File | undefined) => {
    if (!chosen) return;
    try {
      setState(`sending ${chosen.name}`);
      onChange(await upload(artifacts, chosen, (fraction) => setState(`sending ${chosen.name}: ${Math.round(fraction * 100)} %`)));
      setState(`${chosen.name} sent`);
    } catch (error) {
      setState(messageOf(error));
    }
  };
  return (
    <div className="row">
      <input {...attributes} value={value} placeholder="artifacts/… or worker:PATH" onChange={(event) => onChange(event.target.value)} />
      <input type="file" aria-label={`File for ${label}`} onChange={(event) => void send(event.target.files?.[0])} />
      <span role="status">{state}</span>
    </div>
  );
}
