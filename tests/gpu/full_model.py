"""The full model at the released size on a GPU, against a run of PyTorch 2.11 on an H200.

Usage: full_model.py PLUMBLINE CAPTURE_FOLDER
Golden, five providers and the candidate in lockstep, layout small: 764 tensors, forward and backward. What is held to
full_model_h200.json: the golden's norms, each provider's errors by its own column; and the candidate to the rule that
is frozen from the providers of this run. Prints what does not hold; exit status 1 if anything does not.
"""

import json
import os
import sys
import tempfile

from block_replay import Failures, run

CHECKPOINT = "--checkpoint=synthetic:released:1"
VARIANTS = ("default", "sdpa-flash", "sdpa-efficient", "sdpa-math", "blas-cublaslt")
GOLDEN_TOLERANCE = 1e-4
COLUMN_TOLERANCE = 0.10
HEAD_NORM_TOLERANCE = 0.30
HEAD_NORMS = ("attn.norm_q.weight", "attn.norm_k.weight")
# Where PyTorch has no error at all.
ZERO_TOLERANCE = 1e-6
AIM_SECONDS = 45
MOST_SHOWN = 20


def submit(program, folder):
    """The report; None, said why, where there is none."""
    path = os.path.join(folder, "report.json")
    status, out, error, seconds = run(
        program, "submit", "full-model", CHECKPOINT, "--layout=small", "--wait", f"--report={path}"
    )
    print(f"  status {status}, {seconds:.0f} s with everything around it")
    if not os.path.exists(path):
        print(out[-2000:] + error[-2000:])
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Column:
    """How far one provider is from PyTorch's column."""

    def __init__(self, name):
        self.name = name
        self.worst = 0.0
        self.worst_at = ""
        self.worst_head_norm = 0.0
        self.outside = []

    def add(self, tensor, ours, pytorch):
        if pytorch <= ZERO_TOLERANCE:
            if ours > ZERO_TOLERANCE:
                self.outside.append(f"{tensor}: {self.name} {ours:.3e} where PyTorch has {pytorch:.1e}")
            return
        off = abs(ours / pytorch - 1)
        head_norm = tensor.endswith(HEAD_NORMS)
        if head_norm:
            self.worst_head_norm = max(self.worst_head_norm, off)
        elif off > self.worst:
            self.worst, self.worst_at = off, tensor
        if off > (HEAD_NORM_TOLERANCE if head_norm else COLUMN_TOLERANCE):
            self.outside.append(f"{tensor}: {self.name} {ours:.3e}, {ours / pytorch:.3f} of PyTorch's")


def check_tensors(result, recorded, failures):
    tensors = result["tensors"]
    names = [tensor["name"] for tensor in tensors]
    failures.expect(sorted(names) == sorted(recorded), f"{len(names)} tensors, the recorded {len(recorded)}")
    providers = [provider["name"].split("/")[-1] for provider in result["providers"]]
    failures.expect(providers == list(VARIANTS), f"the providers {providers}")
    columns = [Column(name) for name in providers]
    worst_norm = 0.0
    for tensor in tensors:
        expected = recorded.get(tensor["name"])
        if expected is None:
            continue
        off = abs(tensor["golden_norm"] / expected["norm"] - 1) if expected["norm"] else abs(tensor["golden_norm"])
        worst_norm = max(worst_norm, off)
        failures.expect(off <= GOLDEN_TOLERANCE, f"{tensor['name']}: golden norm off by {off:.2e}")
        for column, error in zip(columns, tensor["provider_errors"]):
            column.add(tensor["name"], error["relative_l2"], expected[column.name][0])
    print(f"  {len(names)} tensors; golden norms within {worst_norm:.1e}")
    for column in columns:
        print(
            f"  {column.name}: within {column.worst:.1%} ({column.worst_at}), norm_q/k {column.worst_head_norm:.1%}, "
            f"{len(column.outside)} outside"
        )
        for text in column.outside[:MOST_SHOWN]:
            failures.expect(False, text)
        failures.count += len(column.outside[MOST_SHOWN:])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, captures = sys.argv[1:]
    failures = Failures()
    with open(os.path.join(captures, "full_model_h200.json"), encoding="utf-8") as file:
        recorded = json.load(file)["tensors"]
    with tempfile.TemporaryDirectory(prefix="plumbline-", dir="/tmp") as folder:
        os.environ["PLUMBLINE_STATE_DIR"] = os.path.join(folder, "state")
        os.environ.pop("PLUMBLINE_SERVER", None)
        report = submit(program, folder)
        failures.expect(report is not None, "a report")
        if report is not None:
            result = report["tasks"][0]["full_model"]
            check_tensors(result, recorded, failures)
            verdict = report["verdict"]
            failures.expect(verdict["outcome"] == "OUTCOME_PASSED", verdict["sentence"])
            print("  " + verdict["sentence"])
            print(
                f"  worst ratio {result['worst_ratio']:.3f}, {result['wall_seconds']:.1f} s (aim {AIM_SECONDS}), "
                f"peak memory {int(result['peak_memory_bytes']) / 2**30:.1f} GiB, "
                f"weights loaded {int(result['weight_bytes']) / 1e9:.1f} GB"
            )
        log = os.path.join(folder, "state", "log")
        if failures.count and os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                print(file.read()[-2000:])
    print(f"{failures.count} do not hold")
    return 1 if failures.count else 0


if __name__ == "__main__":
    sys.exit(main())
