// Several videos as one: the first leads, the others follow its time to within half a frame.
export class SyncedVideos {
  private readonly videos: HTMLVideoElement[];
  private stopped = false;

  constructor(
    videos: readonly (HTMLVideoElement | null)[],
    readonly fps: number,
    private readonly onFrame: (frame: number) => void,
  ) {
    this.videos = videos.filter((video) => video !== null);
    this.follow();
  }

  get leader(): HTMLVideoElement | undefined {
    return this.videos[0];
  }

  get frames(): number {
    return Math.max(1, Math.round((this.leader?.duration || 0) * this.fps));
  }

  get frame(): number {
    return Math.min(this.frames - 1, Math.floor((this.leader?.currentTime ?? 0) * this.fps + 1e-3));
  }

  get playing(): boolean {
    return this.leader !== undefined && !this.leader.paused;
  }

  // To the middle of the frame, where no rounding of times shows a neighbour.
  seek(frame: number) {
    const bounded = Math.min(this.frames - 1, Math.max(0, frame));
    for (const video of this.videos) video.currentTime = (bounded + 0.5) / this.fps;
    this.onFrame(bounded);
  }

  step(frames: number) {
    this.pause();
    this.seek(this.frame + frames);
  }

  async play() {
    const time = this.leader?.currentTime ?? 0;
    for (const video of this.videos) video.currentTime = time;
    await Promise.all(this.videos.map((video) => video.play()));
  }

  pause() {
    for (const video of this.videos) video.pause();
    // Each had its own last frame.
    const { leader } = this;
    if (leader) for (const video of this.videos) if (video !== leader) video.currentTime = leader.currentTime;
  }

  set loop(loop: boolean) {
    for (const video of this.videos) video.loop = loop;
  }

  stop() {
    this.stopped = true;
  }

  private follow() {
    const tick = () => {
      if (this.stopped) return;
      const { leader } = this;
      if (leader && !leader.paused) {
        for (const video of this.videos) {
          if (video !== leader && Math.abs(video.currentTime - leader.currentTime) > 0.5 / this.fps) video.currentTime = leader.currentTime;
        }
        this.onFrame(this.frame);
      }
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }
}
