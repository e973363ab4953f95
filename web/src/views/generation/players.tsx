import { type CSSProperties, useEffect, useMemo, useRef, useState } from "react";
import type { Artifact } from "@gen/artifact_pb.js";
import type { QualityReport } from "@gen/generation_pb.js";
import { useArtifactUrl } from "../../api/artifact_url.js";
import { Problem } from "../../app/errors.js";
import { LineChart } from "../../ui/line_chart.js";
import { drawDifference } from "./difference.js";
import { SyncedVideos } from "./sync.js";

type Mode = "side" | "swipe" | "difference";

interface PlayersProps {
  candidate: Artifact | undefined;
  provider: Artifact | undefined;
  fps: number;
  frame: number;
  quality: QualityReport | undefined;
  onFrame: (frame: number) => void;
}

// Candidate and provider in step. The space bar plays, the arrow keys step a frame.
export default function Players({ candidate, provider, fps, frame, quality, onFrame }: PlayersProps) {
  const first = useArtifactUrl(candidate?.name);
  const second = useArtifactUrl(provider?.name);
  const [videoA, videoB] = [useRef<HTMLVideoElement>(null), useRef<HTMLVideoElement>(null)];
  const canvas = useRef<HTMLCanvasElement>(null);
  const [mode, setMode] = useState<Mode>("side");
  const [swipe, setSwipe] = useState(50);
  const [gain, setGain] = useState(8);
  const [zoom, setZoom] = useState(1);
  const [pan, setPan] = useState({ x: 50, y: 50 });
  const [shown, setShown] = useState(frame);
  const [frames, setFrames] = useState(1);
  const [playing, setPlaying] = useState(false);
  const [loop, setLoop] = useState(false);
  const sync = useRef<SyncedVideos | null>(null);
  const settled = useRef(onFrame);
  settled.current = onFrame;
  const [urlA, retryA] = useLasting(first.url);
  const [urlB, retryB] = useLasting(second.url);
  const [failure, setFailure] = useState("");
  const onError = (name: string, retry: () => boolean) => {
    if (!retry()) setFailure(`The ${name}'s video cannot be played; it is below under Files.`);
  };

  useEffect(() => {
    if (!urlA) return;
    const synced = new SyncedVideos([videoA.current, videoB.current], fps, setShown);
    sync.current = synced;
    return () => synced.stop();
  }, [urlA, urlB, fps]);
  useEffect(() => {
    if (sync.current) sync.current.loop = loop;
  }, [loop, urlA, urlB]);

  useEffect(() => {
    if (mode !== "difference") return;
    let running = true;
    const draw = () => {
      if (!running) return;
      if (videoA.current && videoB.current && canvas.current) drawDifference(videoA.current, videoB.current, canvas.current, gain);
      requestAnimationFrame(draw);
    };
    draw();
    return () => {
      running = false;
    };
  }, [mode, gain, urlA, urlB]);

  if (!candidate) return <p className="hint">No video of this seed.</p>;
  const problem = first.error ?? second.error;
  if (problem) return <Problem error={problem} what="open the video" />;

  const seek = (to: number) => {
    sync.current?.seek(to);
    settled.current(sync.current?.frame ?? to);
  };
  const step = (by: number) => {
    sync.current?.step(by);
    setPlaying(false);
    settled.current(Math.max(0, Math.min(frames - 1, shown + by)));
  };
  const toggle = () => {
    if (playing) {
      sync.current?.pause();
      settled.current(sync.current?.frame ?? 0);
    } else void sync.current?.play();
    setPlaying(!playing);
  };
  const zoomed: CSSProperties = { transform: `scale(${zoom})`, transformOrigin: `${pan.x}% ${pan.y}%` };
  const clip: CSSProperties = mode === "swipe" ? { ...zoomed, clipPath: `inset(0 0 0 ${swipe}%)` } : zoomed;
  return (
    <div
      className={`players ${mode}`}
      role="group"
      aria-label="Players"
      onKeyDown={(event) => {
        if ((event.target as HTMLElement).closest("button, input, select")) return;
        const act = { " ": toggle, ArrowRight: () => step(1), ArrowLeft: () => step(-1) }[event.key];
        if (!act) return;
        event.preventDefault();
        act();
      }}
    >
      <div className="row">
        <button type="button" onClick={toggle}>
          {playing ? "Pause" : "Play"}
        </button>
        <button type="button" onClick={() => step(-1)}>
          Frame back
        </button>
        <button type="button" onClick={() => step(1)}>
          Frame on
        </button>
        <label>
          <input type="checkbox" checked={loop} onChange={(event) => setLoop(event.target.checked)} /> Loop
        </label>
        <label>
          Shown{" "}
          <select value={mode} onChange={(event) => setMode(event.target.value as Mode)} disabled={!provider}>
            <option value="side">side by side</option>
            <option value="swipe">swipe</option>
            <option value="difference">difference</option>
          </select>
        </label>
        {mode === "swipe" && (
          <label>
            Swipe <input type="range" min="0" max="100" value={swipe} onChange={(event) => setSwipe(Number(event.target.value))} />
          </label>
        )}
        {mode === "difference" && (
          <label>
            Gain <input type="range" min="1" max="64" value={gain} onChange={(event) => setGain(Number(event.target.value))} /> ×{gain}
          </label>
        )}
        <label>
          Zoom <input type="range" min="1" max="8" step="0.5" value={zoom} onChange={(event) => setZoom(Number(event.target.value))} /> ×{zoom}
        </label>
      </div>
      {failure && (
        <p className="problem" role="alert">
          {failure}
        </p>
      )}
      <label className="scrub">
        Frame {shown} of {frames}
        <input type="range" min="0" max={frames - 1} value={shown} onChange={(event) => seek(Number(event.target.value))} />
      </label>
      <div
        className="stage"
        tabIndex={0}
        role="group"
        aria-label="Frames; space plays, the arrow keys step"
        onPointerMove={(event) => {
          if (zoom === 1) return;
          const box = event.currentTarget.getBoundingClientRect();
          setPan({ x: ((event.clientX - box.left) / box.width) * 100, y: ((event.clientY - box.top) / box.height) * 100 });
        }}
      >
        <figure className="candidate">
          <div className="frame">
            <video
              ref={videoA}
              src={urlA}
              preload="auto"
              playsInline
              style={zoomed}
              aria-label="Candidate"
              onLoadedData={() => {
                setFrames(sync.current?.frames ?? 1);
                seek(frame);
              }}
              onEnded={() => setPlaying(false)}
              onError={() => onError("candidate", retryA)}
            />
          </div>
          <figcaption>candidate</figcaption>
        </figure>
        {provider && (
          <figure className="provider">
            <div className="frame">
              <video ref={videoB} src={urlB} preload="auto" playsInline muted style={clip} aria-label="Provider" onLoadedData={() => seek(frame)} onError={() => onError("provider", retryB)} />
            </div>
            <figcaption>provider</figcaption>
          </figure>
        )}
        {mode === "difference" && (
          <figure className="difference">
            <div className="frame">
              <canvas ref={canvas} style={zoomed} role="img" aria-label={`Difference of the two, times ${gain}`} />
            </div>
            <figcaption>difference × {gain}</figcaption>
          </figure>
        )}
      </div>
      {quality && quality.frames.length > 0 && <FrameCharts quality={quality} onChoose={seek} />}
    </div>
  );
}

