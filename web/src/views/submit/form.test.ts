import { equals } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { JobSpecSchema } from "@gen/job_pb.js";
import { EMPTY_FORM, FieldMistake, type Form, formOf, seedsOf, specOf } from "./form.js";

const filled = (fields: Partial<Form>): Form => ({ ...EMPTY_FORM, ...fields });

describe("a specification's form makes it again", () => {
  it.each<Partial<Form>>([
    { kind: "block-replay", layouts: "tiny; 104,2,12,16,8,first", block: "1", labels: "team=attention", priority: "5" },
    { kind: "full-model", providers: "default, sdpa-math", ablation: true, freezeRule: false, rule: "worker:rules/a.json" },
    { kind: "sweep", seeds: "0..3, 7", swapEachNode: true },
    { kind: "generation", contract: '{"num_frames": 5}', conditioning: "artifacts/3", gate: "jobs/ab", seeds: "42" },
    { kind: "diagnostic", run: "runs/ab", step: "2" },
  ])("$kind", (fields) => {
    const spec = specOf(filled(fields));
    const again = formOf(spec);
    expect(again?.kind).toBe(fields.kind);
    expect(equals(JobSpecSchema, specOf(again as Form), spec)).toBe(true);
  });
});

describe("what cannot be read is said with its field", () => {
  it.each<[string, Partial<Form>]>([
    ["block", { block: "one" }],
    ["labels", { labels: "attention" }],
    ["seeds", { kind: "sweep", seeds: "5..1" }],
    ["contract", { kind: "generation", contract: '{"frames_of_no_such_name": 5}' }],
    ["candidate", { candidate: "/etc/passwd" }],
  ])("%s", (field, fields) => {
    try {
      specOf(filled(fields));
    } catch (error) {
      expect(error).toBeInstanceOf(FieldMistake);
      expect((error as FieldMistake).field).toBe(field);
      return;
    }
    expect.fail("was taken");
  });
});

it("takes ranges of seeds", () => {
  expect(seedsOf("1, 4..6")).toEqual([1n, 4n, 5n, 6n]);
});
