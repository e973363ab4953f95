import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { FullModelTensorSchema } from "@gen/full_model_pb.js";
import { gridOf, placeOf, spreadOf } from "./tensors.js";

describe("placeOf", () => {
  it.each([
    ["nodes.block.7", "forward", "block 7", "output"],
    ["nodes.block.49.grad", "gradient", "block 49", "output"],
    ["parameter.transformer_blocks.3.attn.to_q.weight", "parameter", "block 3", "attn.to_q.weight"],
    ["parameter.token_refiner.refiner_blocks.1.ff.net.2.weight", "parameter", "refiner 1", "ff.net.2.weight"],
    ["nodes.token_refiner.refiner_blocks.0.grad", "gradient", "refiner 0", "output"],
    ["nodes.token_refiner", "forward", "boundaries", "token_refiner"],
    ["input_gradients.hidden_states", "gradient", "boundaries", "hidden_states"],
    ["output.video", "forward", "boundaries", "output.video"],
  ])("%s", (name, part, row, column) => {
    expect(placeOf(name)).toEqual({ part, row, column });
  });
});

const tensor = (name: string, order: number, errors: number[], candidate: number) =>
  create(FullModelTensorSchema, {
    name,
    order,
    bound: 1,
    providerErrors: errors.map((relativeL2) => ({ relativeL2 })),
    candidateError: { relativeL2: candidate },
  });

describe("gridOf", () => {
  it("has refiners before blocks, in the order of their numbers, and a cell for each tensor of them", () => {
    const names = ["nodes.block.10", "nodes.block.2", "nodes.token_refiner.refiner_blocks.0", "parameter.transformer_blocks.2.norm1.weight"];
    const grid = gridOf(names.map((name, order) => tensor(name, order, [1], 1)));
    expect(grid.rows).toEqual(["refiner 0", "block 2", "block 10"]);
    expect(grid.columns).toEqual([
      { name: "output", part: "forward" },
      { name: "norm1.weight", part: "parameter" },
    ]);
    expect(grid.cells.map((row) => row.map((cell) => cell?.tensor.name))).toEqual([
      ["nodes.token_refiner.refiner_blocks.0", undefined],
      ["nodes.block.2", "parameter.transformer_blocks.2.norm1.weight"],
      ["nodes.block.10", undefined],
    ]);
  });
});

describe("spreadOf", () => {
  it("is in graph order, from the smallest provider's error to the largest", () => {
    expect(spreadOf([tensor("b", 1, [3, 2], 2.5), tensor("a", 0, [1], 4)])).toEqual([
      { name: "a", low: 1, high: 1, candidate: 4, bound: 1 },
      { name: "b", low: 2, high: 3, candidate: 2.5, bound: 1 },
    ]);
  });
});
