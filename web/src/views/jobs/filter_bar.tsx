import { useEffect, useState } from "react";
import { KINDS, OUTCOMES, STATES } from "./filter.js";

interface FilterBarProps {
  parameters: URLSearchParams;
  onChange: (parameters: URLSearchParams, options: { replace: boolean }) => void;
}

const TYPING_MS = 250;

export function FilterBar({ parameters, onChange }: FilterBarProps) {
  const [text, setText] = useState(parameters.get("text") ?? "");
  const [label, setLabel] = useState("");
  const change = (edit: (next: URLSearchParams) => void, replace = false) => {
    const next = new URLSearchParams(parameters);
    edit(next);
    onChange(next, { replace });
  };
  useEffect(() => {
    if (text === (parameters.get("text") ?? "")) return;
    const timer = setTimeout(() => change((next) => (text ? next.set("text", text) : next.delete("text")), true), TYPING_MS);
    return () => clearTimeout(timer);
  });

  const choice = (name: string, title: string, choices: readonly { word: string }[]) => (
    <label>
      {title}{" "}
      <select
        value={parameters.get(name) ?? ""}
        onChange={(event) => change((next) => (event.target.value ? next.set(name, event.target.value) : next.delete(name)))}
      >
        <option value="">any</option>
        {choices.map(({ word }) => (
          <option key={word}>{word}</option>
        ))}
      </select>
    </label>
  );

  return (
    <form
      className="row filters"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (label.indexOf("=") < 1) return;
        change((next) => next.append("label", label));
        setLabel("");
      }}
    >
      <label>
        Search <input type="search" value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      {choice("kind", "Kind", KINDS)}
      {choice("state", "State", STATES)}
      {choice("verdict", "Verdict", OUTCOMES)}
      <label>
        Label{" "}
        <input value={label} placeholder="key=value, then Enter" onChange={(event) => setLabel(event.target.value)} />
      </label>
      {parameters.getAll("label").map((each) => (
        <button
          type="button"
          key={each}
          aria-label={`Remove label ${each}`}
          onClick={() => change((next) => next.delete("label", each))}
        >
          {each} ×
        </button>
      ))}
    </form>
  );
}
