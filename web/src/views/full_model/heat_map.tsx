import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import type { FullModelTensor } from "@gen/full_model_pb.js";
import { saveCanvas } from "../../ui/download.js";
import { measure } from "../../ui/format.js";
import { colorOf, FAILING } from "./scale.js";
import { type Cell, gridOf, judgement, PART_WORD, ratioOf } from "./tensors.js";

const CELL_PX = 15;
const LEFT_PX = 74;
const TOP_PX = 150;

interface HeatMapProps {
  tensors: readonly FullModelTensor[];
  chosen: string | undefined;
  onChoose: (name: string) => void;
}

// Blocks down, tensors across, error over bound as colour. The arrow keys move, Enter chooses.
export function HeatMap({ tensors, chosen, onChoose }: HeatMapProps) {
  const grid = useMemo(() => gridOf(tensors), [tensors]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<{ row: number; column: number }>({ row: 0, column: 0 });
  const width = LEFT_PX + grid.columns.length * CELL_PX + 8;
  const height = TOP_PX + grid.rows.length * CELL_PX + 8;
  const cellAt = ({ row, column }: { row: number; column: number }): Cell | undefined => grid.cells[row]?.[column];
  const current = cellAt(at);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const draw = () => {
      const scale = window.devicePixelRatio || 1;
      element.width = width * scale;
      element.height = height * scale;
      const style = getComputedStyle(element);
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.fillStyle = style.backgroundColor;
      context.fillRect(0, 0, width, height);
      context.font = "11px system-ui, sans-serif";
      context.fillStyle = style.color;
      context.textBaseline = "middle";
      grid.columns.forEach(({ name }, column) => {
        context.save();
        context.translate(LEFT_PX + column * CELL_PX + CELL_PX / 2, TOP_PX - 4);
        context.rotate(-Math.PI / 2);
        context.fillText(name.length > 26 ? `${name.slice(0, 25)}…` : name, 0, 0);
        context.restore();
      });
      grid.rows.forEach((row, index) => context.fillText(row, 4, TOP_PX + index * CELL_PX + CELL_PX / 2));
      grid.cells.forEach((cells, row) =>
        cells.forEach((cell, column) => {
          if (!cell) return;
          const [x, y] = [LEFT_PX + column * CELL_PX, TOP_PX + row * CELL_PX];
          context.fillStyle = judgement(cell.tensor) === "failed" ? FAILING : colorOf(ratioOf(cell.tensor));
          context.fillRect(x, y, CELL_PX - 1, CELL_PX - 1);
          if (judgement(cell.tensor) === "failed") {
            context.strokeStyle = "#fff";
            context.beginPath();
            context.moveTo(x + 3, y + 3);
            context.lineTo(x + CELL_PX - 4, y + CELL_PX - 4);
            context.moveTo(x + CELL_PX - 4, y + 3);
            context.lineTo(x + 3, y + CELL_PX - 4);
            context.stroke();
          }
          if (cell.tensor.name === chosen) {
            context.strokeStyle = style.color;
            context.lineWidth = 2;
            context.strokeRect(x - 1, y - 1, CELL_PX + 1, CELL_PX + 1);
            context.lineWidth = 1;
          }
        }),
      );
    };
    draw();
    const themes = new MutationObserver(draw);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => themes.disconnect();
  }, [grid, chosen, width, height]);

  const placeOfPointer = (event: { clientX: number; clientY: number }) => {
    const box = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    return {
      row: Math.floor((event.clientY - box.top - TOP_PX) / CELL_PX),
      column: Math.floor((event.clientX - box.left - LEFT_PX) / CELL_PX),
    };
  };
  const onKey = (event: KeyboardEvent) => {
    const moves: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (move) {
      event.preventDefault();
      setAt(({ row, column }) => ({
        row: Math.min(grid.rows.length - 1, Math.max(0, row + move[0])),
        column: Math.min(grid.columns.length - 1, Math.max(0, column + move[1])),
      }));
    } else if (event.key === "Enter" && current) {
      onChoose(current.tensor.name);
    }
  };

  return (
    <figure className="heat-map">
      <div className="scrolls">
        <canvas
          ref={canvas}
          style={{ width, height }}
          tabIndex={0}
          role="application"
          aria-label={`Error over bound of ${tensors.length} tensors: ${grid.rows.length} blocks down, ${grid.columns.length} tensors across. Arrow keys move, Enter chooses.`}
          aria-describedby="heat-map-cell"
          onPointerMove={(event) => setAt(placeOfPointer(event))}
          onClick={(event) => {
            const cell = cellAt(placeOfPointer(event));
            if (cell) onChoose(cell.tensor.name);
          }}
          onKeyDown={onKey}
        />
      </div>
      <figcaption>
        <p id="heat-map-cell" aria-live="polite">
          {current
            ? `${current.row}, ${PART_WORD[current.part]}, ${current.column}: error over bound ${measure(ratioOf(current.tensor))}${judgement(current.tensor) === "failed" ? ", fails" : ""}`
            : "Point at a cell to read it."}
        </p>
        <span className="row">
          0 <svg className="scale" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            {Array.from({ length: 50 }, (_, index) => (
              <rect key={index} x={index * 2} width="2.1" height="10" fill={colorOf(index / 49)} />
            ))}
          </svg>{" "}
          1, <span className="legend failing">✕ fails</span>
          <button type="button" onClick={() => canvas.current && saveCanvas("full-model.png", canvas.current)}>
            Save as PNG
          </button>
        </span>
      </figcaption>
    </figure>
  );
}
