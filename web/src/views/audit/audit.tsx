import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { AuditEvent } from "@gen/admin_service_pb.js";
import { admin } from "../../api/client.js";
import { Problem } from "../../app/errors.js";
import { type Column, DataTable } from "../../ui/data_table.js";
import { dateTime } from "../../ui/format.js";

const COLUMNS: Column<AuditEvent>[] = [
  { id: "sequence", heading: "No.", width: "5rem", numeric: true, value: ({ sequence }) => Number(sequence) },
  { id: "time", heading: "Time (UTC)", width: "12rem", value: ({ time }) => dateTime(time) },
  { id: "who", heading: "Who", width: "10rem", value: ({ principal }) => principal },
  { id: "role", heading: "Role", width: "7rem", value: ({ role }) => role },
  { id: "method", heading: "Call", width: "minmax(14rem, 1fr)", value: ({ method }) => method },
  { id: "resource", heading: "On", width: "12rem", value: ({ resource }) => resource },
  { id: "code", heading: "Code", width: "5rem", numeric: true, value: ({ code }) => code },
  {
    id: "message",
    heading: "Answer",
    width: "minmax(12rem, 1fr)",
    value: ({ message, count }) => (count > 1n ? `${message} (${count} times)` : message),
  },
];

export default function Audit() {
  const pages = useInfiniteQuery({
    queryKey: ["audit"],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => admin.listAuditEvents({ pageSize: 200, pageToken: pageParam }, { signal }),
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
  const rows = useMemo(() => pages.data?.pages.flatMap(({ events }) => events) ?? [], [pages.data]);
  return (
    <section aria-labelledby="audit-heading">
      <h1 id="audit-heading">Audit</h1>
      {pages.error && <Problem error={pages.error} what="read the audit events" />}
      <DataTable
        label="Audit events"
        columns={COLUMNS}
        rows={rows}
        rowKey={({ sequence }) => String(sequence)}
        csvName="audit"
        onEnd={() => {
          if (pages.hasNextPage && !pages.isFetching) void pages.fetchNextPage();
        }}
        empty={pages.isPending ? "Loading…" : "Nothing has been recorded."}
      />
    </section>
  );
}
