import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useNavigate } from "react-router";
import type { Run } from "@gen/generation_pb.js";
import { store } from "../../api/client.js";
import { Problem } from "../../app/errors.js";
import { type Column, DataTable } from "../../ui/data_table.js";
import { age, bytes, idOf, runStateWord } from "../../ui/format.js";
import { useNowMs } from "../../ui/use_now.js";

export default function Runs() {
  const now = useNowMs();
  const navigate = useNavigate();
  const pages = useInfiniteQuery({
    queryKey: ["runs"],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => store.listRuns({ pageSize: 200, pageToken: pageParam }, { signal }),
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
  const rows = useMemo(() => pages.data?.pages.flatMap(({ runs }) => runs) ?? [], [pages.data]);
  const first = pages.data?.pages[0];
  const columns = useMemo<Column<Run>[]>(
    () => [
      { id: "run", heading: "Run", width: "10rem", value: ({ name }) => idOf(name), cell: ({ name }) => <code>{idOf(name).slice(0, 16)}</code> },
      { id: "seed", heading: "Seed", width: "7rem", numeric: true, value: ({ seed }) => String(seed) },
      { id: "state", heading: "State", width: "8rem", value: ({ state }) => runStateWord(state) },
      {
        id: "steps",
        heading: "Steps",
        width: "8rem",
        numeric: true,
        value: ({ savedSteps }) => savedSteps,
        cell: ({ savedSteps, totalSteps }) => `${savedSteps} of ${totalSteps}`,
      },
      { id: "size", heading: "Size", width: "8rem", numeric: true, value: ({ sizeBytes }) => Number(sizeBytes), cell: ({ sizeBytes }) => bytes(sizeBytes) },
      { id: "checkpoint", heading: "Checkpoint", width: "minmax(12rem, 1fr)", value: ({ checkpoint }) => checkpoint },
      { id: "problem", heading: "Problem", width: "minmax(8rem, 1fr)", value: ({ problem }) => problem },
      {
        id: "used",
        heading: "Last used",
        width: "7rem",
        numeric: true,
        value: ({ lastUseTime }) => Number(lastUseTime?.seconds ?? 0),
        cell: ({ lastUseTime }) => (lastUseTime ? `${age(lastUseTime, now)} ago` : ""),
      },
    ],
    [now],
  );
  return (
    <section aria-labelledby="runs-heading">
      <h1 id="runs-heading">Runs</h1>
      {pages.error && <Problem error={pages.error} what="list the runs" />}
      {first && (
        <p>
          {bytes(first.totalSizeBytes)} stored{first.budgetBytes > 0n && ` of ${bytes(first.budgetBytes)}`}
        </p>
      )}
      <DataTable
        label="Runs"
        columns={columns}
        rows={rows}
        rowKey={({ name }) => name}
        csvName="runs"
        onChoose={({ name }) => navigate(`/runs/${idOf(name)}`)}
        onEnd={() => {
          if (pages.hasNextPage && !pages.isFetching) void pages.fetchNextPage();
        }}
        empty={pages.isPending ? "Loading…" : "No generation has saved a step."}
      />
    </section>
  );
}
