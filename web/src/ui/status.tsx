// States and verdicts: always a word and a shape, never colour alone.
import { Outcome, type Verdict } from "@gen/drift_pb.js";
import { JobState, type Progress } from "@gen/job_pb.js";
import { outcomeWord, stateWord } from "./format.js";

export type Tone = "good" | "bad" | "warn" | "busy" | "quiet";

const MARK: Record<Tone, string> = { good: "✓", bad: "✕", warn: "!", busy: "…", quiet: "·" };

export function Pill({ tone, children }: { tone: Tone; children: string }) {
  return (
    <span className={`pill ${tone}`}>
      <span aria-hidden="true">{MARK[tone]}</span> {children}
    </span>
  );
}

const STATE_TONE: Partial<Record<JobState, Tone>> = {
  [JobState.RUNNING]: "busy",
  [JobState.SUCCEEDED]: "good",
  [JobState.FAILED]: "bad",
  [JobState.CANCELLED]: "warn",
};

export function StatePill({ state }: { state: JobState }) {
  return <Pill tone={STATE_TONE[state] ?? "quiet"}>{stateWord(state)}</Pill>;
}

const OUTCOME_TONE: Partial<Record<Outcome, Tone>> = {
  [Outcome.PASSED]: "good",
  [Outcome.FAILED]: "bad",
  [Outcome.PARTIAL]: "warn",
};

export function OutcomePill({ verdict }: { verdict: Verdict | undefined }) {
  if (!verdict || verdict.outcome === Outcome.UNSPECIFIED) return null;
  return <Pill tone={OUTCOME_TONE[verdict.outcome] ?? "quiet"}>{outcomeWord(verdict.outcome)}</Pill>;
}

export function ProgressBar({ progress }: { progress: Progress | undefined }) {
  if (!progress || progress.total === 0n) return null;
  const text = `${progress.done} of ${progress.total} ${progress.unit}`;
  return (
    <span className="progress">
      <progress value={Number(progress.done)} max={Number(progress.total)} aria-label={text} />
      <span>{text}</span>
    </span>
  );
}
