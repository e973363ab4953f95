import { useMutation, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useNavigate, useParams } from "react-router";
import type { StepRecord } from "@gen/generation_pb.js";
import { store } from "../../api/client.js";
import { Problem } from "../../app/errors.js";
import { type Column, DataTable } from "../../ui/data_table.js";
import { bytes, dateTime, idOf, runStateWord, seconds } from "../../ui/format.js";

const COLUMNS: Column<StepRecord>[] = [
  { id: "index", heading: "Step", width: "5rem", numeric: true, value: ({ index }) => index },
  { id: "input", heading: "Input digest", width: "minmax(16rem, 1fr)", value: ({ inputDigest }) => inputDigest, cell: ({ inputDigest }) => <code>{inputDigest}</code> },
  { id: "worker", heading: "Worker", width: "12rem", value: ({ worker }) => idOf(worker) },
  { id: "attempt", heading: "Attempt", width: "6rem", numeric: true, value: ({ attempt }) => attempt },
  { id: "seconds", heading: "Time", width: "7rem", numeric: true, value: (step) => step.seconds, cell: (step) => seconds(step.seconds) },
  { id: "stored", heading: "Stored", width: "12rem", value: ({ storeTime }) => dateTime(storeTime) },
  { id: "quarantined", heading: "Quarantined", width: "8rem", value: ({ quarantined }) => (quarantined ? "yes" : "") },
];

export default function RunPage() {
  const name = `runs/${useParams().run}`;
  const navigate = useNavigate();
  const run = useQuery({ queryKey: ["run", name], queryFn: ({ signal }) => store.getRun({ name }, { signal }) });
  const verify = useMutation({ mutationFn: () => store.verifyRun({ name }) });
  const remove = useMutation({ mutationFn: () => store.deleteRun({ name }), onSuccess: () => navigate("/runs") });
  const identity = useMemo(() => run.data?.identity?.parts ?? [], [run.data]);
  if (run.error) return <Problem error={run.error} what={`read ${name}`} />;
  if (!run.data) return <p role="status">Loading…</p>;
  const { data } = run;
  return (
    <article aria-labelledby="run-heading">
      <div className="row spread">
        <h1 id="run-heading">
          <Link to="/runs">Runs</Link> / <code>{idOf(name).slice(0, 16)}</code>
        </h1>
        <div className="row">
          <button type="button" disabled={verify.isPending} onClick={() => verify.mutate()}>
            {verify.isPending ? "Verifying" : "Verify"}
          </button>
          <button
            type="button"
            onClick={() => window.confirm(`Delete this run with its ${data.savedSteps} saved steps? It cannot be undone.`) && remove.mutate()}
          >
            Delete
          </button>
        </div>
      </div>
      {remove.error && <Problem error={remove.error} what="delete the run" />}
      {verify.error && <Problem error={verify.error} what="verify the run" />}
      {verify.data && (
        <p role="status">
          {verify.data.stepsChecked} steps, {bytes(verify.data.bytesChecked)} read:{" "}
          {verify.data.corruptions.length === 0
            ? "every digest is right."
            : verify.data.corruptions.map(({ step, tensor }) => `step ${step}, ${tensor} is damaged`).join("; ")}
        </p>
      )}
      {data.problem && <p className="problem">{data.problem}</p>}
      <dl className="facts">
        <dt>Seed, state</dt>
        <dd>
          {String(data.seed)}, {runStateWord(data.state)}
        </dd>
        <dt>Steps, size</dt>
        <dd>
          {data.savedSteps} of {data.totalSteps}, {bytes(data.sizeBytes)}
        </dd>
        <dt>Checkpoint</dt>
        <dd>{data.checkpoint}</dd>
        <dt>Jobs</dt>
        <dd>
          {data.jobs.map((job) => (
            <Link key={job} to={`/${job}`}>
              {idOf(job)}{" "}
            </Link>
          ))}
        </dd>
        <dt>Identity</dt>
        <dd className="mono">{data.identity?.sha256}</dd>
      </dl>
      <details>
        <summary>What the identity is made of</summary>
        <dl className="facts">
          {identity.map((part) => (
            <div key={part.name} className="pair">
              <dt>{part.name}</dt>
              <dd className="mono">{part.value}</dd>
            </div>
          ))}
        </dl>
      </details>
      <DataTable label="Steps" columns={COLUMNS} rows={data.steps} rowKey={({ index }) => String(index)} csvName={`run-${idOf(name).slice(0, 16)}`} />
    </article>
  );
}
