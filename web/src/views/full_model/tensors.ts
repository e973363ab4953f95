// The full model's tensors as a grid: a row a place of the model, a column a tensor of that place.
import type { FullModelTensor } from "@gen/full_model_pb.js";

export type Part = "forward" | "gradient" | "parameter";

export interface Cell {
  tensor: FullModelTensor;
  part: Part;
  row: string;
  column: string;
}

export interface Grid {
  rows: readonly string[];
  columns: readonly { name: string; part: Part }[];
  // By row, then column; undefined where that place has no such tensor.
  cells: readonly (readonly (Cell | undefined)[])[];
}

const PARTS: readonly Part[] = ["forward", "gradient", "parameter"];

// "parameter.transformer_blocks.7.attn.to_q.weight" -> the gradient of a parameter, in block 7, attn.to_q.weight.
export function placeOf(name: string): Pick<Cell, "part" | "row" | "column"> {
  const isParameter = name.startsWith("parameter.");
  let rest = name.replace(/^(parameter|nodes|input_gradients)\./, "");
  const part: Part = isParameter ? "parameter" : name.startsWith("input_gradients.") || rest.endsWith(".grad") ? "gradient" : "forward";
  rest = rest.replace(/\.grad$/, "");
  const block = /^(?:block|transformer_blocks|token_refiner\.(refiner_blocks))\.(\d+)(?:\.(.*))?$/.exec(rest);
  if (block) return { part, row: `${block[1] ? "refiner" : "block"} ${block[2]}`, column: block[3] ?? "output" };
  return { part, row: "boundaries", column: rest };
}

export function gridOf(tensors: readonly FullModelTensor[]): Grid {
  const cells = tensors.map((tensor) => ({ tensor, ...placeOf(tensor.name) }));
  const rows = [...new Set(cells.map(({ row }) => row))].sort(
    (a, b) => rankOf(a) - rankOf(b) || numberOf(a) - numberOf(b),
  );
  const columns = PARTS.flatMap((part) =>
    [...new Set(cells.filter((cell) => cell.part === part && cell.row !== "boundaries").map(({ column }) => column))].map((name) => ({ name, part })),
  );
  const places = new Map(cells.map((cell) => [`${cell.row}|${cell.part}|${cell.column}`, cell]));
  return {
    rows: rows.filter((row) => row !== "boundaries"),
    columns,
    cells: rows.filter((row) => row !== "boundaries").map((row) => columns.map(({ name, part }) => places.get(`${row}|${part}|${name}`))),
  };
}

const rankOf = (row: string) => (row.startsWith("refiner") ? 0 : 1);
const numberOf = (row: string) => Number(row.slice(row.lastIndexOf(" ") + 1)) || 0;

// A job that freezes a rule runs no candidate.
export function judgement(tensor: FullModelTensor): "passed" | "failed" | "not judged" {
  if (tensor.passed) return "passed";
  return tensor.candidateError || tensor.gates.length > 0 ? "failed" : "not judged";
}

// Error over bound: the candidate's, or where none was run the largest of the providers'.
export function ratioOf(tensor: FullModelTensor): number {
  if (judgement(tensor) !== "not judged") return tensor.boundRatio;
  return Math.max(...tensor.providerErrors.map(({ relativeL2 }) => relativeL2)) / tensor.bound;
}

export const PART_WORD: Record<Part, string> = {
  forward: "forward",
  gradient: "gradients",
  parameter: "gradients of parameters",
};

// Of each provider's error the smallest and the largest, and the candidate's: the ensemble's spread as a band.
export interface Spread {
  name: string;
  low: number;
  high: number;
  candidate: number;
  bound: number;
}

export function spreadOf(tensors: readonly FullModelTensor[]): Spread[] {
  return [...tensors]
    .sort((a, b) => a.order - b.order)
    .map(({ name, providerErrors, candidateError, bound }) => {
      const errors = providerErrors.map(({ relativeL2 }) => relativeL2);
      return {
        name,
        low: Math.min(...errors),
        high: Math.max(...errors),
        candidate: candidateError?.relativeL2 ?? Number.NaN,
        bound,
      };
    });
}
