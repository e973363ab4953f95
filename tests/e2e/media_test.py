"""Media that are compared from the command line, and that a browser plays."""

import json
import math
import os
import pathlib
import struct
import subprocess
import unittest

from tests.e2e import browser, harness

FRAMES, HEIGHT, WIDTH = 22, 64, 96
RATE = 32000
SAMPLES = 22 * RATE // 24
# Of the patches of a test card, red, green and blue in 8 bits. None is a saturated blue or yellow: the
# software conversion of browsers has no room for BT.709's largest factor and is a few levels off there.
PATCHES = [(235, 60, 60), (20, 200, 60), (60, 80, 150), (200, 190, 110), (128, 128, 128),
           (40, 180, 190), (200, 80, 150), (245, 245, 245)]  # fmt: skip

# Plays a video to its end and seeks in it, as a person would; what was seen and heard.
PLAY = """
const video = document.createElement('video');
document.body.append(video);
const frame = new Promise((resolve) => video.requestVideoFrameCallback(() => {
  const canvas = document.createElement('canvas');
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  const context = canvas.getContext('2d');
  context.drawImage(video, 0, 0);
  const at = (x, y) => [...context.getImageData(x, y, 1, 1).data].slice(0, 3);
  const colours = [];
  for (let i = 0; i < 8; ++i) {
    colours.push(at((i % 4) * canvas.width / 4 + canvas.width / 8,
                    Math.floor(i / 4) * canvas.height / 2 + canvas.height / 4));
  }
  resolve(colours);
}));
const ended = new Promise((resolve, reject) => {
  video.onended = () => resolve(video.currentTime);
  video.onerror = () => reject(new Error(video.error.message));
});
video.src = '/video.mp4';
await video.play();
const colours = await frame;
const end = await ended;
// Seeks, as a player does.
const sought = new Promise((resolve) => { video.onseeked = () => resolve(video.currentTime); });
video.currentTime = video.duration / 2;
const middle = await sought;
const bytes = await (await fetch('/video.mp4')).arrayBuffer();
const sound = await new OfflineAudioContext(2, 1, 32000).decodeAudioData(bytes);
const channels = [0, 1].map((index) => {
  const samples = sound.getChannelData(Math.min(index, sound.numberOfChannels - 1));
  let crossings = 0, squares = 0;
  for (let i = 1; i < samples.length; ++i) {
    crossings += (samples[i - 1] < 0) !== (samples[i] < 0);
    squares += samples[i] * samples[i];
  }
  return {hertz: crossings / 2 / sound.duration, rms: Math.sqrt(squares / samples.length)};
});
return {duration: video.duration, end, middle, width: video.videoWidth,
        height: video.videoHeight, colours, sound: sound.duration, channels,
        played: video.webkitAudioDecodedByteCount};
"""


