import { useMemo, useRef } from "react";
import type { EntryReport } from "@gen/block_replay_pb.js";
import { save, standaloneSvg } from "../../ui/download.js";
import { measure } from "../../ui/format.js";
import { layoutBlock, NODE_HEIGHT, NODE_WIDTH } from "./block_graph.js";
import { type Direction, DRIFT_WORD, driftOf, entryOfNode, type Feed, judge } from "./drift.js";

interface NodeGraphProps {
  entries: readonly EntryReport[];
  feed: Feed;
  direction: Direction;
  chosen: string | undefined;
  firstFailure: string | undefined;
  firstDrift: string | undefined;
  onChoose: (entry: string) => void;
}

// A shape beside each colour, for eyes and prints that have none.
const MARK = { bitwise: "=", within: "≈", failing: "✕", absent: "·" } as const;

export function NodeGraph(props: NodeGraphProps) {
  const layout = useMemo(layoutBlock, []);
  const svg = useRef<SVGSVGElement>(null);
  return (
    <figure className="graph">
      <svg ref={svg} viewBox={`0 0 ${layout.width} ${layout.height}`} role="group" aria-label={`Block, ${props.direction}, ${props.feed}`}>
        {layout.lines.map(({ from, to, points }) => (
          <polyline key={`${from} ${to}`} className="edge" points={points.map(({ x, y }) => `${x},${y}`).join(" ")} />
        ))}
        {layout.nodes.map(({ name, x, y }) => {
          const entry = entryOfNode(props.entries, name, props.direction);
          const drift = judge(entry, props.feed);
          const comparison = entry && driftOf(entry, props.feed);
          const figure = !entry ? "" : comparison?.bitwiseEqual ? "bitwise" : comparison ? measure(comparison.relativeL2) : "";
          const called = entry && [props.firstFailure === entry.name && "first failure", props.firstDrift === entry.name && "first drift"].filter(Boolean);
          return (
            <g
              key={name}
              transform={`translate(${x - NODE_WIDTH / 2}, ${y - NODE_HEIGHT / 2})`}
              className={`node ${drift}${entry && entry.name === props.chosen ? " chosen" : ""}${called?.length ? " called" : ""}`}
              role="button"
              tabIndex={entry ? 0 : -1}
              aria-disabled={!entry}
              aria-pressed={entry !== undefined && entry.name === props.chosen}
              aria-label={`${name}: ${DRIFT_WORD[drift]}${figure && figure !== "bitwise" ? `, relative L2 ${figure}` : ""}${called?.length ? `, ${called.join(", ")}` : ""}`}
              onClick={() => entry && props.onChoose(entry.name)}
              onKeyDown={(event) => {
                if (!entry || (event.key !== "Enter" && event.key !== " ")) return;
                event.preventDefault();
                props.onChoose(entry.name);
              }}
            >
              <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="6" />
              <text x="8" y="18" className="name">
                {name}
              </text>
              <text x="8" y="35" className="figure">
                {MARK[drift]} {figure}
              </text>
            </g>
          );
        })}
      </svg>
      <figcaption className="row">
        {(["bitwise", "within", "failing", "absent"] as const).map((drift) => (
          <span key={drift} className={`legend ${drift}`}>
            {MARK[drift]} {DRIFT_WORD[drift]}
          </span>
        ))}
        <button type="button" onClick={() => svg.current && save("block.svg", standaloneSvg(svg.current), "image/svg+xml")}>
          Save as SVG
        </button>
      </figcaption>
    </figure>
  );
}
