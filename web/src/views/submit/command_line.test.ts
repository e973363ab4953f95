import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { JobSpecSchema } from "@gen/job_pb.js";
import { commandLineOf } from "./command_line.js";
import { layoutsOf, layoutText } from "./layout.js";

it("names what a block replay asks for, quoting what a shell would read", () => {
  const spec = create(JobSpecSchema, {
    checkpoint: "synthetic:tiny",
    composition: "candidate+provider:attention",
    inject: "last-keys",
    labels: { team: "it's ours" },
    priority: -3,
    kind: { case: "blockReplay", value: { block: 2, backward: true, layouts: layoutsOf("tiny, small; 104,2,12,16,8,first") } },
  });
  expect(commandLineOf(spec)).toBe(
    "plumbline submit block-replay --checkpoint=synthetic:tiny --block=2 --layouts=tiny,small " +
      "--layout=104,2,12,16,8,first --backward --composition=candidate+provider:attention --inject=last-keys " +
      "--label='team=it'\\''s ours' --priority=-3",
  );
});

it("leaves out what is the default", () => {
  const spec = create(JobSpecSchema, { checkpoint: "H3", kind: { case: "generation", value: { authorisation: { case: "preflight", value: true } } } });
  expect(commandLineOf(spec)).toBe("plumbline submit generation --checkpoint=H3 --contract=contract.json --preflight");
});

it.each(["tiny", "104,2,12,16,8,first", "1,2,3,4,5,none", "1,2,3,4,5,first+last"])("reads and writes layout %s", (text) => {
  expect(layoutsOf(text).map(layoutText)).toEqual([text]);
});
