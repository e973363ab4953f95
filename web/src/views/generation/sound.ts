// Arithmetic on decoded soundtracks.
export interface Sound {
  numberOfChannels: number;
  length: number;
  getChannelData(channel: number): Float32Array;
}

// a - b, sample by sample, over the longer of the two; what one lacks is silence.
export function differenceOf(a: Sound, b: Sound): Float32Array[] {
  const length = Math.max(a.length, b.length);
  return Array.from({ length: Math.max(a.numberOfChannels, b.numberOfChannels) }, (_, channel) => {
    const [left, right] = [a, b].map((sound) => (channel < sound.numberOfChannels ? sound.getChannelData(channel) : new Float32Array(0)));
    return Float32Array.from({ length }, (_, index) => (left?.[index] ?? 0) - (right?.[index] ?? 0));
  });
}

const HEADER_BYTES = 44;

// As a WAV file of 32-bit floats.
export function wavOf(channels: readonly Float32Array[], sampleRate: number): Blob {
  const frames = channels[0]?.length ?? 0;
  const dataBytes = frames * channels.length * 4;
  const view = new DataView(new ArrayBuffer(HEADER_BYTES + dataBytes));
  const text = (at: number, word: string) => [...word].forEach((letter, index) => view.setUint8(at + index, letter.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, HEADER_BYTES - 8 + dataBytes, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 3, true);
  view.setUint16(22, channels.length, true);
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, sampleRate * channels.length * 4, true);
  view.setUint16(32, channels.length * 4, true);
  view.setUint16(34, 32, true);
  text(36, "data");
  view.setUint32(40, dataBytes, true);
  for (let frame = 0; frame < frames; ++frame) {
    channels.forEach((channel, index) => view.setFloat32(HEADER_BYTES + (frame * channels.length + index) * 4, channel[frame] ?? 0, true));
  }
  return new Blob([view], { type: "audio/wav" });
}
