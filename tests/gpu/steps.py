"""Generation at the released canvas (38,912 rows): steps of candidate and provider, and a worker that is killed.

Usage: steps.py PROGRAMS FOLDER [SIZE [DEVICE]]
  provider   eight steps under provider/default
  candidate  the same under the candidate, against the provider's; a backup of the coordinator's store is made amid them
  killed     a coordinator from that backup: the run goes on under workers of which one gets SIGKILL amid a step and one SIGTERM;
             while they run a GPU has 80 GB, the rest being held by another process, where PyTorch is there to hold it
  pytorch    PyTorch's own step, where it is installed: one block of 50, and what is around the blocks
The steps of the run that was killed must have the bytes of the one that was not. Generations are authorised by the job of
full_model.py, if FOLDER has it, and are preflights otherwise. Exit status 1 if anything does not hold.
"""

import json
import os
import signal
import statistics
import subprocess
import sys

from part import Part
from service import Service, gpu_memory_bytes
from sizes import SIZES, generation_words

STEPS = 8
# Stored when the backup is made, and when the first and the second worker of the copy are ended.
BACKUP_AT, KILL_AMID, TERMINATE_AMID = 4, 5, 6
CARD_BYTES = 80 * 10**9
MOST_OVERHEAD = 0.01


def authorisation(part):
    gate = part.state.get("gate", {}).get("job")
    return f"--gate={gate}" if gate else "--preflight"


def step_bytes(task):
    """What identifies the stored bytes of every step of a run."""
    steps = task["generation"]["steps"]
    return [[(output["name"], output["sha256"]) for output in step["outputs"]] for step in steps]


def intervals(worker, steps):
    """(seconds from the start of a step to the start of the next, seconds of its evaluation), of those that a worker took one
    after another; but for the first, behind which the inputs are checked."""
    starts = {line["step"]: line["at"] for line in worker.log() if line["message"] == "computing step"}
    seconds = {int(step["index"]): step["seconds"] for step in steps}
    return {step: (starts[step + 1] - starts[step], seconds[step]) for step in starts if step > 0 and step + 1 in starts}


def summary(service, worker, job, task):
    """What is kept of a run."""
    steps = task["generation"]["steps"]
    ended = worker.logged("task ended")
    loaded = worker.logged("weights loaded")
    return {
        "job": job,
        "run": task["generation"]["run"],
        "seconds": [step["seconds"] for step in steps],
        "bytes": step_bytes(task),
        "latents": task["generation"]["latents"],
        "sensitivity": [check["passed"] for check in task["generation"]["sensitivity"]],
        "drift": task["generation"]["latent_drift"],
        "preflight": task["generation"]["preflight"],
        "intervals": intervals(worker, steps),
        "device_bytes": ended and ended["device_bytes"],
        "gpu_bytes": gpu_memory_bytes().get(0, 0),
        "loaded": loaded and [loaded["bytes"], loaded["seconds"]],
        "attempts": len(service.job(job)["tasks"][0]["attempts"]),
    }


def provider(part):
    with Service(part.programs, part.folder) as service:
        words = generation_words(part.size, part.folder, STEPS) + ["--latents-only", "--composition=provider/default"]
        job = part.once("provider.job", lambda: service.client(*words).strip())
        worker = service.start_worker(part.device)
        report = service.wait_for_end(job)
        return summary(service, worker, job, report["tasks"][0])


def candidate(part):
    with Service(part.programs, part.folder) as service:
        against = f"--against={part.state['provider']['job']}"
        words = generation_words(part.size, part.folder, STEPS) + ["--latents-only", authorisation(part), against]
        job = part.once("candidate.job", lambda: service.client(*words).strip())
        worker = service.start_worker(part.device)
        if "backup" not in part.state:
            compared = part.state["provider"]["run"]
            service.wait(lambda: service.saved(job, compared).get(42, 0) >= BACKUP_AT, "the steps before the backup are saved")
            service.client("runs", "backup")
            part.keep("backup", True)
        report = service.wait_for_end(job)
        return summary(service, worker, job, report["tasks"][0])