def card():
    """One frame of 2 by 4 patches, (HEIGHT, WIDTH, 3) in 8 bits."""
    rows = []
    for y in range(HEIGHT):
        row = b""
        for x in range(WIDTH):
            row += bytes(PATCHES[y // (HEIGHT // 2) * 4 + x // (WIDTH // 4)])
        rows.append(row)
    return b"".join(rows)


def tone(frequency):
    return [
        0.5 * math.sin(2 * math.pi * frequency * i / RATE) for i in range(SAMPLES)
    ]


def media(path, frames, left=None, right=None):
    """A file of frames, each (HEIGHT, WIDTH, 3) in 8 bits, and two channels."""
    left, right = left or tone(440), right or tone(660)
    harness.write_safetensors(
        path,
        {
            "frames": ("U8", [len(frames), HEIGHT, WIDTH, 3], b"".join(frames)),
            "samples": ("F32", [2, len(left)], struct.pack(f"<{2 * len(left)}f", *left, *right)),
        },
        {"fps": "24", "sampling_rate": str(RATE)},
    )
    return path


class MediaTest(harness.Case):
    def compare(self, a, b, *flags):
        report = self.path("report.json")
        ended = self.run_client("compare-media", a, b, f"--report={report}", *flags)
        quality = None
        if ended.status in (0, 1):
            with open(report, encoding="utf-8") as file:
                quality = json.load(file)["tasks"][0]["media"]
        return ended, quality

    def test_equal_media_pass_and_damage_is_seen_where_it_is(self):
        frame = card()
        good = media(self.path("good.safetensors"), [frame] * FRAMES)
        ended, quality = self.compare(good, good)
        self.assertEqual(ended.status, 0, ended)
        self.assertAlmostEqual(quality["psnr_db"], 300)
        self.assertIn("equal", ended.out)

        flashed = [frame] * FRAMES
        flashed[7] = bytes(min(255, value + 60) for value in frame)
        flash = media(self.path("flash.safetensors"), flashed)
        ended, quality = self.compare(flash, good)
        self.assertEqual(ended.status, 1, ended)
        self.assertIn("at frame 7", ended.out)
        worst = min(range(FRAMES), key=lambda i: quality["frames"][i]["psnr_db"])
        self.assertEqual(worst, 7)
        flicker = [i for i in range(FRAMES) if quality["frames"][i]["temporal_rmse"] > 0.01]
        self.assertEqual(flicker, [7, 8])

        swapped = media(self.path("swapped.safetensors"), [frame] * FRAMES, tone(660), tone(440))
        ended, quality = self.compare(swapped, good)
        self.assertEqual(ended.status, 1, ended)
        self.assertEqual(quality["audio_swapped_relative_l2"], 0)
        self.assertIn("channels exchanged 0", ended.out)

    def test_other_shapes_are_refused_before_any_number(self):
        frame = card()
        good = media(self.path("good.safetensors"), [frame] * FRAMES)
        short = media(self.path("short.safetensors"), [frame] * (FRAMES - 1))
        ended, _ = self.compare(short, good)
        self.assertEqual(ended.status, 2, ended)
        self.assertIn("has 21 frames of 96x64", ended.error)
        self.assertEqual(self.job_names(), [])
        ended, _ = self.compare(self.path("nothing.mp4"), good)
        self.assertEqual(ended.status, 2, ended)

    def test_what_is_read_is_not_written_over(self):
        good = media(self.path("good.safetensors"), [card()] * FRAMES)
        named_so = self.path("good.mp4")
        os.link(good, named_so)
        before = pathlib.Path(good).read_bytes()
        for flag in (f"--diff={named_so}", f"--report={good}"):
            ended = self.run_client("compare-media", good, good, flag)
            self.assertEqual(ended.status, 2, ended)
            self.assertIn("is what A reads", ended.error)
        ended = self.run_client("compare-media", good, good, f"--diff={self.path('d.wav')}")
        self.assertEqual(ended.status, 2, ended)
        self.assertIn("accepted: FILE.mp4", ended.error)
        self.assertEqual(pathlib.Path(good).read_bytes(), before)
        self.assertEqual(self.job_names(), [])

    def test_the_difference_video_is_stored_as_it_was_meant(self):
        """Decoded by FFmpeg's own program, and held to BT.709 as it is written down."""
        frame = card()
        good = media(self.path("good.safetensors"), [frame] * FRAMES)
        # A quarter of what the card differs from grey by, so that the difference is the card.
        quarter = bytes(round(127.5 + (value - 127.5) / 4) for value in frame)
        grey = media(self.path("grey.safetensors"), [bytes([128] * len(frame))] * FRAMES)
        low = media(self.path("low.safetensors"), [quarter] * FRAMES)
        video = self.path("difference.mp4")
        ended, _ = self.compare(low, grey, f"--diff={video}")
        self.assertEqual(ended.status, 1, ended)
        del good
        probed = json.loads(
            subprocess.run(
                ["ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", video],
                stdout=subprocess.PIPE, check=True,
            ).stdout
        )  # fmt: skip
        picture, sound = probed["streams"]
        self.assertEqual(
            [picture[key] for key in ("codec_name", "pix_fmt", "color_range", "color_space",
                                      "color_transfer", "color_primaries", "r_frame_rate")],
            ["h264", "yuv420p", "tv", "bt709", "bt709", "bt709", "24/1"],
        )  # fmt: skip
        self.assertEqual(sound["codec_name"], "aac")
        self.assertEqual(int(picture["nb_frames"]), FRAMES)
        raw = subprocess.run(
            ["ffmpeg", "-v", "error", "-i", video, "-frames:v", "1", "-f", "rawvideo", "-"],
            stdout=subprocess.PIPE, check=True,
        ).stdout  # fmt: skip
        self.assertEqual(len(raw), HEIGHT * WIDTH * 3 // 2)
        chroma = HEIGHT * WIDTH
        for i, (red, green, blue) in enumerate(PATCHES):
            # As the difference shows it: four times the distance of the rounded quarter from 128.
            r, g, b = (
                (127.5 + 4 * (round(127.5 + (value - 127.5) / 4) - 128)) / 255
                for value in (red, green, blue)
            )
            luma = 0.2126 * r + 0.7152 * g + 0.0722 * b
            y = i // 4 * (HEIGHT // 2) + HEIGHT // 4
            x = i % 4 * (WIDTH // 4) + WIDTH // 8
            self.assertAlmostEqual(raw[y * WIDTH + x], 16 + 219 * luma, delta=3, msg=i)
            place = (y // 2) * (WIDTH // 2) + x // 2
            self.assertAlmostEqual(
                raw[chroma + place], 128 + 224 * (b - luma) / 1.8556, delta=3, msg=i
            )
            self.assertAlmostEqual(
                raw[chroma + HEIGHT * WIDTH // 4 + place],
                128 + 224 * (r - luma) / 1.5748,
                delta=3,
                msg=i,
            )

    def test_a_browser_plays_it_with_its_colours_and_its_sound(self):
        """Chromium, on a difference that shows the card and sounds two tones."""
        quarter = bytes(round(127.5 + (value - 127.5) / 4) for value in card())
        silence = [0.0] * SAMPLES
        grey = media(self.path("grey.safetensors"), [bytes([128] * len(quarter))] * FRAMES,
                     silence, silence)  # fmt: skip
        low = media(self.path("low.safetensors"), [quarter] * FRAMES)
        video = self.path("difference.mp4")
        ended, _ = self.compare(low, grey, f"--diff={video}")
        self.assertEqual(ended.status, 1, ended)
        seen = browser.run_page(
            PLAY, {"/video.mp4": ("video/mp4", pathlib.Path(video).read_bytes())}
        )
        self.assertIsNotNone(seen, "the browser has not answered")
        self.assertNotIn("error", seen)
        self.assertEqual((seen["width"], seen["height"]), (WIDTH, HEIGHT))
        self.assertAlmostEqual(seen["duration"], FRAMES / 24, delta=0.03)
        self.assertAlmostEqual(seen["end"], FRAMES / 24, delta=0.05)
        self.assertAlmostEqual(seen["middle"], FRAMES / 48, delta=0.05)
        for patch, colour in zip(PATCHES, seen["colours"]):
            for wanted, shown in zip(patch, colour):
                # Two for the quarter's rounding, the rest for the codec's.
                meant = 127.5 + 4 * (round(127.5 + (wanted - 127.5) / 4) - 128)
                self.assertAlmostEqual(shown, meant, delta=6, msg=f"{patch}: {colour}")
        self.assertGreater(seen["played"], 0)
        self.assertAlmostEqual(seen["sound"], SAMPLES / RATE, delta=0.05)
        for channel, hertz in zip(seen["channels"], (440, 660)):
            self.assertAlmostEqual(channel["hertz"], hertz, delta=15)
            self.assertAlmostEqual(channel["rms"], 0.5 / 2**0.5, delta=0.03)


if __name__ == "__main__":
    unittest.main()
