import type { JsonValue } from "@bufbuild/protobuf";

const SHOWN_ITEMS = 200;

// Any message, as a tree that opens.
export function JsonView({ value, name }: { value: JsonValue; name: string }) {
  if (value === null || typeof value !== "object") {
    return (
      <div className="json">
        <span className="soft">{name}</span> {String(value)}
      </div>
    );
  }
  const items = Array.isArray(value) ? value.map((item, index) => [String(index), item] as const) : Object.entries(value);
  return (
    <details className="json" open={items.length < 12}>
      <summary>
        {name} <span className="soft">{Array.isArray(value) ? `${items.length} items` : ""}</span>
      </summary>
      {items.slice(0, SHOWN_ITEMS).map(([key, item]) => (
        <JsonView key={key} name={key} value={item as JsonValue} />
      ))}
      {items.length > SHOWN_ITEMS && <p className="hint">and {items.length - SHOWN_ITEMS} more: see `plumbline report --format=json`</p>}
    </details>
  );
}
