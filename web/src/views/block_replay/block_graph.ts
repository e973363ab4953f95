// The block's nodes and what flows between them, as the model's graph defines them; names are those of the reports.
import dagre from "@dagrejs/dagre";

export const BLOCK_EDGES: readonly (readonly [string, string])[] = [
  ["adaln_projection", "norm1"],
  ["adaln_projection", "residual_attn"],
  ["adaln_projection", "norm2"],
  ["adaln_projection", "residual_mlp"],
  ["norm1", "q_proj"],
  ["norm1", "k_proj"],
  ["norm1", "v_proj"],
  ["q_proj", "q_norm"],
  ["k_proj", "k_norm"],
  ["q_norm", "rope_q"],
  ["k_norm", "rope_k"],
  ["rope_q", "attention"],
  ["rope_k", "attention"],
  ["v_proj", "attention"],
  ["attention", "o_proj"],
  ["o_proj", "residual_attn"],
  ["residual_attn", "norm2"],
  ["norm2", "ffn_gate_up"],
  ["ffn_gate_up", "swiglu"],
  ["swiglu", "ffn_down"],
  ["ffn_down", "residual_mlp"],
  ["residual_attn", "residual_mlp"],
];

export const BLOCK_NODES: readonly string[] = [...new Set(BLOCK_EDGES.flat())];

export interface Placed {
  name: string;
  x: number;
  y: number;
}

export interface Line {
  from: string;
  to: string;
  points: readonly { x: number; y: number }[];
}

export interface Layout {
  width: number;
  height: number;
  nodes: readonly Placed[];
  lines: readonly Line[];
}

export const NODE_WIDTH = 118;
export const NODE_HEIGHT = 44;
const MARGIN = 8;

// Left to right, in pixels; x and y are centres.
export function layoutBlock(): Layout {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 26, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const name of BLOCK_NODES) graph.setNode(name, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const [from, to] of BLOCK_EDGES) graph.setEdge(from, to);
  dagre.layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  const lines: Line[] = BLOCK_EDGES.map(([from, to]) => ({ from, to, points: graph.edge(from, to).points }));
  // The size that dagre gives is that of the nodes; lines may run above and below them.
  const ys = lines.flatMap(({ points }) => points.map(({ y }) => y));
  const above = Math.max(0, MARGIN - Math.min(...ys));
  const below = Math.max(0, Math.max(...ys) + MARGIN - height);
  return {
    width,
    height: above + height + below,
    nodes: BLOCK_NODES.map((name) => ({ name, x: graph.node(name).x, y: graph.node(name).y + above })),
    lines: lines.map((line) => ({ ...line, points: line.points.map(({ x, y }) => ({ x, y: y + above })) })),
  };
}
