import { create, fromJsonString, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { useEffect, useMemo, useSyncExternalStore } from "react";
import type { JobEvent } from "@gen/event_pb.js";
import { WatchJobsRequestSchema } from "@gen/job_service_pb.js";
import { jobs } from "./client.js";
import { JobList, type JobListState } from "./job_list.js";
import { useToken } from "./token.js";
import { watch } from "./watch.js";

// The jobs that `request` matches, live. Give a page one of these: a browser has six connections for a server, and each
// holds one. `onEvent` must be stable.
export function useWatch(
  request: MessageInitShape<typeof WatchJobsRequestSchema>,
  onEvent?: (event: JobEvent) => void,
): JobListState {
  const token = useToken();
  const key = toJsonString(WatchJobsRequestSchema, create(WatchJobsRequestSchema, request));
  const list = useMemo(() => new JobList(onEvent), [key, token, onEvent]);
  useEffect(() => {
    const stop = new AbortController();
    void watch(jobs.watchJobs, fromJsonString(WatchJobsRequestSchema, key), list, stop.signal);
    return () => stop.abort();
  }, [key, list]);
  return useSyncExternalStore(list.subscribe, list.snapshot);
}
