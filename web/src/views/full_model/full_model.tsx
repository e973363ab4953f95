import { useMemo } from "react";
import { useSearchParams } from "react-router";
import type { AblationRow, FullModelReport, FullModelTensor, Rule } from "@gen/full_model_pb.js";
import type { Report } from "@gen/job_pb.js";
import { type Column, DataTable } from "../../ui/data_table.js";
import { bytes, measure, seconds } from "../../ui/format.js";
import { LineChart } from "../../ui/line_chart.js";
import { OutcomePill, Pill } from "../../ui/status.js";
import { SavedTable } from "../../ui/saved_table.js";
import { HeatMap } from "./heat_map.js";
import { judgement, spreadOf } from "./tensors.js";

// ?layout= and ?tensor= choose what is shown, so that a link opens a tensor.
export default function FullModel({ report }: { report: Report }) {
  const [parameters, setParameters] = useSearchParams();
  const tasks = report.tasks.filter((task) => task.kind.case === "fullModel");
  const layoutOf = (value: unknown) => (value as FullModelReport).layout?.name ?? "";
  const task = tasks.find((each) => layoutOf(each.kind.value) === parameters.get("layout")) ?? tasks[0];
  if (!task) return <p>The report has no full model.</p>;
  const model = task.kind.value as FullModelReport;
  const chosen = parameters.get("tensor") ?? model.worstTensor;
  const choose = (name: string, value: string) =>
    setParameters((now) => {
      const next = new URLSearchParams(now);
      next.set(name, value);
      return next;
    });
  const tensor = model.tensors.find(({ name }) => name === chosen);
  return (
    <section aria-labelledby="model-heading">
      <h2 id="model-heading">
        Full model <OutcomePill verdict={task.verdict} />
      </h2>
      {tasks.length > 1 && (
        <label>
          Layout{" "}
          <select value={layoutOf(model)} onChange={(event) => choose("layout", event.target.value)}>
            {tasks.map((each) => (
              <option key={each.task}>{layoutOf(each.kind.value)}</option>
            ))}
          </select>
        </label>
      )}
      <p>
        {model.tensors.length} tensors, {model.rows} rows, {model.blocks} blocks.{" "}
        {model.worstTensor ? (
          <>
            {model.failing.length} fail. Worst ratio {measure(model.worstRatio)} at{" "}
            <button type="button" onClick={() => choose("tensor", model.worstTensor)}>
              {model.worstTensor}
            </button>
            .{" "}
          </>
        ) : (
          "No candidate was judged: the map shows the providers' largest error over the bound. "
        )}
        {model.wallSeconds > 0 && `Took ${seconds(model.wallSeconds)}`}
        {model.peakMemoryBytes > 0n && `, ${bytes(model.peakMemoryBytes)} at most.`}
      </p>
      <h3>Error over bound</h3>
      <HeatMap tensors={model.tensors} chosen={chosen} onChoose={(name) => choose("tensor", name)} />
      {tensor && <TensorPanel tensor={tensor} model={model} />}
      <Ensemble tensors={model.tensors} onChoose={(name) => choose("tensor", name)} />
      <Tensors tensors={model.tensors} chosen={chosen} onChoose={(name) => choose("tensor", name)} />
      <Ablation rows={model.ablation} />
      {model.rule && <RuleView rule={model.rule} madeHere={model.ruleMadeHere} />}
    </section>
  );
}

const TONE = { passed: "good", failed: "bad", "not judged": "quiet" } as const;

function JudgementPill({ tensor }: { tensor: FullModelTensor }) {
  const word = judgement(tensor);
  return <Pill tone={TONE[word]}>{word}</Pill>;
}

function TensorPanel({ tensor, model }: { tensor: FullModelTensor; model: FullModelReport }) {
  return (
    <aside className="panel" aria-label={`Details of ${tensor.name}`}>
      <h3>
        <code>{tensor.name}</code> <JudgementPill tensor={tensor} />
      </h3>
      <dl className="facts">
        <dt>Candidate's error</dt>
        <dd>{tensor.candidateError ? measure(tensor.candidateError.relativeL2) : "not run"}</dd>
        <dt>Bound</dt>
        <dd>
          {measure(tensor.bound)} (ratio {measure(tensor.boundRatio)})
        </dd>
        {tensor.providerErrors.map((error, index) => (
          <div key={error.subject || index} className="pair">
            <dt>{model.providers[index]?.name ?? `provider ${index + 1}`}</dt>
            <dd>{measure(error.relativeL2)}</dd>
          </div>
        ))}
        <dt>Single-provider rule</dt>
        <dd>
          {tensor.singleProviderPassed ? "passes" : "fails"} ({measure(tensor.singleProviderBound)})
        </dd>
        <dt>Golden norm, SHA-256</dt>
        <dd>
          {measure(tensor.goldenNorm)}, <span className="mono">{tensor.goldenSha256}</span>
        </dd>
        {tensor.gates.map((gate) => (
          <div key={gate.gate} className="pair">
            <dt>
              Gate <code>{gate.gate}</code>
            </dt>
            <dd>
              {gate.notMeasured ? "not measured" : `${measure(gate.value)} where ${measure(gate.bound)} is allowed: ${gate.passed ? "passed" : "failed"}`}
            </dd>
          </div>
        ))}
      </dl>
    </aside>
  );
}