function FrameCharts({ quality, onChoose }: { quality: QualityReport; onChoose: (frame: number) => void }) {
  const { x, psnr, ssim, temporal } = useMemo(
    () => ({
      x: quality.frames.map((_, index) => index),
      psnr: [{ label: "PSNR", values: quality.frames.map(({ psnrDb }) => psnrDb), color: "--accent" }],
      ssim: [{ label: "SSIM", values: quality.frames.map((frame) => frame.ssim), color: "--good" }],
      temporal: [{ label: "temporal RMSE", values: quality.frames.map(({ temporalRmse }) => temporalRmse), color: "--warn" }],
    }),
    [quality],
  );
  return (
    <div className="charts">
      <LineChart label="PSNR by frame; a click shows the frame" x={x} series={psnr} xLabel="frame" yLabel="PSNR, dB" height={170} fileName="psnr" onChoose={onChoose} />
      <LineChart label="SSIM by frame; a click shows the frame" x={x} series={ssim} xLabel="frame" yLabel="SSIM" height={170} fileName="ssim" onChoose={onChoose} />
      <LineChart label="Temporal difference by frame; a click shows the frame" x={x} series={temporal} xLabel="frame" yLabel="temporal RMSE" height={170} fileName="temporal" onChoose={onChoose} />
    </div>
  );
}

// An address stays while the video plays: another would begin it again. Its ticket ends, and then the newest address is
// taken by the call returned, which says whether there was one.
function useLasting(newest: string | undefined): [string | undefined, () => boolean] {
  const [kept, keep] = useState(newest);
  useEffect(() => {
    if (kept === undefined && newest !== undefined) keep(newest);
  }, [kept, newest]);
  const retry = () => {
    if (newest === undefined || newest === kept) return false;
    keep(newest);
    return true;
  };
  return [kept, retry];
}
