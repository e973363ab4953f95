import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { Link, useSearchParams } from "react-router";
import { type GenerationReport, type LatentDrift, StepOrigin } from "@gen/generation_pb.js";
import type { Report } from "@gen/job_pb.js";
import { fetchReport } from "../../api/use_report.js";
import { jobs } from "../../api/client.js";
import { idOf, seconds } from "../../ui/format.js";
import { LineChart } from "../../ui/line_chart.js";
import { SavedTable } from "../../ui/saved_table.js";
import { qualityRows, type Seed, seedsOf } from "./media.js";
import { QualityTable } from "./quality_table.js";

const Players = lazy(() => import("./players.js"));
const Soundtracks = lazy(() => import("./soundtracks.js"));

// ?seed= and ?frame= choose what is shown, so that a link opens a frame.
export default function Generation({ report }: { report: Report }) {
  const [parameters, setParameters] = useSearchParams();
  const seeds = useMemo(() => seedsOf(report), [report]);
  const spec = report.spec?.kind.case === "generation" ? report.spec.kind.value : undefined;
  const against = spec?.against ?? "";
  const reference = useQuery({
    queryKey: ["report", against, "reference"],
    enabled: against !== "",
    queryFn: ({ signal }) => fetchReport(against, jobs.getReport, signal),
  });
  const seed = seeds.find((each) => each.seed === parameters.get("seed")) ?? seeds[0];
  const other = reference.data && seed ? seedsOf(reference.data).find((each) => each.seed === seed.seed) : undefined;
  const rows = useMemo(() => qualityRows(report), [report]);
  const set = (name: string, value: string) =>
    setParameters(
      (now) => {
        const next = new URLSearchParams(now);
        next.set(name, value);
        return next;
      },
      { replace: name === "frame" },
    );
  if (!seed) return <p>No seed has ended yet.</p>;
  const quality = rows.find((row) => row.seed === seed.seed && row.what === "candidate")?.quality;
  return (
    <section aria-labelledby="generation-heading">
      <h2 id="generation-heading">Generation</h2>
      <SeedTable seeds={seeds} chosen={seed.seed} onChoose={(value) => set("seed", value)} />
      <QualityTable rows={rows} bounds={spec?.contract?.bounds} />
      <h3>Seed {seed.seed}</h3>
      <Suspense fallback={<p role="status">Loading…</p>}>
        <Players
          key={`${seed.seed} ${other?.task ?? ""}`}
          candidate={seed.video}
          provider={other?.video}
          fps={seed.generation.contract?.fps ?? 24}
          frame={Number(parameters.get("frame") ?? 0)}
          quality={quality}
          onFrame={(frame) => set("frame", String(frame))}
        />
        <Soundtracks candidate={seed.audio ?? seed.video} provider={other?.audio ?? other?.video} />
      </Suspense>
      {(seed.generation.notDecoded || seed.generation.mediaPending) && (
        <p className="hint">{seed.generation.notDecoded || "The frames are kept; a worker with FFmpeg makes the video of them later."}</p>
      )}
      <Steps generation={seed.generation} />
      <Drift drift={seed.generation.latentDrift} />
    </section>
  );
}

function SeedTable({ seeds, chosen, onChoose }: { seeds: readonly Seed[]; chosen: string; onChoose: (seed: string) => void }) {
  return (
    <SavedTable name="seeds">
      <caption>Seeds</caption>
      <thead>
        <tr>
          {["Seed", "Steps", "Computed", "Replayed", "Recomputed", "Seconds a step", "Run"].map((heading) => (
            <th key={heading} scope="col">
              {heading}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {seeds.map(({ seed, generation }) => {
          const computed = generation.steps.filter(({ origin }) => origin === StepOrigin.COMPUTED);
          const mean = computed.reduce((sum, step) => sum + step.seconds, 0) / Math.max(1, computed.length);
          return (
            <tr key={seed} aria-current={seed === chosen}>
              <th scope="row">
                <button type="button" onClick={() => onChoose(seed)}>
                  {seed}
                </button>
              </th>
              <td>{generation.steps.length}</td>
              <td>{generation.stepsComputed}</td>
              <td>{generation.stepsReplayed}</td>
              <td>{generation.stepsRecomputed}</td>
              <td>{computed.length ? seconds(mean) : ""}</td>
              <td>
                <Link to={`/runs/${idOf(generation.run)}`}>
                  <code>{idOf(generation.run).slice(0, 12)}</code>
                </Link>
              </td>
            </tr>
          );
        })}
      </tbody>
    </SavedTable>
  );
}

const ORIGIN_CLASS: Partial<Record<StepOrigin, string>> = {
  [StepOrigin.COMPUTED]: "worked",
  [StepOrigin.REPLAYED]: "replayed",
  [StepOrigin.RECOMPUTED]: "interrupted",
};

function Steps({ generation }: { generation: GenerationReport }) {
  const longest = Math.max(1e-9, ...generation.steps.map((step) => step.seconds));
  const text =
    `${generation.steps.length} steps: ${generation.stepsComputed} computed, ${generation.stepsReplayed} replayed, ` +
    `${generation.stepsRecomputed} recomputed to check; longest ${seconds(longest)}`;
  return (
    <figure>
      <svg className="bar steps" viewBox={`0 0 ${generation.steps.length * 10} 60`} preserveAspectRatio="none" role="img" aria-label={text}>
        {generation.steps.map((step) => (
          <rect
            key={step.index}
            className={ORIGIN_CLASS[step.origin]}
            x={step.index * 10}
            width="8"
            y={60 - Math.max(3, (step.seconds / longest) * 60)}
            height={Math.max(3, (step.seconds / longest) * 60)}
          >
            <title>{`step ${step.index + 1}: ${seconds(step.seconds)}, attempt ${step.attempt}`}</title>
          </rect>
        ))}
      </svg>
      <figcaption className="hint">{text}</figcaption>
    </figure>
  );
}

function Drift({ drift }: { drift: readonly LatentDrift[] }) {
  const x = useMemo(() => drift.map(({ step }) => step + 1), [drift]);
  const series = useMemo(
    () => [
      { label: "video", values: drift.map(({ video }) => (video > 0 ? video : null)), color: "--accent", points: true },
      { label: "audio", values: drift.map(({ audio }) => (audio > 0 ? audio : null)), color: "--warn", points: true, dashed: true },
    ],
    [drift],
  );
  if (drift.length === 0) return null;
  return (
    <>
      <h3>Latent drift by step</h3>
      <LineChart
        label="Relative L2 of the latents against the provider's, by step"
        x={x}
        series={series}
        xLabel="step"
        yLabel="relative L2"
        logarithmic
        fileName="latent-drift"
      />
    </>
  );
}