function Ensemble({ tensors, onChoose }: { tensors: readonly FullModelTensor[]; onChoose: (name: string) => void }) {
  const spread = useMemo(() => spreadOf(tensors), [tensors]);
  const x = useMemo(() => spread.map((_, index) => index), [spread]);
  const series = useMemo(() => {
    const positive = (value: number) => (value > 0 && Number.isFinite(value) ? value : null);
    return [
      { label: "providers, largest", values: spread.map(({ high }) => positive(high)), color: "--soft", bandWith: 1 },
      { label: "providers, smallest", values: spread.map(({ low }) => positive(low)), color: "--soft" },
      { label: "bound", values: spread.map(({ bound }) => positive(bound)), color: "--warn", dashed: true },
      { label: "candidate", values: spread.map(({ candidate }) => positive(candidate)), color: "--accent" },
    ];
  }, [spread]);
  return (
    <>
      <h3>The candidate on the ensemble's spread</h3>
      <LineChart
        label="Relative L2 error against golden by tensor in graph order: the band of the providers, the bound, the candidate"
        x={x}
        series={series}
        xLabel="tensor, in graph order"
        yLabel="relative L2 error"
        logarithmic
        fileName="ensemble"
        onChoose={(index) => spread[index] && onChoose(spread[index].name)}
      />
    </>
  );
}

function Tensors(props: { tensors: readonly FullModelTensor[]; chosen: string; onChoose: (name: string) => void }) {
  const columns = useMemo<Column<FullModelTensor>[]>(
    () => [
      { id: "order", heading: "Order", width: "5rem", numeric: true, value: ({ order }) => order },
      { id: "name", heading: "Tensor", width: "minmax(22rem, 2fr)", value: ({ name }) => name, cell: ({ name }) => <code>{name}</code> },
      { id: "ratio", heading: "Error / bound", width: "8rem", numeric: true, value: ({ boundRatio }) => boundRatio, cell: ({ boundRatio }) => measure(boundRatio) },
      {
        id: "error",
        heading: "Error",
        width: "8rem",
        numeric: true,
        value: ({ candidateError }) => candidateError?.relativeL2 ?? Number.NaN,
        cell: ({ candidateError }) => (candidateError ? measure(candidateError.relativeL2) : ""),
      },
      { id: "bound", heading: "Bound", width: "8rem", numeric: true, value: ({ bound }) => bound, cell: ({ bound }) => measure(bound) },
      {
        id: "drift",
        heading: "Drift",
        width: "8rem",
        numeric: true,
        value: ({ candidateDrift }) => candidateDrift?.relativeL2 ?? Number.NaN,
        cell: ({ candidateDrift }) => (candidateDrift ? (candidateDrift.bitwiseEqual ? "bitwise" : measure(candidateDrift.relativeL2)) : ""),
      },
      {
        id: "passed",
        heading: "Verdict",
        width: "7rem",
        value: judgement,
        cell: (tensor) => <JudgementPill tensor={tensor} />,
      },
    ],
    [],
  );
  const worst = useMemo(() => [...props.tensors].sort((a, b) => b.boundRatio - a.boundRatio), [props.tensors]);
  return (
    <>
      <h3>Worst tensors first</h3>
      <DataTable
        label="Tensors"
        columns={columns}
        rows={worst}
        rowKey={({ name }) => name}
        csvName="full-model"
        height="28rem"
        chosen={props.chosen}
        onChoose={({ name }) => props.onChoose(name)}
      />
    </>
  );
}

function Ablation({ rows }: { rows: readonly AblationRow[] }) {
  if (rows.length === 0) return null;
  return (
    <SavedTable name="ablation">
      <caption>Ablation: one group of nodes replaced by the provider's</caption>
      <thead>
        <tr>
          {["Group", "Cleared", "Remaining", "Introduced", "Worst ratio"].map((heading) => (
            <th key={heading} scope="col">
              {heading}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.group}>
            <th scope="row">
              {row.group}
              {row.empty && " (no node)"}
            </th>
            <td title={row.cleared.join("\n")}>{row.cleared.length}</td>
            <td title={row.remaining.join("\n")}>{row.remaining.length}</td>
            <td title={row.introduced.join("\n")}>{row.introduced.length}</td>
            <td>{measure(row.worstRatio)}</td>
          </tr>
        ))}
      </tbody>
    </SavedTable>
  );
}

function RuleView({ rule, madeHere }: { rule: Rule; madeHere: boolean }) {
  return (
    <section aria-label="Rule">
      <h3>Rule</h3>
      <p>
        k = {measure(rule.k)}, floors {measure(rule.floors?.forward ?? 0)} forward and {measure(rule.floors?.gradient ?? 0)} of gradients,{" "}
        {rule.tensors.length} bounds; {madeHere ? "frozen in this job" : "given"}; <code>{rule.sha256.slice(0, 16)}</code>
      </p>
      <ul>
        {rule.providers.map((provider) => (
          <li key={provider.name}>
            {provider.name} {provider.kept ? "" : `dropped: ${provider.droppedBecause}`}
          </li>
        ))}
      </ul>
      <SavedTable name="leave-one-out">
        <caption>Each provider left out and judged by the others</caption>
        <thead>
          <tr>
            {["k", "Left out", "Passed", "Failing", "Worst ratio", "Worst tensor"].map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rule.leaveOneOut.map((held) => (
            <tr key={`${held.k} ${held.provider}`}>
              <th scope="row">{measure(held.k)}</th>
              <td>{held.provider}</td>
              <td>{held.passed ? "yes" : "no"}</td>
              <td>{held.failing}</td>
              <td>{measure(held.worstRatio)}</td>
              <td>{held.worstTensor}</td>
            </tr>
          ))}
        </tbody>
      </SavedTable>
    </section>
  );
}
