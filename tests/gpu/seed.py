"""One seed from noise to media: 50 grid points on a small canvas, under candidate and provider, decoded and compared.

Usage: seed.py PROGRAMS FOLDER [SIZE [DEVICE]]
The MP4s go to FOLDER/media; where the worker has no FFmpeg, its frames are kept with the job for one that has. The quality is
shown, not judged: what synthetic weights make of noise is no picture. Exit status 1 if anything does not hold.
"""

import json
import os
import sys
import time

from part import Part
from service import Service
from sizes import SIZES, generation_words
from steps import authorisation

GRID_POINTS = 50


def submit(service, part, *flags):
    words = generation_words(
        part.size, part.folder, GRID_POINTS - 1, part.size.seed_height, part.size.seed_width
    )
    return service.client(*words, *flags).strip()


def generate(part):
    with Service(part.programs, part.folder) as service:
        reference = part.once("seed.provider", lambda: submit(service, part, "--composition=provider/default"))
        job = part.once(
            "seed.candidate", lambda: submit(service, part, authorisation(part), f"--against={reference}")
        )
        service.start_worker(part.device)
        start = time.monotonic()
        reports = {"provider": service.wait_for_end(reference), "candidate": service.wait_for_end(job)}
        for name, report in reports.items():
            with open(os.path.join(part.folder, f"seed-{name}.json"), "w", encoding="utf-8") as file:
                json.dump(report, file)
        text = service.client("report", job, accepted=(0, 1))
        with open(os.path.join(part.folder, "quality.txt"), "w", encoding="utf-8") as file:
            file.write(text)
        runs = {name: report["tasks"][0]["generation"]["run"] for name, report in reports.items()}
        artifacts = {name: service.job(each)["artifacts"] for name, each in (("provider", reference), ("candidate", job))}
        return {"runs": runs, "artifacts": artifacts, "seconds": time.monotonic() - start}


def media(part):
    """The MP4s of both runs; none where there is no FFmpeg."""
    folder = os.path.join(part.folder, "media")
    os.makedirs(folder, exist_ok=True)
    found = {}
    with Service(part.programs, part.folder) as service:
        worker = service.start_worker(part.device)
        if worker.logged("no FFmpeg"):
            return found
        for name, run in part.state["generate"]["runs"].items():
            path = os.path.join(folder, f"{name}.mp4")
            start = time.monotonic()
            service.client("decode", f"--latents={run}", f"--output={path}")
            found[name] = {"bytes": os.path.getsize(path), "seconds": time.monotonic() - start}
    return found


def show(part, table, failures):
    reports = {}
    for name in ("provider", "candidate"):
        with open(os.path.join(part.folder, f"seed-{name}.json"), encoding="utf-8") as file:
            reports[name] = json.load(file)
    for name, report in reports.items():
        generation = report["tasks"][0]["generation"]
        failures.expect(len(generation["steps"]) == GRID_POINTS - 1, f"{GRID_POINTS - 1} steps of {name}")
        failures.expect(generation["not_decoded"] == "", f"{name} is decoded: {generation['not_decoded']}")
        seconds = [step["seconds"] for step in generation["steps"]]
        table.add(f"{name}: seconds a step", f"{sum(seconds) / len(seconds):.3f}, {sum(seconds):.1f} in all")
    compared = next(task for task in reports["candidate"]["tasks"] if "generation_comparison" in task)
    comparison = compared["generation_comparison"]
    quality = comparison["quality"]
    failures.expect(comparison["noise_equal"], "equal noise")
    failures.expect(len(quality["frames"]) == part.size.frames, f"{part.size.frames} frames")
    failures.expect(len(comparison["latent_drift"]) == GRID_POINTS - 1, "the latent drift of every step")
    last = comparison["latent_drift"][-1]
    table.add("canvas", f"{part.size.seed_width}x{part.size.seed_height}, {part.size.frames} frames, {GRID_POINTS} grid points")
    table.add("latent drift after the last step", f"video {last['video']:.3e}, audio {last['audio']:.3e}")
    table.add("PSNR, SSIM", f"{quality['psnr_db']:.2f} dB, {quality['ssim']:.5f}")
    table.add("temporal RMSE, audio relative L2", f"{quality['temporal_rmse']:.2e}, {quality['audio_relative_l2']:.2e}")
    table.add("within the contract's bounds", "yes" if quality["passed"] else "no: " + compared["verdict"]["sentence"])
    for name, report in reports.items():
        decoded = report["tasks"][0]["generation"]["decoded"]
        table.add(f"{name}: seconds of decoding", f"video {decoded['video_seconds']:.1f}, audio {decoded['audio_seconds']:.1f}")
        kept = part.state["media"].get(name)
        table.add(f"{name}: MP4", f"{kept['bytes'] / 1e3:.0f} kB, written in {kept['seconds']:.1f} s" if kept else "no FFmpeg: frames are kept")


def main():
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    programs, folder, size, device = sys.argv[1:] + ["released", "auto"][len(sys.argv) - 3 :]
    part = Part("seed", SIZES[size], programs, folder, device)
    return part.run([("generate", 120, generate), ("media", 40, media)], show)


if __name__ == "__main__":
    sys.exit(main())
