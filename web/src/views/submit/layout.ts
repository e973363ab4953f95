// Layouts as the command line writes them: TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES, or a name.
import { create } from "@bufbuild/protobuf";
import { Keyframe, type Layout, LayoutSchema } from "@gen/layout_pb.js";

const KEYFRAMES: Record<string, Keyframe[]> = {
  none: [],
  first: [Keyframe.FIRST],
  last: [Keyframe.LAST],
  "first+last": [Keyframe.FIRST, Keyframe.LAST],
};

export function layoutOf(text: string): Layout {
  const parts = text.split(",");
  if (parts.length === 1) return create(LayoutSchema, { name: text });
  const [textRows, frames, height, width, audioLatents, keyframes = "none"] = parts;
  const whole = (value: string | undefined) => (value && /^\d+$/.test(value.trim()) ? Number(value) : 0);
  return create(LayoutSchema, {
    textRows: whole(textRows),
    frames: whole(frames),
    height: whole(height),
    width: whole(width),
    audioLatents: whole(audioLatents),
    keyframes: KEYFRAMES[keyframes.trim()] ?? [Keyframe.UNSPECIFIED],
  });
}

export function layoutText(layout: Layout): string {
  if (layout.name && layout.frames === 0) return layout.name;
  const keyframes = layout.keyframes.map((keyframe) => (keyframe === Keyframe.FIRST ? "first" : "last")).join("+") || "none";
  return [layout.textRows, layout.frames, layout.height, layout.width, layout.audioLatents, keyframes].join(",");
}

// "tiny; 104,2,12,16,8,first" -> both. A semicolon parts layouts, a comma alone parts names.
export function layoutsOf(text: string): Layout[] {
  return text
    .split(";")
    .flatMap((part) => (/\d/.test(part) ? [part] : part.split(",")))
    .map((part) => part.trim())
    .filter(Boolean)
    .map(layoutOf);
}
