// Which of a job's files show which seed, and whose.
import { type Artifact, ArtifactRole } from "@gen/artifact_pb.js";
import type { GenerationReport, QualityReport } from "@gen/generation_pb.js";
import type { Report } from "@gen/job_pb.js";

export interface Seed {
  seed: string;
  generation: GenerationReport;
  task: string;
  video: Artifact | undefined;
  audio: Artifact | undefined;
}

export function seedsOf(report: Report): Seed[] {
  return report.tasks.flatMap((task) => {
    if (task.kind.case !== "generation") return [];
    const generation = task.kind.value;
    // The decoded files belong to the generation's task or to the decode task of the same run.
    const files = report.tasks
      .filter((other) => other === task || (other.kind.case === "decode" && other.kind.value.source.endsWith(generation.run)))
      .flatMap(({ artifacts }) => artifacts);
    return [
      {
        seed: String(generation.seed),
        generation,
        task: task.task,
        video: files.find(({ role }) => role === ArtifactRole.VIDEO),
        audio: files.find(({ role }) => role === ArtifactRole.AUDIO),
      },
    ];
  });
}

export interface QualityRow {
  seed: string;
  what: string;
  quality: QualityReport;
}

// Of each seed: the candidate's quality, then the providers' among themselves, then the provider repeated.
export function qualityRows(report: Report): QualityRow[] {
  return report.tasks.flatMap((task) => {
    if (task.kind.case !== "generationComparison") return [];
    const { seed, quality, providerSpread, providerRepeat } = task.kind.value;
    const row = (what: string, each: QualityReport): QualityRow => ({ seed: String(seed), what, quality: each });
    return [
      ...(quality ? [row("candidate", quality)] : []),
      ...providerSpread.map((each) => row(each.subject || "provider", each)),
      ...(providerRepeat ? [row("provider, repeated", providerRepeat)] : []),
    ];
  });
}
