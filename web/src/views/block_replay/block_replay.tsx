import { useMemo } from "react";
import { useSearchParams } from "react-router";
import type { BlockReplayReport, EntryReport } from "@gen/block_replay_pb.js";
import type { Report, TaskReport } from "@gen/job_pb.js";
import { type Column, DataTable } from "../../ui/data_table.js";
import { measure } from "../../ui/format.js";
import { OutcomePill } from "../../ui/status.js";
import { SavedTable } from "../../ui/saved_table.js";
import { type Direction, DRIFT_WORD, driftOf, entryOfNode, errorOf, type Feed, judge } from "./drift.js";
import { BLOCK_NODES } from "./block_graph.js";
import { EntryPanel } from "./entry_panel.js";
import { failureText } from "./first_failure.js";
import { NodeGraph } from "./node_graph.js";

// ?layout=, ?feed=, ?direction= and ?node= choose what is shown, so that a link opens a node.
export default function BlockReplay({ report }: { report: Report }) {
  const [parameters, setParameters] = useSearchParams();
  const tasks = report.tasks.filter((task) => task.kind.case === "blockReplay");
  const layoutOf = (task: TaskReport) => (task.kind.value as BlockReplayReport).layout?.name ?? task.title;
  const task = tasks.find((each) => layoutOf(each) === parameters.get("layout")) ?? tasks[0];
  const set = (name: string, value: string) =>
    setParameters(
      (now) => {
        const next = new URLSearchParams(now);
        next.set(name, value);
        return next;
      },
      { replace: name !== "node" },
    );
  if (!task) return <p>The report has no block replay.</p>;
  const replay = task.kind.value as BlockReplayReport;
  const feed: Feed = parameters.get("feed") === "isolated" ? "isolated" : "chained";
  const direction: Direction = parameters.get("direction") === "backward" && replay.backward ? "backward" : "forward";
  return (
    <section aria-labelledby="replay-heading">
      <h2 id="replay-heading">
        Block {replay.block} <OutcomePill verdict={task.verdict} />
      </h2>
      <div className="row">
        <Choice name="Layout" value={layoutOf(task)} choices={tasks.map(layoutOf)} onChange={(value) => set("layout", value)} />
        <Choice name="Fed" value={feed} choices={["chained", "isolated"]} onChange={(value) => set("feed", value)} />
        <Choice
          name="Direction"
          value={direction}
          choices={replay.backward ? ["forward", "backward"] : ["forward"]}
          onChange={(value) => set("direction", value)}
        />
        <span className="soft">
          {replay.rows} rows{task.control && `; control ${task.control.fault} ${task.control.caught ? "caught" : "not caught"} at ${task.control.expectedEntry}`}
        </span>
      </div>
      <Replay key={task.task} task={task} replay={replay} feed={feed} direction={direction} chosen={parameters.get("node") ?? undefined} onChoose={(entry) => set("node", entry)} />
    </section>
  );
}

interface ReplayProps {
  task: TaskReport;
  replay: BlockReplayReport;
  feed: Feed;
  direction: Direction;
  chosen: string | undefined;
  onChoose: (entry: string) => void;
}

