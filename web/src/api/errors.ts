// What to show of a failed call: the server's own sentence, and the fields it names.
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema } from "../gen/proto/google/rpc/error_details_pb.js";

export interface FieldProblem {
  field: string;
  description: string;
}

export function messageOf(error: unknown): string {
  return error instanceof ConnectError ? error.rawMessage : error instanceof Error ? error.message : String(error);
}

export function fieldProblemsOf(error: unknown): FieldProblem[] {
  if (!(error instanceof ConnectError)) return [];
  return error
    .findDetails(BadRequestSchema)
    .flatMap((detail) => detail.fieldViolations.map(({ field, description }) => ({ field, description })));
}

export function wantsSignIn(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.Unauthenticated;
}

export function wantsOtherRole(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.PermissionDenied;
}

// A call that will not succeed by being repeated.
export function isFinal(error: unknown): boolean {
  const passing = [Code.Unavailable, Code.DeadlineExceeded, Code.Aborted, Code.ResourceExhausted, Code.Unknown];
  return error instanceof ConnectError && !passing.includes(error.code);
}
