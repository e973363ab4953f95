// What of an entry is shown under a choice of feed and direction.
import { EntryKind, type EntryReport } from "@gen/block_replay_pb.js";
import type { TensorComparison } from "@gen/drift_pb.js";

export type Feed = "chained" | "isolated";
export type Direction = "forward" | "backward";

// Bitwise: every byte is the provider's. Within: it differs and passes its gates. Failing: a gate failed. Absent: not run.
export type Drift = "bitwise" | "within" | "failing" | "absent";

export const DRIFT_WORD: Record<Drift, string> = {
  bitwise: "bitwise",
  within: "within",
  failing: "failing",
  absent: "not run",
};

export function entryOfNode(entries: readonly EntryReport[], node: string, direction: Direction): EntryReport | undefined {
  const kind = direction === "forward" ? EntryKind.FORWARD : EntryKind.GRADIENT;
  return entries.find((entry) => entry.node === node && entry.kind === kind) ?? entries.find((entry) => entry.kind === kind && entry.name === (direction === "forward" ? node : `${node}.grad`));
}

export const driftOf = (entry: EntryReport, feed: Feed): TensorComparison | undefined =>
  feed === "chained" ? entry.chained : entry.isolated;

export const errorOf = (entry: EntryReport, feed: Feed): TensorComparison | undefined =>
  feed === "chained" ? entry.chainedError : entry.isolatedError;

export function judge(entry: EntryReport | undefined, feed: Feed): Drift {
  if (!entry) return "absent";
  // What the other feed's gate says is shown under that feed.
  const other = feed === "chained" ? "isolated_" : "chained_";
  const failed = entry.gates.some(({ gate, passed, notMeasured }) => !passed && !notMeasured && !gate.startsWith(other));
  if (failed || (!entry.passed && entry.gates.length === 0)) return "failing";
  return driftOf(entry, feed)?.bitwiseEqual ? "bitwise" : "within";
}
