// A uPlot chart that follows its box and the page's colours; saved as PNG.
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { saveCanvas } from "./download.js";

// A theme's colour as a canvas can read it: a custom property may hold light-dark(), a computed colour does not.
function themeColor(within: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  within.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

// The same, seen through.
const faint = (color: string) => color.replace(/^rgb\((.*)\)$/, "rgba($1, 0.3)");

export interface Series {
  label: string;
  values: readonly (number | null)[];
  // A custom property of the theme, e.g. "--accent".
  color: string;
  dashed?: boolean;
  points?: boolean;
  // Index of the series (from 0) that this one makes a filled band with.
  bandWith?: number;
}

interface LineChartProps {
  label: string;
  x: readonly number[];
  series: readonly Series[];
  xLabel: string;
  yLabel: string;
  logarithmic?: boolean;
  height?: number;
  fileName: string;
  // Called with an index of x.
  onChoose?: (index: number) => void;
  describe?: (index: number) => string;
}

export function LineChart(props: LineChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const element = box.current as HTMLDivElement;
    let chart: uPlot | undefined;
    const make = () => {
      chart?.destroy();
      const color = (name: string) => themeColor(element, name);
      const axis = { stroke: color("--text"), grid: { stroke: color("--line") }, ticks: { stroke: color("--line") } };
      const { series, x, logarithmic } = latest.current;
      chart = new uPlot(
        {
          width: Math.max(320, element.clientWidth),
          height: latest.current.height ?? 260,
          scales: { x: { time: false }, y: logarithmic ? { distr: 3 } : {} },
          axes: [
            { ...axis, label: latest.current.xLabel },
            { ...axis, label: latest.current.yLabel, size: 70 },
          ],
          series: [
            { label: latest.current.xLabel },
            ...series.map((each) => ({
              label: each.label,
              stroke: color(each.color),
              width: 1.5,
              dash: each.dashed ? [6, 4] : undefined,
              points: { show: each.points ?? false },
            })),
          ],
          bands: series.flatMap((each, index) =>
            each.bandWith === undefined ? [] : [{ series: [index + 1, each.bandWith + 1] as [number, number], fill: faint(color(each.color)) }],
          ),
          cursor: { drag: { x: true, y: false } },
        },
        [[...x], ...series.map(({ values }) => [...values])] as uPlot.AlignedData,
        element,
      );
      chart.over.addEventListener("click", () => {
        const index = chart?.cursor.idx;
        if (index !== null && index !== undefined) latest.current.onChoose?.(index);
      });
    };
    make();
    const resized = new ResizeObserver(() => chart?.setSize({ width: Math.max(320, element.clientWidth), height: latest.current.height ?? 260 }));
    resized.observe(element);
    const themes = new MutationObserver(make);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      resized.disconnect();
      themes.disconnect();
      chart?.destroy();
    };
    // A chart is made anew with other data; everything else is read when it is made.
  }, [props.x, props.series]);
  return (
    <figure className="chart">
      <div ref={box} role="img" aria-label={props.label} />
      <figcaption>
        <button
          type="button"
          onClick={() => {
            const canvas = box.current?.querySelector("canvas");
            if (canvas) saveCanvas(`${props.fileName}.png`, canvas);
          }}
        >
          Save as PNG
        </button>
      </figcaption>
    </figure>
  );
}
