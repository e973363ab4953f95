import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ComponentType, lazy, type LazyExoticComponent, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { EventKind, type JobEvent } from "@gen/event_pb.js";
import { type Job, JobKind, JobState, type Report } from "@gen/job_pb.js";
import { jobs } from "../../api/client.js";
import { useReport } from "../../api/use_report.js";
import { useWatch } from "../../api/use_watch.js";
import { Problem } from "../../app/errors.js";
import { ConnectionNote } from "../../ui/connection.js";
import { age, dateTime, idOf, kindWord } from "../../ui/format.js";
import { OutcomePill, ProgressBar, StatePill } from "../../ui/status.js";
import { useNowMs } from "../../ui/use_now.js";
import { commandLineOf } from "../submit/command_line.js";
import { Attempts } from "./attempts.js";
import { LiveEvents, type LiveView } from "./live_events.js";
import { Files } from "./files.js";

type ReportView = LazyExoticComponent<ComponentType<{ report: Report }>>;

const KIND_VIEWS: Partial<Record<JobKind, ReportView>> = {
  [JobKind.BLOCK_REPLAY]: lazy(() => import("../block_replay/block_replay.js")),
  [JobKind.FULL_MODEL]: lazy(() => import("../full_model/full_model.js")),
  [JobKind.GENERATION]: lazy(() => import("../generation/generation.js")),
};
const OtherReport = lazy(() => import("./other_report.js"));

const ENDED = [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED];

// What the page follows; a job's node and step events arrive with the changes of its state, over one connection.
const EVENTS = [
  EventKind.NODE,
  EventKind.STEP,
  EventKind.LATENT_DRIFT,
  EventKind.PREVIEW,
  EventKind.LOG,
  EventKind.REPORT_READY,
  EventKind.ATTEMPT,
  EventKind.TASK_STATE,
];

// What a page has gathered of one job is nothing to the next.
export default function JobPage() {
  const id = useParams().job as string;
  return <JobView key={id} id={id} />;
}

function JobView({ id }: { id: string }) {
  const name = `jobs/${id}`;
  const queries = useQueryClient();
  const [events, setEvents] = useState<LiveView>(LiveEvents.empty);
  const gathered = useRef(new LiveEvents());
  const onEvent = useCallback(
    (event: JobEvent) => {
      if (gathered.current.add(event)) requestAnimationFrame(() => setEvents(gathered.current.view()));
      if (event.body.case === "taskState" || event.body.case === "attemptChange" || event.body.case === "reportReady") {
        void queries.invalidateQueries({ queryKey: ["job", name] });
      }
    },
    [queries, name],
  );
  const live = useWatch({ filter: { names: [name] }, eventKinds: EVENTS }, onEvent);
  const now = live.jobs[0];
  const job = useQuery<Job>({ queryKey: ["job", name], queryFn: ({ signal }) => jobs.getJob({ name }, { signal }) });
  const latest = now ?? job.data;
  const ended = latest !== undefined && ENDED.includes(latest.state);
  const report = useReport(name, `${latest?.state}.${latest?.verdict?.outcome}`, ended);
  useEffect(() => {
    if (now) void queries.invalidateQueries({ queryKey: ["job", name] });
  }, [queries, name, now?.state, now?.verdict?.outcome]);

  if (job.error && !job.data) return <Problem error={job.error} what={`read job ${id}`} />;
  if (!job.data) return <p role="status">Loading…</p>;
  const shown: Job = { ...job.data, ...(now ? { state: now.state, verdict: now.verdict, progress: now.progress, waitingReason: now.waitingReason, error: now.error } : {}) };
  const View = KIND_VIEWS[shown.kind] ?? OtherReport;
  return (
    <article aria-labelledby="job-heading">
      <ConnectionNote connection={live.connection} error={live.error} />
      <Header job={shown} />
      {shown.kind === JobKind.GENERATION || !report.data ? <LiveProgress view={events} job={shown} /> : null}
      {report.error && <Problem error={report.error} what="read the report" />}
      <Suspense fallback={<p role="status">Loading…</p>}>{report.data && <View report={report.data} />}</Suspense>
      <Attempts tasks={shown.tasks} />
      <Files artifacts={shown.artifacts} />
    </article>
  );
}

function Header({ job }: { job: Job }) {
  const now = useNowMs();
  const navigate = useNavigate();
  const [problem, setProblem] = useState<unknown>(null);
  const ended = ENDED.includes(job.state);
  const act = async (what: () => Promise<unknown>) => {
    setProblem(null);
    await what().catch(setProblem);
  };
  return (
    <header>
      <div className="row spread">
        <h1 id="job-heading">
          <Link to="/jobs">Jobs</Link> / {kindWord(job.kind)} <code>{idOf(job.name)}</code>
        </h1>
        <div className="row">
          <StatePill state={job.state} />
          <OutcomePill verdict={job.verdict} />
          <ProgressBar progress={job.progress} />
          <Link to={`/submit?like=${idOf(job.name)}`}>Submit one like it</Link>
          {ended ? (
            <button
              type="button"
              onClick={() =>
                window.confirm(`Delete job ${idOf(job.name)} with its report and files?`) &&
                act(async () => {
                  await jobs.deleteJob({ name: job.name });
                  navigate("/jobs");
                })
              }
            >
              Delete
            </button>
          ) : (
            <button type="button" disabled={job.cancelRequested} onClick={() => act(() => jobs.cancelJob({ name: job.name }))}>
              {job.cancelRequested ? "Cancelling" : "Cancel"}
            </button>
          )}
        </div>
      </div>
      {problem !== null && <Problem error={problem} what="do that" />}
      {job.verdict?.sentence && <p className="sentence">{job.verdict.sentence}</p>}
      {job.verdict?.qualifications.map((text) => (
        <p key={text} className="hint">
          {text}
        </p>
      ))}
      {job.waitingReason?.message && <p role="status">Waiting: {job.waitingReason.message}</p>}
      {job.error?.message && (
        <p className="problem" role="alert">
          {job.error.message}
        </p>
      )}
      <dl className="facts">
        <dt>Checkpoint</dt>
        <dd>{job.spec?.checkpoint}</dd>
        <dt>Composition</dt>
        <dd>{job.spec?.composition || "candidate"}</dd>
        <dt>Created</dt>
        <dd>
          {dateTime(job.createTime)} ({age(job.createTime, now)} ago){job.creator && ` by ${job.creator}`}
        </dd>
        <dt>Command</dt>
        <dd>
          <code>{job.spec && commandLineOf(job.spec)}</code>
        </dd>
      </dl>
    </header>
  );
}

function LiveProgress({ view, job }: { view: LiveView; job: Job }) {
  const lines = useMemo(() => view.lines.slice(-12), [view]);
  if (lines.length === 0) return null;
  return (
    <section aria-label="As it happens">
      <h2>As it happens</h2>
      <ol className="lines" aria-live={ENDED.includes(job.state) ? "off" : "polite"}>
        {lines.map(({ key, text }) => (
          <li key={key}>{text}</li>
        ))}
      </ol>
      {view.previews.length > 0 && (
        <div className="row">
          {view.previews.map(({ seed, step, url }) => (
            <figure key={seed}>
              <img src={url} alt={`Middle frame of seed ${seed} at step ${step}`} />
              <figcaption>
                seed {seed}, step {step}
              </figcaption>
            </figure>
          ))}
        </div>
      )}
    </section>
  );
}
