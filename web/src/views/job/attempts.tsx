import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Attempt, AttemptEnd, type Task } from "@gen/job_pb.js";
import { dateTime, idOf, seconds } from "../../ui/format.js";
import { StatePill } from "../../ui/status.js";

const END_WORD: Record<AttemptEnd, string> = {
  [AttemptEnd.UNSPECIFIED]: "running",
  [AttemptEnd.COMPLETED]: "completed",
  [AttemptEnd.FAILED]: "failed",
  [AttemptEnd.RELEASED]: "handed back",
  [AttemptEnd.LEASE_EXPIRED]: "worker lost",
  [AttemptEnd.WORKER_RESTARTED]: "worker restarted",
  [AttemptEnd.CANCELLED]: "cancelled",
};

const INTERRUPTED = [AttemptEnd.RELEASED, AttemptEnd.LEASE_EXPIRED, AttemptEnd.WORKER_RESTARTED];

const stepsText = ({ stepsComputed, stepsReplayed, stepsRecomputed }: Attempt) =>
  [
    stepsComputed && `${stepsComputed} steps computed`,
    stepsReplayed && `${stepsReplayed} replayed`,
    stepsRecomputed && `${stepsRecomputed} recomputed to check`,
  ]
    .filter(Boolean)
    .join(", ");

// Who worked at each task, when, and how each attempt ended; each attempt a bar on one scale of time.
export function Attempts({ tasks }: { tasks: readonly Task[] }) {
  const times = tasks.flatMap(({ attempts }) =>
    attempts.map(({ startTime, endTime }) => ({
      start: startTime ? timestampDate(startTime).getTime() : 0,
      end: endTime ? timestampDate(endTime).getTime() : Date.now(),
    })),
  );
  const first = Math.min(...times.map(({ start }) => start));
  const span = Math.max(1, Math.max(...times.map(({ end }) => end)) - first);
  return (
    <section aria-labelledby="tasks-heading">
      <h2 id="tasks-heading">Tasks</h2>
      {tasks.map((task) => (
        <details key={task.name} open={tasks.length < 5}>
          <summary>
            <StatePill state={task.state} /> {task.title || idOf(task.name)}
            {task.waitingReason?.message && <span className="soft"> waiting: {task.waitingReason.message}</span>}
            {task.error?.message && <span className="soft"> {task.error.message}</span>}
          </summary>
          <ol className="attempts">
            {task.attempts.map((attempt) => {
              const start = attempt.startTime ? timestampDate(attempt.startTime).getTime() : first;
              const end = attempt.endTime ? timestampDate(attempt.endTime).getTime() : Date.now();
              return (
                <li key={attempt.number}>
                  <span>
                    {attempt.number}. {attempt.worker}, {dateTime(attempt.startTime)}, {seconds((end - start) / 1000)}: {END_WORD[attempt.end]}
                    {stepsText(attempt) && `; ${stepsText(attempt)}`}
                    {attempt.message && `; ${attempt.message}`}
                  </span>
                  <svg className="bar" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
                    <rect
                      className={INTERRUPTED.includes(attempt.end) ? "interrupted" : "worked"}
                      x={((start - first) / span) * 1000}
                      width={Math.max(2, ((end - start) / span) * 1000)}
                      height="8"
                    />
                  </svg>
                </li>
              );
            })}
          </ol>
        </details>
      ))}
    </section>
  );
}
