// |a - b| of two videos' present frames, times a gain, onto a canvas. By the browser's compositor: no pixel is read back.
export function drawDifference(a: HTMLVideoElement, b: HTMLVideoElement, canvas: HTMLCanvasElement, gain: number) {
  const { videoWidth: width, videoHeight: height } = a;
  const context = canvas.getContext("2d");
  if (!context || width === 0 || b.videoWidth === 0) return;
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  context.globalCompositeOperation = "source-over";
  context.drawImage(a, 0, 0, width, height);
  context.globalCompositeOperation = "difference";
  context.drawImage(b, 0, 0, width, height);
  // Adding the picture to itself doubles it; the last addition, weaker, reaches gains between powers of two.
  context.globalCompositeOperation = "lighter";
  let reached = 1;
  for (; reached * 2 <= gain; reached *= 2) context.drawImage(canvas, 0, 0);
  if (reached < gain) {
    context.globalAlpha = gain / reached - 1;
    context.drawImage(canvas, 0, 0);
    context.globalAlpha = 1;
  }
}
