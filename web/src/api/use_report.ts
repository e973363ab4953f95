import { useQuery } from "@tanstack/react-query";
import type { Report } from "@gen/job_pb.js";
import { jobs } from "./client.js";

// A job's report in one piece, whatever number of pages it comes in; undefined until it exists.
export async function fetchReport(name: string, get: typeof jobs.getReport, signal?: AbortSignal): Promise<Report | undefined> {
  let report: Report | undefined;
  let pageToken = "";
  do {
    const page = await get({ name, pageToken }, { signal });
    if (!report) report = page.report;
    else report.tasks.push(...(page.report?.tasks ?? []));
    pageToken = page.nextPageToken;
  } while (pageToken);
  return report;
}

// `version` changes when there may be more in it, e.g. with the job's last event.
export function useReport(name: string, version: string, enabled = true) {
  return useQuery<Report | undefined>({
    queryKey: ["report", name, version],
    enabled,
    placeholderData: (before) => before,
    queryFn: ({ signal }) => fetchReport(name, jobs.getReport, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
