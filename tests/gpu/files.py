"""A checkpoint on disk, and runs that are taken up again with it.

Usage: files.py PROGRAMS FOLDER [SIZE [DEVICE]]
  write   synthetic weights in the released layout, 14 shards and an index, as many blocks as 30 GB hold
  load    a generation on a small canvas whose worker starts with the files on disk alone, is killed and starts again with the
          files in the system's cache: seconds to the first new step, and what they went into
  resume  48 steps and more of the released canvas, of a model of few blocks, replayed by a worker that has none of them, and by
          one that has them in its own cache
The checkpoints are removed at the end. Exit status 1 if anything does not hold.
"""

import os
import shutil
import signal
import subprocess
import sys
import time

from part import Part
from service import Service
from sizes import SIZES, generation_words, write_config
from steps import resumption

SHARDS = 14
LOAD_STEPS, KILL_AT = 20, 8
RESUME_STEPS, REPLAYED = 64, 48
MOST_REPLAY_SECONDS = 5


def checkpoints(part):
    """The folder that the worker's checkpoints lie under."""
    path = os.path.join(part.folder, "checkpoints")
    os.makedirs(path, exist_ok=True)
    return path


def write_checkpoint(part, name, blocks):
    """Bytes and seconds."""
    root = checkpoints(part)
    shutil.rmtree(os.path.join(root, name), ignore_errors=True)
    write_config(part.size, blocks, os.path.join(root, f"{name}.json"))
    start = time.monotonic()
    ended = subprocess.run(
        [
            os.path.join(part.programs, "write_checkpoint"),
            f"synthetic:{name}.json:1",
            str(SHARDS),
            os.path.join(root, name),
            root,
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {"bytes": int(ended.stdout), "seconds": time.monotonic() - start}


def forget(part, name):
    """Drops the files from the system's cache."""
    folder = os.path.join(checkpoints(part), name, "transformer")
    for file in os.listdir(folder):
        descriptor = os.open(os.path.join(folder, file), os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def write(part):
    return write_checkpoint(part, "large", part.size.file_blocks)


def load(part):
    with Service(part.programs, part.folder, "load", [checkpoints(part)], lease=part.size.lease) as service:
        words = generation_words(part.size, part.folder, LOAD_STEPS, *part.size.load_canvas, checkpoint="large")
        forget(part, "large")
        job = service.client(*words, "--preflight", "--latents-only").strip()
        workers = []
        for name in "ab":
            workers.append(service.start_worker(part.device, name))
            if name == "a":
                service.wait(lambda: service.saved(job).get(42, 0) >= KILL_AT, f"{KILL_AT} steps are saved", 0.02)
                workers[0].end(signal.SIGKILL)
        service.wait_for_end(job)
        found = [resumption(worker) for worker in workers]
    service.remove()
    return found


def resume(part):
    write_checkpoint(part, "small", part.size.resumed_blocks)
    with Service(part.programs, part.folder, "resume", [checkpoints(part)], lease=part.size.lease) as service:
        words = generation_words(part.size, part.folder, RESUME_STEPS, *part.size.resume_canvas, checkpoint="small")
        job = service.client(*words, "--preflight", "--latents-only").strip()
        first = service.start_worker(part.device, "a")
        service.wait(lambda: service.saved(job).get(42, 0) >= REPLAYED, f"{REPLAYED} steps are saved", 0.02)
        first.end(signal.SIGKILL)
        found = {"computed": first_pass(first)}
        # One that has no step, and one that has those of the first in its cache.
        for name in ("b", "a"):
            worker = service.start_worker(part.device, name)
            service.wait_for_step(worker)
            worker.end(signal.SIGKILL)
            found[name] = resumption(worker)
    service.remove()
    return found


def first_pass(worker):
    """Seconds from the start of a step to that of the next, of those behind the first."""
    starts = {line["step"]: line["at"] for line in worker.log() if line["message"] == "computing step"}
    return [starts[step + 1] - starts[step] for step in starts if step > 0 and step + 1 in starts]


def remove(part):
    shutil.rmtree(checkpoints(part))
    return True


def show(part, table, failures):
    written = part.state["write"]
    gigabytes = written["bytes"] / 1e9
    table.add("checkpoint written", f"{gigabytes:.1f} GB, {part.size.file_blocks} blocks, {SHARDS} shards, {written['seconds']:.1f} s, {gigabytes / written['seconds']:.2f} GB/s")
    names = ("from disk", "from the system's cache, resumed")
    for name, worker in zip(names, part.state["load"]):
        failures.expect("loaded_bytes" in worker, f"{name}: the weights are loaded and stay")
        if "loaded_bytes" in worker:
            loaded, seconds = int(worker["loaded_bytes"]) / 1e9, float(worker["loading_seconds"])
            failures.expect(int(worker["loaded_bytes"]) == written["bytes"], f"{name}: all of the weights")
            table.add(f"{name}: loaded", f"{loaded:.1f} GB in {seconds:.2f} s, {loaded / max(seconds, 1e-6):.2f} GB/s, beside the replay")
        seconds = worker["opened"] - worker["leased"]
        table.add(f"{name}: identified", f"{gigabytes / seconds:.2f} GB/s: {seconds:.2f} s from the task to the run")
        if worker["replayed"]:
            table.add(f"{name}: replayed", f"{worker['replayed']} steps, by {worker['computing'] - worker['opened']:.2f} s later")
        table.add(f"{name}: start to the task", f"{worker['leased']:.2f} s, of which a lost worker's lease is up to {part.size.lease}")
        evaluated = max(worker["computing"], worker.get("loaded", 0))
        table.add(f"{name}: from the task to the first new step's evaluation", f"{evaluated - worker['leased']:.2f} s")
    resumed = part.state["resume"]
    passes = sorted(resumed["computed"])
    table.add(f"a stored step of {part.size.resumed_blocks} blocks, released canvas", f"{passes[len(passes) // 2]:.3f} s, {passes[-1]:.3f} at most")
    for name, label in (("b", "fetched from the coordinator"), ("a", "from its own cache")):
        worker = resumed[name]
        failures.expect(worker["replayed"] >= REPLAYED, f"{REPLAYED} steps are replayed")
        loading = f"{worker['loading_seconds']:.2f} s" if "loaded" in worker else "was not done by then"
        seconds = worker["computing"] - worker["opened"]
        table.add(f"steps replayed, {label}", f"{worker['replayed']} in {seconds:.2f} s (must: {MOST_REPLAY_SECONDS} for {REPLAYED}); loading, beside it, {loading}")
        if part.size is SIZES["released"]:
            failures.expect(seconds * REPLAYED / worker["replayed"] <= MOST_REPLAY_SECONDS, f"replay of {REPLAYED} steps")


def main():
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    programs, folder, size, device = sys.argv[1:] + ["released", "auto"][len(sys.argv) - 3 :]
    part = Part("files", SIZES[size], programs, folder, device)
    phases = [("write", 120, write), ("load", 150, load), ("resume", 90, resume), ("remove", 10, remove)]
    return part.run(phases, show)


if __name__ == "__main__":
    sys.exit(main())
