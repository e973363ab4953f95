// Jobs as a live, ordered list: newest first, kept true by the messages of one watch.
import type { Job } from "@gen/job_pb.js";
import type { JobEvent } from "@gen/event_pb.js";
import type { WatchJobsResponse } from "@gen/job_service_pb.js";
import type { Connection, WatchSink } from "./watch.js";

export interface JobListState {
  jobs: readonly Job[];
  // The present state has been received.
  complete: boolean;
  connection: Connection;
  error: unknown;
}

const created = (job: Job) => (job.createTime ? Number(job.createTime.seconds) + job.createTime.nanos * 1e-9 : 0);

export class JobList implements WatchSink {
  private state: JobListState = { jobs: [], complete: false, connection: "connecting", error: undefined };
  private readonly byName = new Map<string, Job>();
  private readonly listeners = new Set<() => void>();
  private scheduled = false;

  // `schedule` gathers messages that arrive together into one change; `onEvent` is called for each event.
  constructor(
    private readonly onEvent: (event: JobEvent) => void = () => {},
    private readonly schedule: (publish: () => void) => void = (publish) => requestAnimationFrame(publish),
  ) {}

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  snapshot = () => this.state;

  restart() {
    this.byName.clear();
    this.state = { ...this.state, complete: false };
  }

  update(message: WatchJobsResponse) {
    const { update } = message;
    switch (update.case) {
      case "job":
        this.byName.set(update.value.name, update.value);
        break;
      case "removed":
        this.byName.delete(update.value);
        break;
      case "event":
        this.onEvent(update.value);
        return;
      case "snapshotComplete":
        this.state = { ...this.state, complete: true };
        break;
    }
    this.publishSoon();
  }

  connection(connection: Connection, error?: unknown) {
    if (connection === this.state.connection && error === this.state.error) return;
    this.state = { ...this.state, connection, error };
    this.publishSoon();
  }

  private publishSoon() {
    if (this.scheduled) return;
    this.scheduled = true;
    this.schedule(() => {
      this.scheduled = false;
      const jobs = [...this.byName.values()].sort((a, b) => created(b) - created(a) || (a.name < b.name ? 1 : -1));
      this.state = { ...this.state, jobs };
      for (const listener of this.listeners) listener();
    });
  }
}
