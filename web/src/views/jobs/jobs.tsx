import { useCallback, useMemo, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import type { Job } from "@gen/job_pb.js";
import { jobs as client } from "../../api/client.js";
import { messageOf } from "../../api/errors.js";
import { useWatch } from "../../api/use_watch.js";
import { ConnectionNote } from "../../ui/connection.js";
import { type Column, DataTable } from "../../ui/data_table.js";
import { age, ageSeconds, idOf, kindWord, outcomeWord, stateWord } from "../../ui/format.js";
import { OutcomePill, ProgressBar, StatePill } from "../../ui/status.js";
import { useNowMs } from "../../ui/use_now.js";
import { filterOf } from "./filter.js";
import { FilterBar } from "./filter_bar.js";
import { useOlderJobs } from "./older.js";

const LIVE_JOBS = 200;

const labelsText = (job: Job) =>
  Object.entries(job.spec?.labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(" ");

export default function Jobs() {
  const [parameters, setParameters] = useSearchParams();
  const query = parameters.toString();
  const filter = useMemo(() => filterOf(new URLSearchParams(query)), [query]);
  const live = useWatch({ filter, snapshotLimit: LIVE_JOBS });
  const older = useOlderJobs(client.listJobs, filter, live.complete && live.jobs.length >= LIVE_JOBS);
  const rows = useMemo(() => {
    const shown = new Set(live.jobs.map(({ name }) => name));
    return [...live.jobs, ...older.jobs.filter(({ name }) => !shown.has(name))];
  }, [live.jobs, older.jobs]);
  const [marked, setMarked] = useState<readonly string[]>([]);
  const navigate = useNavigate();
  const now = useNowMs();

  const toggle = useCallback(
    (name: string) => setMarked((now) => (now.includes(name) ? now.filter((other) => other !== name) : [...now.slice(-1), name])),
    [],
  );
  const columns = useMemo<Column<Job>[]>(
    () => [
      {
        id: "mark",
        heading: "Compare",
        width: "5rem",
        value: ({ name }) => (marked.includes(name) ? 1 : 0),
        cell: ({ name }) => (
          <input
            type="checkbox"
            aria-label={`Compare ${idOf(name)}`}
            checked={marked.includes(name)}
            onClick={(event) => event.stopPropagation()}
            onKeyDown={(event) => event.stopPropagation()}
            onChange={() => toggle(name)}
          />
        ),
      },
      { id: "job", heading: "Job", width: "9rem", value: ({ name }) => idOf(name), cell: ({ name }) => <code>{idOf(name)}</code> },
      { id: "kind", heading: "Kind", width: "7rem", value: ({ kind }) => kindWord(kind) },
      {
        id: "state",
        heading: "State",
        width: "8rem",
        value: ({ state }) => stateWord(state),
        cell: ({ state }) => <StatePill state={state} />,
      },
      {
        id: "verdict",
        heading: "Verdict",
        width: "8rem",
        value: ({ verdict }) => (verdict ? outcomeWord(verdict.outcome) : ""),
        cell: ({ verdict }) => <OutcomePill verdict={verdict} />,
      },
      {
        id: "what",
        heading: "What",
        width: "minmax(16rem, 3fr)",
        value: ({ verdict, waitingReason, error }) => verdict?.sentence || waitingReason?.message || error?.message || "",
      },
      {
        id: "progress",
        heading: "Progress",
        width: "13rem",
        value: ({ progress }) => (progress ? Number(progress.done) : 0),
        cell: ({ progress }) => <ProgressBar progress={progress} />,
      },
      { id: "labels", heading: "Labels", width: "minmax(8rem, 1fr)", value: labelsText },
      {
        id: "age",
        heading: "Age",
        width: "5rem",
        numeric: true,
        value: ({ createTime }) => ageSeconds(createTime, now) ?? 0,
        cell: ({ createTime }) => age(createTime, now),
      },
    ],
    [marked, toggle, now],
  );

  return (
    <section aria-labelledby="jobs-heading">
      <div className="row spread">
        <h1 id="jobs-heading">Jobs</h1>
        <button
          type="button"
          disabled={marked.length !== 2}
          onClick={() => navigate(`/compare/${marked.map(idOf).join("/")}`)}
        >
          Compare the two marked
        </button>
      </div>
      <ConnectionNote connection={live.connection} error={live.error} />
      <FilterBar parameters={parameters} onChange={setParameters} />
      <DataTable
        label="Jobs"
        columns={columns}
        rows={rows}
        rowKey={({ name }) => name}
        csvName="jobs"
        height="calc(100vh - 15rem)"
        onChoose={({ name }) => navigate(`/jobs/${idOf(name)}`)}
        onEnd={older.more}
        empty={live.complete ? "No job matches." : "Loading…"}
      />
      <p className="hint" role="status">
        {rows.length} shown{older.error ? `; older ones cannot be read: ${messageOf(older.error)}` : older.done ? "" : "; scroll for older ones"}
      </p>
    </section>
  );
}
