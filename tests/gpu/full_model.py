"""The full model at the released size on a GPU, by a coordinator, a worker and the command line, against a run of PyTorch
2.11 on an H200.

Usage: full_model.py PROGRAMS CAPTURE_FOLDER FOLDER [SIZE [DEVICE]]
Golden, five providers, the candidate and its ablation in lockstep, layout small: 764 tensors, forward and backward. What
is held to full_model_h200.json: the golden's norms, each provider's errors by its own column; and the candidate to the
rule that is frozen from the providers of this run. Its service stays in FOLDER, where generations are authorised by its job.
SIZE is released or tiny, which has no recorded figures. Exit status 1 if anything does not hold.
"""

import json
import os
import sys

from part import Part
from service import Service, gpu_memory_bytes
from sizes import SIZES

VARIANTS = ("default", "sdpa-flash", "sdpa-efficient", "sdpa-math", "blas-cublaslt")
GROUPS = "attention gemms swiglu qk_norm norms residuals adaln_projection interim all".split()
GOLDEN_TOLERANCE = 1e-4
COLUMN_TOLERANCE = 0.10
HEAD_NORM_TOLERANCE = 0.30
HEAD_NORMS = ("attn.norm_q.weight", "attn.norm_k.weight")
# Where PyTorch has no error at all.
ZERO_TOLERANCE = 1e-6
AIM_SECONDS = 45
MOST_SHOWN = 20


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


def check_tensors(result, recorded, table, failures):
    tensors = result["tensors"]
    names = [tensor["name"] for tensor in tensors]
    failures.expect(sorted(names) == sorted(recorded), f"{len(names)} tensors, the recorded {len(recorded)}")
    columns = [Column(provider["name"].split("/")[-1]) for provider in result["providers"]]
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
    table.add("golden norms against PyTorch's", f"within {worst_norm:.1e}")
    for column in columns:
        table.add(
            f"provider/{column.name} against PyTorch's column",
            f"within {column.worst:.1%} ({column.worst_at}), norm_q/k {column.worst_head_norm:.1%}, "
            f"{len(column.outside)} outside",
        )
        for text in column.outside[:MOST_SHOWN]:
            failures.expect(False, text)
        failures.count += len(column.outside[MOST_SHOWN:])


def check_ablation(rows, table, failures):
    failures.expect([row["group"] for row in rows] == GROUPS, "a row for every group")
    for row in rows:
        if row["empty"]:
            table.add(f"ablation: {row['group']}", "empty")
            continue
        table.add(
            f"ablation: {row['group']}",
            f"{len(row['cleared'])} clear, {len(row['remaining'])} remain, {len(row['introduced'])} new, worst ratio "
            f"{row['worst_ratio']:.3f}",
        )
    forward = [name for name in rows[-1]["differs_from_provider"] if name.startswith(("nodes.", "output.")) and not name.endswith(".grad")]
    failures.expect(not forward, f"with all replaced, the provider's forward bytes: {' '.join(forward[:MOST_SHOWN])}")
    table.add("all replaced: tensors without the provider's bytes", str(len(rows[-1]["differs_from_provider"])))


def gate(part):
    """The job, once it has ended."""
    with Service(part.programs, part.folder) as service:
        # One that was under way when the part was stopped is run again by itself.
        job = part.once(
            "gate.job",
            lambda: service.client(
                "submit",
                "full-model",
                f"--checkpoint={part.size.checkpoint}",
                f"--layout={part.size.gate_layout}",
                "--ablation",
            ).strip(),
        )
        service.start_worker(part.device)
        report = service.wait_for_end(job)
        with open(os.path.join(part.folder, "gate.json"), "w", encoding="utf-8") as file:
            json.dump(report, file)
        return {"job": job, "gpu_bytes": gpu_memory_bytes().get(0, 0)}


def show(part, table, failures):
    with open(os.path.join(part.folder, "gate.json"), encoding="utf-8") as file:
        report = json.load(file)
    result, verdict, rule = report["tasks"][0]["full_model"], report["verdict"], report["tasks"][0]["full_model"]["rule"]
    failures.expect(len(result["tensors"]) == part.size.tensors, f"{part.size.tensors} tensors, not {len(result['tensors'])}")
    providers = [provider["name"].split("/")[-1] for provider in result["providers"]]
    failures.expect(providers == list(VARIANTS), f"the providers {providers}")
    failures.expect(result["rule_made_here"] and rule["origin"] == "RULE_ORIGIN_FROZEN", "a rule frozen in this run")
    failures.expect(verdict["outcome"] == "OUTCOME_PASSED", verdict["sentence"])
    failures.expect(not result["failing"] and not result["extra"] and not result["missing"], "no tensor fails")
    table.add("tensors", f"{len(result['tensors'])}, {result['rows']} rows, {result['blocks']} blocks")
    kept = sum(provider["kept"] for provider in result["providers"])
    table.add("rule", f"k {rule['k']:.1f}, of {kept} of {len(providers)} providers, sha256 {rule['sha256'][:16]}")
    table.add("verdict", verdict["sentence"])
    table.add("worst ratio", f"{result['worst_ratio']:.3f} at {result['worst_tensor']}")
    if part.size is SIZES["released"]:
        with open(os.path.join(part.captures, "full_model_h200.json"), encoding="utf-8") as file:
            check_tensors(result, json.load(file)["tensors"], table, failures)
    check_ablation(result["ablation"], table, failures)
    table.add("seconds, with the ablation", f"{result['wall_seconds']:.1f} (aim without: {AIM_SECONDS})")
    table.add("peak memory", f"{int(result['peak_memory_bytes']) / 2**30:.1f} GiB; on the card {part.state['gate']['gpu_bytes'] / 2**30:.1f}")
    table.add("weights made or loaded", f"{int(result['weight_bytes']) / 1e9:.1f} GB")


def main():
    if not 4 <= len(sys.argv) <= 6:
        sys.exit(__doc__)
    programs, captures, folder, size, device = (sys.argv[1:] + ["released", "auto"][len(sys.argv) - 4 :])
    part = Part("full-model", SIZES[size], programs, folder, device)
    part.captures = captures
    return part.run([("gate", 100, gate)], show)


if __name__ == "__main__":
    sys.exit(main())
