// A table of any length: only the rows in view are in the page. Sortable by a click or a key on a heading; saved as CSV.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useMemo, useRef, useState } from "react";
import { csvOf, save } from "./download.js";

export interface Column<Row> {
  id: string;
  heading: string;
  // CSS grid width, e.g. "8rem" or "minmax(12rem, 2fr)".
  width: string;
  // What is sorted by and saved.
  value: (row: Row) => string | number;
  // Default: the value.
  cell?: (row: Row) => ReactNode;
  numeric?: boolean;
}

export interface DataTableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  csvName: string;
  // Rows that can be chosen, with Enter too.
  onChoose?: (row: Row) => void;
  chosen?: string;
  empty?: string;
  height?: string;
  // Called when the last rows come into view.
  onEnd?: () => void;
  actions?: ReactNode;
}

const ROW_PX = 32;

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { columns, rows } = props;
  const [sort, setSort] = useState<{ id: string; descending: boolean } | null>(null);
  const sorted = useMemo(() => {
    const column = columns.find(({ id }) => id === sort?.id);
    if (!sort || !column) return rows;
    const sign = sort.descending ? -1 : 1;
    return [...rows].sort((a, b) => {
      const left = column.value(a);
      const right = column.value(b);
      return left < right ? -sign : left > right ? sign : 0;
    });
  }, [rows, columns, sort]);

  const viewport = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => viewport.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    initialRect: { width: 1000, height: 640 },
  });
  const template = columns.map(({ width }) => width).join(" ");
  // Rows are laid out one by one: a common least width keeps their columns in line.
  const leastWidth = `${columns.reduce((sum, { width }) => sum + Number(/[\d.]+(?=rem)/.exec(width)?.[0] ?? 6) + 0.6, 1)}rem`;

  const onScroll = () => {
    const element = viewport.current;
    if (props.onEnd && element && element.scrollTop + element.clientHeight > element.scrollHeight - 20 * ROW_PX) {
      props.onEnd();
    }
  };
  const onKey = (event: KeyboardEvent<HTMLDivElement>, row: Row) => {
    const step = event.key === "ArrowDown" ? "nextElementSibling" : event.key === "ArrowUp" ? "previousElementSibling" : null;
    if (step) {
      event.preventDefault();
      (event.currentTarget[step] as HTMLElement | null)?.focus();
    } else if ((event.key === "Enter" || event.key === " ") && props.onChoose) {
      event.preventDefault();
      props.onChoose(row);
    }
  };

  return (
    <div className="table">
      <div className="table-tools">
        {props.actions}
        <button
          type="button"
          onClick={() =>
            save(
              `${props.csvName}.csv`,
              csvOf(columns.map(({ heading }) => heading), sorted.map((row) => columns.map(({ value }) => value(row)))),
              "text/csv",
            )
          }
        >
          Save as CSV
        </button>
      </div>
      <div
        className="table-scroll"
        role="table"
        aria-label={props.label}
        aria-rowcount={sorted.length + 1}
        tabIndex={0}
        ref={viewport}
        style={{ maxHeight: props.height ?? "70vh" }}
        onScroll={onScroll}
      >
        <div role="rowgroup" className="table-head" style={{ minWidth: leastWidth }}>
          <div role="row" className="table-row" style={{ gridTemplateColumns: template }}>
            {columns.map(({ id, heading, numeric }) => (
              <div
                key={id}
                role="columnheader"
                className={numeric ? "numeric" : undefined}
                aria-sort={sort?.id === id ? (sort.descending ? "descending" : "ascending") : "none"}
              >
                <button
                  type="button"
                  className="heading"
                  onClick={() =>
                    setSort(sort?.id !== id ? { id, descending: false } : sort.descending ? null : { id, descending: true })
                  }
                >
                  {heading}
                  {sort?.id === id ? (sort.descending ? " ↓" : " ↑") : ""}
                </button>
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" className="table-body" style={{ height: virtual.getTotalSize(), minWidth: leastWidth }}>
          {virtual.getVirtualItems().map((item) => {
            const row = sorted[item.index] as Row;
            const key = props.rowKey(row);
            return (
              <div
                key={key}
                role="row"
                aria-rowindex={item.index + 2}
                aria-selected={props.chosen === key}
                tabIndex={props.onChoose ? 0 : undefined}
                className={`table-row${props.onChoose ? " choosable" : ""}`}
                style={{ gridTemplateColumns: template, transform: `translateY(${item.start}px)` }}
                onClick={() => props.onChoose?.(row)}
                onKeyDown={(event) => onKey(event, row)}
              >
                {columns.map((column) => (
                  <div key={column.id} role="cell" className={column.numeric ? "numeric" : undefined}>
                    {column.cell ? column.cell(row) : column.value(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
      {sorted.length === 0 && <p className="empty">{props.empty ?? "Nothing here."}</p>}
    </div>
  );
}
