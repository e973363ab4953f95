// Jobs beyond those that are watched, page by page as they are scrolled to.
import { useInfiniteQuery } from "@tanstack/react-query";
import { toJsonString } from "@bufbuild/protobuf";
import { useMemo } from "react";
import type { Job } from "@gen/job_pb.js";
import { type JobFilter, JobFilterSchema } from "@gen/job_service_pb.js";
import type { jobs } from "../../api/client.js";

const PAGE_JOBS = 500;

export function useOlderJobs(list: typeof jobs.listJobs, filter: JobFilter, enabled: boolean) {
  const pages = useInfiniteQuery({
    queryKey: ["jobs", toJsonString(JobFilterSchema, filter)],
    enabled,
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => list({ filter, pageSize: PAGE_JOBS, pageToken: pageParam }, { signal }),
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
  const jobs = useMemo<Job[]>(() => pages.data?.pages.flatMap((page) => page.jobs) ?? [], [pages.data]);
  return {
    jobs,
    error: pages.error,
    done: !enabled || !pages.hasNextPage,
    more: () => {
      if (pages.hasNextPage && !pages.isFetching) void pages.fetchNextPage();
    },
  };
}
