import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "react-router";
import { type Worker, WorkerState } from "@gen/worker_pb.js";
import { admin } from "../../api/client.js";
import { Problem } from "../../app/errors.js";
import { type Column, DataTable } from "../../ui/data_table.js";
import { age, bytes, idOf, workerStateWord } from "../../ui/format.js";
import { Pill, ProgressBar, type Tone } from "../../ui/status.js";
import { useNowMs } from "../../ui/use_now.js";

const REFRESH_MS = 2000;
const TONE: Partial<Record<WorkerState, Tone>> = {
  [WorkerState.ACTIVE]: "good",
  [WorkerState.DRAINING]: "warn",
  [WorkerState.LOST]: "bad",
};

const jobOf = (task: string) => task.split("/").slice(0, 2).join("/");

export default function Workers() {
  const now = useNowMs();
  const queries = useQueryClient();
  const workers = useQuery({
    queryKey: ["workers"],
    refetchInterval: REFRESH_MS,
    queryFn: async ({ signal }) => {
      const found: Worker[] = [];
      let pageToken = "";
      do {
        const page = await admin.listWorkers({ pageSize: 1000, pageToken }, { signal });
        found.push(...page.workers);
        pageToken = page.nextPageToken;
      } while (pageToken);
      return found;
    },
  });
  const drain = useMutation({
    mutationFn: (name: string) => admin.drainWorker({ name, reason: "from the dashboard" }),
    onSettled: () => queries.invalidateQueries({ queryKey: ["workers"] }),
  });
  const columns = useMemo<Column<Worker>[]>(
    () => [
      { id: "name", heading: "Worker", width: "14rem", value: ({ name }) => idOf(name), cell: ({ name }) => <code>{idOf(name)}</code> },
      {
        id: "state",
        heading: "State",
        width: "8rem",
        value: ({ state }) => workerStateWord(state),
        cell: ({ state }) => <Pill tone={TONE[state] ?? "quiet"}>{workerStateWord(state)}</Pill>,
      },
      { id: "device", heading: "Device", width: "minmax(12rem, 1fr)", value: ({ capabilities }) => capabilities?.device?.product ?? "" },
      {
        id: "memory",
        heading: "Memory",
        width: "12rem",
        numeric: true,
        value: ({ capabilities }) => Number(capabilities?.device?.memoryBytes ?? 0),
        cell: ({ capabilities, usage }) =>
          `${usage ? `${bytes(usage.memoryBytes)} of ` : ""}${bytes(capabilities?.device?.memoryBytes ?? 0)}`,
      },
      {
        id: "task",
        heading: "Task",
        width: "12rem",
        value: ({ leases }) => leases.map(({ task }) => task).join(" "),
        cell: ({ leases }) => leases.map(({ task }) => <Link key={task} to={`/${jobOf(task)}`}>{idOf(jobOf(task))}</Link>),
      },
      {
        id: "progress",
        heading: "Progress",
        width: "13rem",
        value: ({ progress }) => Object.values(progress).map(({ done }) => String(done)).join(" "),
        cell: ({ progress }) => Object.entries(progress).map(([task, each]) => <ProgressBar key={task} progress={each} />),
      },
      {
        id: "lease",
        heading: "Lease",
        width: "8rem",
        value: ({ leases }) => leases.map(({ attempt, fencingToken }) => `attempt ${attempt}, fence ${fencingToken}`).join("; "),
      },
      {
        id: "heard",
        heading: "Heard",
        width: "6rem",
        numeric: true,
        value: ({ lastHeartbeatTime }) => Number(lastHeartbeatTime?.seconds ?? 0),
        cell: ({ lastHeartbeatTime }) => (lastHeartbeatTime ? `${age(lastHeartbeatTime, now)} ago` : ""),
      },
      {
        id: "drain",
        heading: "Drain",
        width: "6rem",
        value: () => "",
        cell: ({ name, state }) => (
          <button
            type="button"
            disabled={state !== WorkerState.ACTIVE || drain.isPending}
            onClick={() => window.confirm(`Drain ${idOf(name)}? It hands back its task and takes no other.`) && drain.mutate(name)}
          >
            Drain
          </button>
        ),
      },
    ],
    [now, drain],
  );
  return (
    <section aria-labelledby="workers-heading">
      <h1 id="workers-heading">Workers</h1>
      {drain.error && <Problem error={drain.error} what="drain the worker" />}
      {workers.error && <Problem error={workers.error} what="list the workers" />}
      <DataTable label="Workers" columns={columns} rows={workers.data ?? []} rowKey={({ name }) => name} csvName="workers" empty={workers.isPending ? "Loading…" : "No worker has registered."} />
    </section>
  );
}
