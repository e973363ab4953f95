// What a block's verdict says of the entry that failed first, as the service's sentence has it.
import type { FirstFailure, GateResult } from "@gen/drift_pb.js";
import { measure } from "../../ui/format.js";

// What follows the entry's name: " in tiny (isolated_error: 0.239 where 7.60e-03 is allowed)". A gate that allows nothing
// has no figures.
export function failureText(failure: FirstFailure, gates: readonly GateResult[]): string {
  const gate = gates.find((each) => each.gate === failure.gate);
  const figures = gate && gate.bound !== 0 ? `: ${measure(gate.value)} where ${measure(gate.bound)} is allowed` : "";
  return (failure.where && ` in ${failure.where}`) + (failure.gate && ` (${failure.gate}${figures})`);
}
