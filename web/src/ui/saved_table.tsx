// A short table as it is written, with what saves it as CSV beside it.
import { type ReactNode, useRef } from "react";
import { csvOf, save } from "./download.js";

export function SavedTable({ name, children }: { name: string; children: ReactNode }) {
  const table = useRef<HTMLTableElement>(null);
  const onSave = () => {
    const rows = [...(table.current?.rows ?? [])].map((row) => [...row.cells].map(({ textContent }) => textContent ?? ""));
    const [header = [], ...body] = rows;
    save(`${name}.csv`, csvOf(header, body), "text/csv");
  };
  return (
    <div className="saved">
      <table className="measures" ref={table}>
        {children}
      </table>
      <button type="button" onClick={onSave} aria-label={`Save ${name} as CSV`}>
        Save as CSV
      </button>
    </div>
  );
}
