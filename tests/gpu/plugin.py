"""CUDA plug-ins, built by nvcc with nothing but the header, through plumbline on a GPU; and a Triton kernel by what it wrote.

Usage: plugin.py PLUMBLINE FOLDER
FOLDER holds the objects of examples/plugin (the CUDA ones, and swiglu.so for a CPU) and swiglu_triton.py.
Prints a line each; exit status 1 if one is not what it must be.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time

TINY = ("--checkpoint=synthetic:tiny", "--layouts=tiny")
# What is wrong on purpose, with the exit status and what must be said.
WRONG = {
    "unwritten": (2, "plugin/cuda_unwritten: did not write the output at (0, 263, 255)"),
    "overrun": (2, "plugin/cuda_overrun: wrote outside the output, 4 bytes behind its end, at (0, 264, 2)"),
    "changes_input": (2, "plugin/cuda_changes_input: changed its input gate_up at (0, 3, 5)"),
    "scratch_overrun": (2, "plugin/cuda_scratch_overrun: wrote outside the workspace, 0 bytes behind its end"),
    "bad_pointer": (2, "block.0/swiglu: plugin/cuda_bad_pointer: what it enqueued: cudaErrorIllegalAddress"),
    "neighbours": (1, "plugin/cuda_neighbours promises to be row-invariant and is not, at swiglu"),
}


class Runs:
    def __init__(self, program):
        self.program = program
        self.failed = 0

    def replay(self, name, status, text, *flags):
        """Runs a block replay, which must end with `status` and say `text`; returns what it said."""
        start = time.monotonic()
        ended = subprocess.run(
            [self.program, "submit", "block-replay", *flags], capture_output=True, text=True, timeout=120, check=False
        )
        said = ended.stdout + ended.stderr
        holds = ended.returncode == status and text in said
        self.failed += not holds
        last = next((line for line in reversed(said.splitlines()) if text in line), said.strip()[-300:])
        print(
            f"{name:<16} {'ok' if holds else 'FAILED':<6} status {ended.returncode} ({status}), "
            f"{time.monotonic() - start:.0f} s | {last.strip()[:180]}"
        )
        return said

    def swiglu(self, name, plugin, status, text):
        self.replay(name, status, text, *TINY, f"--plugin={plugin}", f"--composition=candidate+plugin/{name}:swiglu")


def judge_triton(runs, folder, work):
    provider, candidate = (os.path.join(work, f"{side}.safetensors") for side in ("provider", "candidate"))
    runs.replay("provider", 0, "", *TINY, "--composition=provider", f"--save-tensors={provider}")
    if importlib.util.find_spec("torch") is None:
        print("triton           not run: PyTorch is not there")
        return
    has_triton = importlib.util.find_spec("triton") is not None
    made = subprocess.run(
        [sys.executable, os.path.join(folder, "swiglu_triton.py"), provider, candidate],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        print(made.stderr[-1000:])
    said = runs.replay("triton" if has_triton else "pytorch", 0, "PARTIAL", *TINY, f"--candidate={candidate}")
    for line in said.splitlines():
        if line.split()[:1] in (["swiglu"], ["ffn_down"]):
            print("  " + line.strip())


def main():
    program, folder = sys.argv[1:]
    runs = Runs(program)
    attention = (f"--plugin={folder}/attention.so", "--composition=candidate+plugin/example_attention:attention")
    with tempfile.TemporaryDirectory(prefix="plumbline-", dir="/tmp") as work:
        os.environ["PLUMBLINE_STATE_DIR"] = os.path.join(work, "state")
        os.environ.pop("PLUMBLINE_SERVER", None)
        runs.replay("attention", 0, "PASSED", TINY[0], "--layouts=tiny,small", *attention)
        runs.replay(
            "released size", 0, "PASSED", "--checkpoint=synthetic:released", "--layouts=small,medium", *attention
        )
        runs.replay("no backward", 2, "has no backward of block.0/attention", *TINY, "--backward", *attention)
        for name, (status, text) in WRONG.items():
            runs.swiglu(f"cuda_{name}", f"{folder}/{name}.so", status, text)
        runs.replay("after them", 0, "PASSED", *TINY, *attention)
        runs.swiglu("example_swiglu", f"{folder}/swiglu.so", 2, "has kernels for a CPU alone")
        judge_triton(runs, folder, work)
    print(f"{runs.failed} do not hold")
    return 1 if runs.failed else 0


if __name__ == "__main__":
    sys.exit(main())
