// The job list's filter, kept in the address so that a link shows the same list.
import { create } from "@bufbuild/protobuf";
import { Outcome } from "@gen/drift_pb.js";
import { JobKind, JobState } from "@gen/job_pb.js";
import { type JobFilter, JobFilterSchema } from "@gen/job_service_pb.js";
import { kindWord, outcomeWord, stateWord } from "../../ui/format.js";

type Numbers = Record<string, string | number>;

const valuesOf = (values: Numbers) => Object.values(values).filter((value): value is number => typeof value === "number" && value > 0);

export const KINDS = valuesOf(JobKind).map((kind) => ({ value: kind as JobKind, word: kindWord(kind) }));
export const STATES = valuesOf(JobState).map((state) => ({ value: state as JobState, word: stateWord(state) }));
export const OUTCOMES = valuesOf(Outcome).map((outcome) => ({ value: outcome as Outcome, word: outcomeWord(outcome) }));

function pick<T>(choices: readonly { value: T; word: string }[], words: readonly string[]): T[] {
  return choices.filter(({ word }) => words.includes(word)).map(({ value }) => value);
}

// "team=attention" of each `label` parameter.
function labelsOf(parameters: URLSearchParams): Record<string, string> {
  return Object.fromEntries(
    parameters.getAll("label").flatMap((label) => {
      const at = label.indexOf("=");
      return at > 0 ? [[label.slice(0, at), label.slice(at + 1)]] : [];
    }),
  );
}

export function filterOf(parameters: URLSearchParams): JobFilter {
  return create(JobFilterSchema, {
    kinds: pick(KINDS, parameters.getAll("kind")),
    states: pick(STATES, parameters.getAll("state")),
    outcomes: pick(OUTCOMES, parameters.getAll("verdict")),
    labels: labelsOf(parameters),
    text: parameters.get("text") ?? "",
  });
}
