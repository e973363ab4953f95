// Cividis, sampled: one ramp in lightness, the same for every kind of colour vision. Above the bound the scale ends and
// a failing cell is drawn in its own colour with a cross.
const STOPS = [
  [0, 32, 77],
  [43, 68, 110],
  [87, 93, 109],
  [124, 123, 120],
  [165, 156, 116],
  [210, 192, 96],
  [255, 234, 70],
] as const;

export const FAILING = "#d1420c";

// `ratio`: error over bound, 0 to 1.
export function colorOf(ratio: number): string {
  if (Number.isNaN(ratio)) return "transparent";
  const at = Math.min(1, Math.max(0, ratio)) * (STOPS.length - 1);
  const index = Math.min(STOPS.length - 2, Math.floor(at));
  const [low, high] = [STOPS[index], STOPS[index + 1]] as [readonly number[], readonly number[]];
  const mix = low.map((value, channel) => Math.round(value + (at - index) * ((high[channel] as number) - value)));
  return `rgb(${mix.join(" ")})`;
}
