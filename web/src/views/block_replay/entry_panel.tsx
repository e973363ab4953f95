import { NodeStatus } from "@gen/identity_pb.js";
import { type EqualityCheck, Equality, type TensorComparison } from "@gen/drift_pb.js";
import type { EntryReport } from "@gen/block_replay_pb.js";
import { measure } from "../../ui/format.js";
import { Pill } from "../../ui/status.js";
import { rowText } from "../../ui/row_text.js";
import { SavedTable } from "../../ui/saved_table.js";

const STATUS_WORD: Record<NodeStatus, string> = {
  [NodeStatus.UNSPECIFIED]: "unknown",
  [NodeStatus.BOUND]: "bound",
  [NodeStatus.INTERIM]: "interim",
  [NodeStatus.REFERENCE]: "reference",
};

// All that a report says of one node's value or gradient.
export function EntryPanel({ entry }: { entry: EntryReport }) {
  const { implementation: made } = entry;
  return (
    <aside className="panel" aria-label={`Details of ${entry.name}`}>
      <h3>
        <code>{entry.name}</code> {entry.passed ? <Pill tone="good">passed</Pill> : <Pill tone="bad">failed</Pill>}
      </h3>
      <dl className="facts">
        <dt>Requested, actual</dt>
        <dd>
          {made ? `${made.requested}, ${made.actual}` : "from a file"}
          {made && made.requested !== made.actual && <strong> (not what was asked for)</strong>}
        </dd>
        {made && (
          <>
            <dt>Owner, status</dt>
            <dd>
              {made.owner}, {STATUS_WORD[made.status]}
            </dd>
          </>
        )}
        <dt>SHA-256</dt>
        <dd className="mono">{entry.sha256}</dd>
        <dt>Repeat</dt>
        <dd>{equalityText(entry.repeat)}</dd>
        <dt>In another batch</dt>
        <dd>{equalityText(entry.batch)}</dd>
        <dt>Error over provider's</dt>
        <dd>{measure(entry.errorRatio)}</dd>
      </dl>
      <SavedTable name="comparisons">
        <caption className="hidden">Comparisons of {entry.name}</caption>
        <thead>
          <tr>
            <th scope="col">Comparison</th>
            <th scope="col">Relative L2</th>
            <th scope="col">Max, u</th>
            <th scope="col">Max</th>
            <th scope="col">p50</th>
            <th scope="col">p99</th>
            <th scope="col">p99.9</th>
            <th scope="col">Cosine</th>
            <th scope="col">First differing row</th>
          </tr>
        </thead>
        <tbody>
          <MeasureRow name="provider, chained" comparison={entry.chained} />
          <MeasureRow name="provider, isolated" comparison={entry.isolated} />
          <MeasureRow name="golden, chained" comparison={entry.chainedError} />
          <MeasureRow name="golden, isolated" comparison={entry.isolatedError} />
          <MeasureRow name="provider's own error" comparison={entry.providerError} />
        </tbody>
      </SavedTable>
      <h4>Gates</h4>
      <ul className="gates">
        {entry.gates.map((gate) => (
          <li key={gate.gate}>
            {gate.notMeasured ? <Pill tone="quiet">not measured</Pill> : gate.passed ? <Pill tone="good">passed</Pill> : <Pill tone="bad">failed</Pill>}{" "}
            <code>{gate.gate}</code> {!gate.notMeasured && `${measure(gate.value)} where ${measure(gate.bound)} is allowed`}
            {gate.passedBy && ` (${gate.passedBy})`}
          </li>
        ))}
      </ul>
    </aside>
  );
}

function equalityText(check: EqualityCheck | undefined): string {
  if (!check || check.result === Equality.NOT_MEASURED || check.result === Equality.UNSPECIFIED) return "not measured";
  if (check.result === Equality.EQUAL) return `equal in ${check.executions} executions`;
  return (
    `differs: ${check.differingElements} elements, first at ${rowText(check.firstDifferingRow)} column ` +
    `${check.firstDifferingColumn}: ${measure(check.value)} and ${measure(check.otherValue)} (${check.variation})`
  );
}

function MeasureRow({ name, comparison }: { name: string; comparison: TensorComparison | undefined }) {
  if (!comparison) return null;
  if (comparison.incomparable) {
    return (
      <tr>
        <th scope="row">{name}</th>
        <td colSpan={8}>{comparison.incomparable}</td>
      </tr>
    );
  }
  const { absDiff } = comparison;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{comparison.bitwiseEqual ? "bitwise" : measure(comparison.relativeL2)}</td>
      <td>{measure(comparison.maxU)}</td>
      <td>{measure(comparison.maxAbs)}</td>
      <td>{absDiff ? measure(absDiff.p50) : ""}</td>
      <td>{absDiff ? measure(absDiff.p99) : ""}</td>
      <td>{absDiff ? measure(absDiff.p999) : ""}</td>
      <td>{measure(comparison.cosine)}</td>
      <td>{rowText(comparison.firstDifferingRow)}</td>
    </tr>
  );
}
