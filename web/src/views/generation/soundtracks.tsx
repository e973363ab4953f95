import { useEffect, useRef, useState } from "react";
import WaveSurfer from "wavesurfer.js";
import Spectrogram from "wavesurfer.js/plugins/spectrogram";
import type { Artifact } from "@gen/artifact_pb.js";
import { useArtifactUrl } from "../../api/artifact_url.js";
import { differenceOf, wavOf } from "./sound.js";

// Waveform and spectrogram of both soundtracks and of their difference, each playable.
export default function Soundtracks({ candidate, provider }: { candidate: Artifact | undefined; provider: Artifact | undefined }) {
  const first = useArtifactUrl(candidate?.name);
  const second = useArtifactUrl(provider?.name);
  const [difference, setDifference] = useState<Blob>();
  const [problem, setProblem] = useState("");
  const [urlA, urlB] = [first.url, second.url];
  const made = useRef("");
  useEffect(() => {
    if (!urlA || !urlB || made.current) return;
    made.current = urlA;
    const context = new AudioContext();
    const decode = async (url: string) => context.decodeAudioData(await (await fetch(url)).arrayBuffer());
    Promise.all([decode(urlA), decode(urlB)])
      .then(([a, b]) => setDifference(wavOf(differenceOf(a, b), a.sampleRate)))
      .catch((error: unknown) => setProblem(String(error)))
      .finally(() => void context.close());
  }, [urlA, urlB]);
  if (!candidate) return null;
  return (
    <div className="soundtracks">
      <h4>Sound</h4>
      {problem && <p className="hint">No difference of the soundtracks: {problem}</p>}
      {urlA && <Soundtrack name="candidate" source={urlA} />}
      {urlB && <Soundtrack name="provider" source={urlB} />}
      {difference && <Soundtrack name="difference" source={difference} />}
    </div>
  );
}

// WaveSurfer puts its styles into the page as text, which the server's content security policy has no room for; the same
// rules as an object are the page's own.
function adoptStyles(within: Node) {
  const root = within.getRootNode();
  if (!(root instanceof ShadowRoot)) return;
  for (const { textContent } of root.querySelectorAll("style")) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(textContent ?? "");
    root.adoptedStyleSheets.push(sheet);
  }
}

// `source`: an address or the sound itself.
function Soundtrack({ name, source }: { name: string; source: string | Blob }) {
  const box = useRef<HTMLDivElement>(null);
  const player = useRef<WaveSurfer | null>(null);
  const [playing, setPlaying] = useState(false);
  const [problem, setProblem] = useState("");
  const [from] = useState(source);
  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const wave = WaveSurfer.create({
      container: box.current as HTMLDivElement,
      height: 56,
      splitChannels: [{}, {}],
      waveColor: style.getPropertyValue("--soft"),
      progressColor: style.getPropertyValue("--accent"),
      plugins: [Spectrogram.create({ height: 90, labels: true, frequencyMax: 16000 })],
    });
    player.current = wave;
    adoptStyles(wave.getWrapper());
    void (typeof from === "string" ? wave.load(from) : wave.loadBlob(from)).catch((error: unknown) => setProblem(String(error)));
    wave.on("play", () => setPlaying(true));
    wave.on("pause", () => setPlaying(false));
    return () => wave.destroy();
  }, [from]);
  return (
    <div className="soundtrack">
      <div className="row">
        <button type="button" aria-label={`${playing ? "Pause" : "Play"} the ${name} soundtrack`} onClick={() => void player.current?.playPause()}>
          {playing ? "Pause" : "Play"}
        </button>
        {name} {problem && <span role="alert">cannot be shown: {problem}</span>}
      </div>
      <div ref={box} role="img" aria-label={`Waveform and spectrogram, ${name}`} />
    </div>
  );
}