function Replay({ task, replay, feed, direction, chosen, onChoose }: ReplayProps) {
  const failure = task.verdict?.firstFailure;
  const drift =
    feed === "isolated"
      ? replay.firsts?.firstIsolatedDrift
      : direction === "forward"
        ? replay.firsts?.firstDrift
        : BLOCK_NODES.toReversed()
            .map((node) => entryOfNode(replay.entries, node, direction))
            .find((entry) => entry && !driftOf(entry, feed)?.bitwiseEqual)?.name;
  const panel = replay.entries.find(({ name }) => name === (chosen ?? failure?.entry ?? drift)) ?? replay.entries[0];
  return (
    <>
      <p>
        {failure?.entry ? (
          <>
            First failure:{" "}
            <button type="button" onClick={() => onChoose(failure.entry)}>
              {failure.entry}
            </button>
            {failureText(failure, replay.entries.find(({ name }) => name === failure.entry)?.gates ?? [])}.{" "}
          </>
        ) : (
          "No gate fails. "
        )}
        {drift ? (
          <>
            First drift:{" "}
            <button type="button" onClick={() => onChoose(drift)}>
              {drift}
            </button>
            .
          </>
        ) : (
          "Nothing drifts."
        )}
        {replay.firsts?.firstRepeatDrift && ` First not repeatable: ${replay.firsts.firstRepeatDrift}.`}
        {replay.firsts?.firstBatchDrift && ` First to depend on its batch: ${replay.firsts.firstBatchDrift}.`}
      </p>
      <NodeGraph entries={replay.entries} feed={feed} direction={direction} chosen={panel?.name} firstFailure={failure?.entry} firstDrift={drift} onChoose={onChoose} />
      {panel && <EntryPanel entry={panel} />}
      <Entries entries={replay.entries} feed={feed} chosen={panel?.name} onChoose={onChoose} />
      <Timings replay={replay} />
    </>
  );
}

function Entries(props: { entries: readonly EntryReport[]; feed: Feed; chosen: string | undefined; onChoose: (entry: string) => void }) {
  const { feed } = props;
  const columns = useMemo<Column<EntryReport>[]>(() => {
    const number = (value: number | undefined) => value ?? Number.NaN;
    const l2 = (id: string, heading: string, of: (entry: EntryReport) => number): Column<EntryReport> => ({
      id,
      heading,
      width: "9.5rem",
      numeric: true,
      value: of,
      cell: (entry) => (Number.isNaN(of(entry)) ? "" : measure(of(entry))),
    });
    return [
      { id: "name", heading: "Entry", width: "minmax(14rem, 1fr)", value: ({ name }) => name, cell: ({ name }) => <code>{name}</code> },
      { id: "actual", heading: "Implementation", width: "12rem", value: ({ implementation }) => implementation?.actual ?? "file" },
      { id: "drift", heading: "Drift", width: "7rem", value: (entry) => DRIFT_WORD[judge(entry, feed)] },
      l2("l2", `Drift, ${feed}`, (entry) => number(driftOf(entry, feed)?.relativeL2)),
      l2("error", "Error", (entry) => number(errorOf(entry, feed)?.relativeL2)),
      l2("provider", "Provider's error", (entry) => number(entry.providerError?.relativeL2)),
      l2("ratio", "Ratio", (entry) => entry.errorRatio),
    ];
  }, [feed]);
  return (
    <>
      <h3>All entries</h3>
      <DataTable
        label="Entries"
        columns={columns}
        rows={props.entries}
        rowKey={({ name }) => name}
        csvName="block-replay"
        height="28rem"
        chosen={props.chosen}
        onChoose={({ name }) => props.onChoose(name)}
      />
    </>
  );
}

function Timings({ replay }: { replay: BlockReplayReport }) {
  if (replay.timings.length === 0) return null;
  return (
    <SavedTable name="timings">
      <caption>Time, candidate against provider</caption>
      <thead>
        <tr>
          <th scope="col">Work</th>
          <th scope="col">Candidate, ms</th>
          <th scope="col">Provider, ms</th>
          <th scope="col">Ratio</th>
        </tr>
      </thead>
      <tbody>
        {replay.timings.map((pair) => (
          <tr key={pair.work}>
            <th scope="row">{pair.work}</th>
            <td>{pair.candidate ? measure(pair.candidate.medianMs) : ""}</td>
            <td>{pair.provider ? measure(pair.provider.medianMs) : ""}</td>
            <td>{measure(pair.ratio)}</td>
          </tr>
        ))}
      </tbody>
    </SavedTable>
  );
}

interface ChoiceProps {
  name: string;
  value: string;
  choices: readonly string[];
  onChange: (value: string) => void;
}

function Choice({ name, value, choices, onChange }: ChoiceProps) {
  return (
    <label>
      {name}{" "}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    </label>
  );
}
