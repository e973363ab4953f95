// Figures, durations and names as people read them.
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { JobKind, JobState } from "@gen/job_pb.js";
import { Outcome } from "@gen/drift_pb.js";
import { WorkerState } from "@gen/worker_pb.js";
import { RunState } from "@gen/generation_pb.js";

// "BLOCK_REPLAY" of an enum -> "block-replay", as the command line writes it.
const word = (name: string | undefined) => (name ?? "unknown").toLowerCase().replaceAll("_", "-");

export const kindWord = (kind: JobKind) => word(JobKind[kind]);
export const stateWord = (state: JobState) => word(JobState[state]);
export const outcomeWord = (outcome: Outcome) => word(Outcome[outcome]);
export const workerStateWord = (state: WorkerState) => word(WorkerState[state]);
export const runStateWord = (state: RunState) => word(RunState[state]);

// "jobs/ab12" -> "ab12".
export const idOf = (name: string) => name.slice(name.lastIndexOf("/") + 1);

// Three significant digits, as the command line prints measures: 3.45e-03, 0.949, 128.
export function measure(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-2 || size >= 1e6) {
    const [mantissa, exponent] = value.toExponential(2).split("e") as [string, string];
    const sign = exponent.startsWith("-") ? "-" : "+";
    return `${mantissa}e${sign}${exponent.replace(/[+-]/, "").padStart(2, "0")}`;
  }
  return size >= 1000 ? value.toFixed(0) : value.toPrecision(3);
}

export function bytes(count: bigint | number): string {
  let size = Number(count);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (size < 1024) return `${unit === "B" ? size : size.toPrecision(3)} ${unit}`;
    size /= 1024;
  }
  return `${size.toPrecision(3)} TiB`;
}

export function seconds(value: number): string {
  if (value < 1) return `${(value * 1000).toPrecision(3)} ms`;
  if (value < 60) return `${value.toPrecision(3)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(value % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function ageSeconds(time: Timestamp | undefined, nowMs: number): number | undefined {
  return time ? Math.max(0, (nowMs - timestampDate(time).getTime()) / 1000) : undefined;
}

export function age(time: Timestamp | undefined, nowMs: number): string {
  const value = ageSeconds(time, nowMs);
  if (value === undefined) return "";
  if (value < 60) return `${Math.floor(value)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min`;
  if (value < 86400) return `${Math.floor(value / 3600)} h`;
  return `${Math.floor(value / 86400)} d`;
}

export function dateTime(time: Timestamp | undefined): string {
  return time ? timestampDate(time).toISOString().replace("T", " ").slice(0, 19) : "";
}
