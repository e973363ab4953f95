import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { Link, useParams } from "react-router";
import type { JobComparison_Row } from "@gen/job_service_pb.js";
import { jobs } from "../../api/client.js";
import { fetchReport } from "../../api/use_report.js";
import { Problem } from "../../app/errors.js";
import { type Column, DataTable } from "../../ui/data_table.js";
import { measure } from "../../ui/format.js";
import { OutcomePill } from "../../ui/status.js";
import { SavedTable } from "../../ui/saved_table.js";

const HeatMap = lazy(() => import("../full_model/heat_map.js").then(({ HeatMap: component }) => ({ default: component })));

export default function Compare() {
  const { a, b } = useParams() as { a: string; b: string };
  const comparison = useQuery({
    queryKey: ["compare", a, b],
    queryFn: ({ signal }) => jobs.compareJobs({ a: `jobs/${a}`, b: `jobs/${b}` }, { signal }),
  });
  const columns = useMemo<Column<JobComparison_Row>[]>(
    () => [
      { id: "task", heading: "Task", width: "10rem", value: ({ task }) => task },
      { id: "entry", heading: "Entry", width: "minmax(16rem, 2fr)", value: ({ entry }) => entry, cell: ({ entry }) => <code>{entry}</code> },
      { id: "measure", heading: "Measure", width: "12rem", value: (row) => row.measure },
      { id: "a", heading: a.slice(0, 10), width: "9rem", numeric: true, value: (row) => row.a, cell: (row) => `${measure(row.a)}${row.passedA ? "" : " ✕"}` },
      { id: "b", heading: b.slice(0, 10), width: "9rem", numeric: true, value: (row) => row.b, cell: (row) => `${measure(row.b)}${row.passedB ? "" : " ✕"}` },
      { id: "change", heading: "Change", width: "8rem", numeric: true, value: (row) => (row.a === 0 ? Number.NaN : row.b / row.a), cell: (row) => (row.a === 0 ? "" : `×${measure(row.b / row.a)}`) },
      { id: "bytes", heading: "Bytes", width: "7rem", value: ({ bytesEqual }) => (bytesEqual === undefined ? "" : bytesEqual ? "equal" : "differ") },
    ],
    [a, b],
  );
  if (comparison.error) return <Problem error={comparison.error} what="compare the two jobs" />;
  if (!comparison.data) return <p role="status">Loading…</p>;
  const { data } = comparison;
  return (
    <article aria-labelledby="compare-heading">
      <h1 id="compare-heading">Two jobs side by side</h1>
      <dl className="facts">
        <dt>
          <Link to={`/jobs/${a}`}>{a}</Link>
        </dt>
        <dd>
          <OutcomePill verdict={data.verdictA} /> {data.verdictA?.sentence}
        </dd>
        <dt>
          <Link to={`/jobs/${b}`}>{b}</Link>
        </dt>
        <dd>
          <OutcomePill verdict={data.verdictB} /> {data.verdictB?.sentence}
        </dd>
      </dl>
      <Differences title="What was asked for" rows={data.specDifferences.map(({ field, a: left, b: right }) => [field, left, right])} a={a} b={b} />
      <Differences title="Identity" rows={data.identityDifferences.map(({ part, a: left, b: right }) => [part, left, right])} a={a} b={b} />
      {[...data.onlyA.map((entry) => `only in ${a}: ${entry}`), ...data.onlyB.map((entry) => `only in ${b}: ${entry}`)].map((text) => (
        <p key={text} className="hint">
          {text}
        </p>
      ))}
      <DataTable label="Measures" columns={columns} rows={data.rows} rowKey={(row) => `${row.task} ${row.entry} ${row.measure}`} csvName={`compare-${a}-${b}`} height="32rem" />
      <Suspense fallback={null}>
        <FullModels a={a} b={b} />
      </Suspense>
    </article>
  );
}

function Differences({ title, rows, a, b }: { title: string; rows: readonly (readonly [string, string, string])[]; a: string; b: string }) {
  if (rows.length === 0) return <p>{title}: the same.</p>;
  return (
    <SavedTable name="differences">
      <caption>{title}</caption>
      <thead>
        <tr>
          <th scope="col">Part</th>
          <th scope="col">{a}</th>
          <th scope="col">{b}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([part, left, right]) => (
          <tr key={part}>
            <th scope="row">{part}</th>
            <td className="mono">{left}</td>
            <td className="mono">{right}</td>
          </tr>
        ))}
      </tbody>
    </SavedTable>
  );
}

// Of two full-model jobs, both heat maps.
function FullModels({ a, b }: { a: string; b: string }) {
  const reports = useQuery({
    queryKey: ["reports", a, b],
    queryFn: ({ signal }) => Promise.all([a, b].map((job) => fetchReport(`jobs/${job}`, jobs.getReport, signal))),
  });
  const models = reports.data?.map((report) => report?.tasks.flatMap(({ kind }) => (kind.case === "fullModel" ? [kind.value] : []))[0]);
  if (!models?.every((model) => model !== undefined)) return null;
  return (
    <>
      {models.map((model, index) => (
        <section key={index === 0 ? a : b} aria-label={`Error over bound, ${index === 0 ? a : b}`}>
          <h2>
            Error over bound, <code>{index === 0 ? a : b}</code>
          </h2>
          <HeatMap tensors={model.tensors} chosen={model.worstTensor} onChoose={() => {}} />
        </section>
      ))}
    </>
  );
}
