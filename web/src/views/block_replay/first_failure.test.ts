import { create } from "@bufbuild/protobuf";
import { FirstFailureSchema, GateResultSchema } from "@gen/drift_pb.js";
import { expect, test } from "vitest";
import { failureText } from "./first_failure.js";

const gates = [
  create(GateResultSchema, { gate: "repeat", value: 0, bound: 0 }),
  create(GateResultSchema, { gate: "isolated_error", value: 0.2391, bound: 0.0076 }),
];

const text = (gate: string, where: string) => failureText(create(FirstFailureSchema, { entry: "attention", gate, where }), gates);

test("the first failure says where it is, which gate fails, and by how much", () => {
  expect(text("isolated_error", "tiny")).toBe(" in tiny (isolated_error: 0.239 where 7.60e-03 is allowed)");
});

test("a gate that allows nothing, or is not there, has no figures", () => {
  expect(text("repeat", "tiny")).toBe(" in tiny (repeat)");
  expect(text("executed", "tiny")).toBe(" in tiny (executed)");
});

test("what is not known is left out", () => {
  expect(text("", "")).toBe("");
  expect(text("isolated_error", "")).toBe(" (isolated_error: 0.239 where 7.60e-03 is allowed)");
});
