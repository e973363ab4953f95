import { expect, test } from "vitest";
import { BLOCK_EDGES, BLOCK_NODES, layoutBlock, NODE_HEIGHT, NODE_WIDTH } from "./block_graph.js";

test("everything that is drawn lies within the picture", () => {
  const layout = layoutBlock();
  expect(layout.nodes.map(({ name }) => name)).toEqual(BLOCK_NODES);
  expect(layout.lines).toHaveLength(BLOCK_EDGES.length);
  const corners = layout.nodes.flatMap(({ x, y }) => [
    { x: x - NODE_WIDTH / 2, y: y - NODE_HEIGHT / 2 },
    { x: x + NODE_WIDTH / 2, y: y + NODE_HEIGHT / 2 },
  ]);
  for (const { x, y } of [...corners, ...layout.lines.flatMap(({ points }) => points)]) {
    expect(x).toBeGreaterThan(0);
    expect(x).toBeLessThan(layout.width);
    expect(y).toBeGreaterThan(0);
    expect(y).toBeLessThan(layout.height);
  }
});