class Ballast:
    """Holds what a GPU has above CARD_BYTES, where PyTorch is there to do it."""

    PROGRAM = """
import sys, torch
free, total = torch.cuda.mem_get_info()
held = torch.empty(max(0, free - int(sys.argv[1])), dtype=torch.uint8, device='cuda')
print(torch.cuda.mem_get_info()[0], flush=True)
sys.stdin.read()
"""

    def __init__(self, device):
        self.process = None
        self.free_bytes = None
        self.device = device

    def __enter__(self):
        if self.device == "cpu":
            return self
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM, str(CARD_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        line = self.process.stdout.readline()
        self.free_bytes = int(line) if line.strip() else None
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.communicate("")


def killed(part):
    job, compared = part.state["candidate"]["job"], part.state["provider"]["run"]
    backups = os.path.join(part.folder, "service/data/backups")
    service = Service(part.programs, part.folder, "copy", restore_from=backups, lease=part.size.lease)
    service.remove()  # Of an earlier try.
    os.makedirs(service.folder)
    with Ballast(part.device) as ballast, service:
        found = {"saved_before": service.saved(job, compared).get(42, 0), "free_bytes": ballast.free_bytes}
        first = service.start_worker(part.device, "a")
        service.wait_for_step(first, KILL_AMID)
        found["killed_status"] = first.end(signal.SIGKILL)
        found["saved_when_killed"] = service.saved(job, compared).get(42, 0)
        second = service.start_worker(part.device, "b")
        service.wait_for_step(second, TERMINATE_AMID)
        found["terminated_status"] = second.end(signal.SIGTERM)
        found["saved_when_terminated"] = service.saved(job, compared).get(42, 0)
        third = service.start_worker(part.device, "c")
        report = service.wait_for_end(job)
        found["gpu_bytes"] = gpu_memory_bytes().get(0, 0)
        (task,) = [task for task in report["tasks"] if "generation" in task]
        found["bytes"], found["latents"] = step_bytes(task), task["generation"]["latents"]
        found["workers"] = [resumption(worker) for worker in (first, second, third)]
    service.remove()
    return found


def resumption(worker):
    """When a worker came how far, in seconds from its start, by its log."""
    found = {"computed": sorted(line["step"] for line in worker.log() if line["message"] == "computing step")}
    lines = (("leased", "task started"), ("opened", "run opened"), ("computing", "computing step"), ("loaded", "weights loaded"))
    for key, message in lines:
        line = worker.logged(message)
        if line is not None:
            found[key] = line["at"] - worker.start
    found["replayed"] = worker.logged("run opened")["saved_steps"]
    line = worker.logged("weights loaded")
    if line is not None:
        found["loaded_bytes"], found["loading_seconds"] = line["bytes"], line["seconds"]
    return found


def pytorch(part):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch_step.py")
    if part.device == "cpu":
        return None
    ended = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if ended.returncode != 0:
        print("PyTorch's step was not timed: " + ended.stderr[-500:])
        return None
    return json.loads(ended.stdout.splitlines()[-1])


def overhead(run):
    """Seconds of a step's wall time that are not its evaluation, median and largest; None where that is not known."""
    beyond = sorted(whole - seconds for whole, seconds in run["intervals"].values())
    return (statistics.median(beyond), beyond[-1]) if beyond else None


def show(part, table, failures):
    of_provider, of_candidate, copy, peer = (part.state[key] for key in ("provider", "candidate", "killed", "pytorch"))
    released = part.size is SIZES["released"]
    for name, run in (("provider/default", of_provider), ("candidate", of_candidate)):
        failures.expect(len(run["seconds"]) == STEPS, f"{STEPS} steps of {name}")
        failures.expect(all(run["sensitivity"]) and run["sensitivity"], f"{name}: every input changes both velocities")
        table.add(f"{name}: seconds a step", " ".join(f"{seconds:.2f}" for seconds in run["seconds"]))
    table.add("candidate authorised by", "a preflight" if of_candidate["preflight"] else "the gate")
    median = {name: statistics.median(run["seconds"]) for name, run in (("provider", of_provider), ("candidate", of_candidate))}
    if peer is not None:
        table.add("PyTorch: seconds a step (50 blocks and the boundaries)", f"{peer['step_seconds']:.2f}; {peer['versions']}")
        for name in median:
            table.add(f"{name} / PyTorch", f"{median[name]:.2f} / {peer['step_seconds']:.2f} = {median[name] / peer['step_seconds']:.3f}")
    # The provider's steps are saved and nothing else; the candidate's are also compared with the provider's.
    for name, run in (("saved", of_provider), ("saved and compared with the provider's", of_candidate)):
        beyond = overhead(run)
        if beyond is None:
            continue
        share = beyond[0] / (beyond[0] + median["candidate"])
        table.add(
            f"beyond its evaluation, a step that is {name}",
            f"{1000 * beyond[0]:.0f} ms, at most {1000 * beyond[1]:.0f}: {share:.2%} of a candidate's step (must: {MOST_OVERHEAD:.0%})",
        )
        failures.expect(share <= MOST_OVERHEAD or not released, f"the overhead of a step that is {name}")
    for drift in of_candidate["drift"]:
        table.add(f"latent drift after step {drift['step']}", f"video {drift['video']:.3e}, audio {drift['audio']:.3e}")
    failures.expect(len(of_candidate["drift"]) == STEPS, "the latent drift of every step")
    if of_candidate["loaded"] is not None:
        loaded, seconds = of_candidate["loaded"]
        table.add("weights made on the card", f"{int(loaded) / 1e9:.1f} GB in {float(seconds):.2f} s")
    table.add("memory in use on the card, candidate", f"{of_candidate['gpu_bytes'] / 1e9:.1f} GB, allocated {of_candidate['device_bytes'] / 1e9:.1f}")
    table.add("memory in use on the card, provider", f"{of_provider['gpu_bytes'] / 1e9:.1f} GB, allocated {of_provider['device_bytes'] / 1e9:.1f}")
    if released and part.device != "cpu":
        failures.expect(of_candidate["gpu_bytes"] <= CARD_BYTES, f"the candidate in {CARD_BYTES / 1e9:.0f} GB")
    if copy["free_bytes"] is not None:
        table.add("free for the killed run's workers", f"{copy['free_bytes'] / 1e9:.2f} GB")

    failures.expect(copy["killed_status"] == -signal.SIGKILL, "a worker died of SIGKILL")
    failures.expect(copy["terminated_status"] == 0, f"a worker ended with status 0 on SIGTERM, not {copy['terminated_status']}")
    failures.expect(copy["bytes"] == of_candidate["bytes"], "the bytes of the run that was not killed, of every step")
    failures.expect(copy["latents"] == of_candidate["latents"], "and of its latents")
    table.add("stored bytes of all steps, killed against undisturbed", "equal" if copy["bytes"] == of_candidate["bytes"] else "DIFFER")
    table.add("steps that both share, from the backup", str(copy["saved_before"]))
    names = ("killed by SIGKILL", "ended by SIGTERM", "the last")
    for name, worker in zip(names, copy["workers"]):
        text = f"replayed {worker['replayed']}, computed {worker['computed']}"
        if "computing" in worker:
            text += (
                f"; after {worker['leased']:.2f} s it had the task, its first new step began "
                f"{worker['computing'] - worker['leased']:.2f} s later"
            )
        table.add(f"worker {name}", text)
    lost = copy["workers"][1]["computed"][0]
    failures.expect(lost >= KILL_AMID - 1, f"the worker behind SIGKILL began at step {lost}")
    failures.expect(copy["workers"][2]["computed"][0] == TERMINATE_AMID + 1, "SIGTERM lost no step")


def main():
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    programs, folder, size, device = sys.argv[1:] + ["released", "auto"][len(sys.argv) - 3 :]
    part = Part("steps", SIZES[size], programs, folder, device)
    return part.run(
        [("pytorch", 30, pytorch), ("provider", 280, provider), ("candidate", 140, candidate), ("killed", 120, killed)], show
    )


if __name__ == "__main__":
    sys.exit(main())
