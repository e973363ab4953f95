import { RowKind, type RowLocation } from "@gen/layout_pb.js";

// "row 12 (video 0, 3, 4)": where a row is, and what it holds.
export function rowText(location: RowLocation | undefined): string {
  if (!location) return "";
  const kind = (RowKind[location.kind] ?? "").toLowerCase();
  return `row ${location.row} (${kind}${location.coordinate.length ? ` ${location.coordinate.join(", ")}` : ""})`;
}
