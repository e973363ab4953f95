// One stream of changes that outlives connections: it resumes where it stopped, and misses nothing.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { WatchJobsRequestSchema, type WatchJobsResponse } from "@gen/job_service_pb.js";
import { isFinal } from "./errors.js";

export type Connection = "connecting" | "live" | "lost";

export interface WatchSink {
  // The present state follows from the start: what was known before is void.
  restart(): void;
  update(message: WatchJobsResponse): void;
  connection(state: Connection, error?: unknown): void;
}

export type OpenWatch = (
  request: MessageInitShape<typeof WatchJobsRequestSchema>,
  options: { signal: AbortSignal },
) => AsyncIterable<WatchJobsResponse>;

const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 5000;

// Watches until `signal` is aborted or the server refuses for good, e.g. without a token.
export async function watch(
  open: OpenWatch,
  request: MessageInitShape<typeof WatchJobsRequestSchema>,
  sink: WatchSink,
  signal: AbortSignal,
  wait: (ms: number) => Promise<void> = (ms) => waitFor(ms, signal),
): Promise<void> {
  let resumeToken = "";
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    try {
      if (!resumeToken) sink.restart();
      for await (const message of open(create(WatchJobsRequestSchema, { ...request, resumeToken }), { signal })) {
        retryMs = FIRST_RETRY_MS;
        sink.connection("live");
        sink.update(message);
        if (message.resumeToken) resumeToken = message.resumeToken;
      }
      sink.connection("lost");
    } catch (error) {
      if (signal.aborted) return;
      // The server no longer has what came since the token: begin again with the present state.
      if (error instanceof ConnectError && error.code === Code.OutOfRange) {
        resumeToken = "";
        continue;
      }
      sink.connection("lost", error);
      if (isFinal(error)) return;
    }
    await wait(retryMs);
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
  }
}

function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
