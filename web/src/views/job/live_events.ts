// A running job's events, gathered into what the page shows of them.
import { type JobEvent, LogEvent_Severity } from "@gen/event_pb.js";
import { StepOrigin } from "@gen/generation_pb.js";
import { measure, seconds } from "../../ui/format.js";

export interface LivePreview {
  seed: string;
  step: number;
  url: string;
}

export interface LiveView {
  lines: readonly { key: string; text: string }[];
  previews: readonly LivePreview[];
}

const KEPT_LINES = 200;

export class LiveEvents {
  static readonly empty: LiveView = { lines: [], previews: [] };
  private readonly lines: { key: string; text: string }[] = [];
  private readonly previews = new Map<string, LivePreview>();
  private changed = false;

  // True if the caller should draw: once for all events until view() is read.
  add(event: JobEvent): boolean {
    const text = lineOf(event);
    if (event.body.case === "preview") {
      const { seed, step, png } = event.body.value;
      const before = this.previews.get(String(seed));
      if (before) URL.revokeObjectURL(before.url);
      const url = URL.createObjectURL(new Blob([png.slice()], { type: "image/png" }));
      this.previews.set(String(seed), { seed: String(seed), step, url });
    } else if (text) {
      this.lines.push({ key: `${event.sequence}`, text });
      if (this.lines.length > KEPT_LINES) this.lines.splice(0, this.lines.length - KEPT_LINES);
    } else {
      return false;
    }
    const first = !this.changed;
    this.changed = true;
    return first;
  }

  view(): LiveView {
    this.changed = false;
    return { lines: [...this.lines], previews: [...this.previews.values()] };
  }
}

export function lineOf({ body }: JobEvent): string {
  switch (body.case) {
    case "node": {
      const { entry, layout, comparison, failedGates } = body.value;
      const drift = comparison?.bitwiseEqual ? "bitwise" : `relative L2 ${measure(comparison?.relativeL2 ?? Number.NaN)}`;
      return `${layout} ${entry}: ${drift}${failedGates.length ? `, fails ${failedGates.join(", ")}` : ""}`;
    }
    case "step": {
      const { seed, step, total, origin } = body.value;
      const how = origin === StepOrigin.REPLAYED ? "replayed from the store" : `computed in ${seconds(body.value.seconds)}`;
      return `seed ${seed}: step ${step + 1} of ${total} ${how}`;
    }
    case "latentDrift":
      return `seed ${body.value.seed}: drift after step ${body.value.step + 1}: video ${measure(body.value.video)}, audio ${measure(body.value.audio)}`;
    case "log":
      return `${body.value.severity === LogEvent_Severity.ERROR ? "error: " : body.value.severity === LogEvent_Severity.WARNING ? "warning: " : ""}${body.value.message}`;
    case "attemptChange":
      return `attempt ${body.value.number} on ${body.value.worker}${body.value.message ? `: ${body.value.message}` : ""}`;
    case "reportReady":
      return "report ready";
    default:
      return "";
  }
}
