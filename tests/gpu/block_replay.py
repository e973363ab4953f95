"""Block replay at the released size on a GPU: gates, negative controls, and PyTorch's own figures.

Usage: block_replay.py PART PLUMBLINE CAPTURE_FOLDER
  gates     layouts tiny, small and medium against block0_fullsize_h200.json, a run of PyTorch 2.11 on an H200
  controls  every negative control at layout tiny
  pytorch   the provider, node by node, fed with what PyTorch computes on this machine
  ptx       layouts tiny and small with kernels that the driver compiles from the code for compute capability 8.0; the
            provider, whose cuBLAS has no such code, is a capture of itself
Prints what does not hold; exit status 1 if anything does not.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

CHECKPOINT = "--checkpoint=synthetic:released:1"
LAYOUT_ROWS = {"tiny": 264, "small": 925, "medium": 3160}
GOLDEN_TOLERANCE = 1e-5
FORWARD_TOLERANCE = 0.10
GRADIENT_TOLERANCE = 0.30
ATTENTION_RELATIVE_L2 = 1e-3
# What must have PyTorch's bytes: of a whole run, the nodes that nothing before them may differ for;
BEFORE_ATTENTION = (
    "adaln_projection norm1 q_proj k_proj v_proj q_norm k_norm rope_q rope_k".split()
)
# fed node by node, every forward but attention's, and the gradients that neither attention's
# backward (which makes those reaching rope_q, rope_k and v_proj) nor atomics make.
BITWISE_GRADIENTS = (
    "ffn_down.grad swiglu.grad ffn_gate_up.grad norm2.grad residual_attn.grad o_proj.grad "
    "attention.grad q_norm.grad k_norm.grad q_proj.grad k_proj.grad norm1.grad residual_mlp.grad "
    "leaf.input leaf.norm1.weight leaf.norm2.weight leaf.attn.norm_q.weight leaf.attn.norm_k.weight"
).split()


class Failures:
    def __init__(self):
        self.count = 0

    def expect(self, holds, text):
        if not holds:
            self.count += 1
            print("  NOT: " + text)


def run(program, *arguments):
    """(exit status, standard output, standard error, seconds)."""
    start = time.monotonic()
    ended = subprocess.run(
        [program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr, time.monotonic() - start


def replay(program, folder, *flags):
    """The report of a block replay; None, said why, where there is none."""
    path = os.path.join(folder, "report.json")
    if os.path.exists(path):
        os.remove(path)
    status, out, error, seconds = run(
        program, "submit", "block-replay", CHECKPOINT, "--wait", f"--report={path}", *flags
    )
    print(f"  {' '.join(flags)}: status {status}, {seconds:.0f} s")
    if not os.path.exists(path):
        print(out[-2000:] + error[-2000:])
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check_ptx(program, folder, failures):
    capture = os.path.join(folder, "provider.safetensors")
    for layout in ("tiny", "small"):
        flags = [f"--layouts={layout}", "--backward"]
        saved = replay(
            program, folder, *flags, "--composition=provider/default", f"--save-tensors={capture}"
        )
        failures.expect(saved is not None, "the provider's tensors")
        os.environ["CUDA_FORCE_PTX_JIT"] = "1"
        report = replay(program, folder, *flags, f"--provider=default=worker:{capture}")
        del os.environ["CUDA_FORCE_PTX_JIT"]
        failures.expect(report is not None, "a report")
        if report is None:
            return
        failures.expect(
            report["verdict"]["outcome"] == "OUTCOME_PASSED", report["verdict"]["sentence"]
        )
        for entry in report["tasks"][0]["block_replay"]["entries"]:
            for gate in failed_gates(entry):
                failures.expect(False, f"{layout} {entry['name']}: gate {gate}")
        print("  " + report["verdict"]["sentence"])


def capture_name(entry):
    return entry["name"] if entry["name"].startswith("leaf.") else "node." + entry["name"]


def is_gradient(entry):
    return entry["name"].startswith("leaf.") or entry["name"].endswith(".grad")


def check_entry(entry, recorded, failures):
    """Golden and provider of one entry against the recorded run."""
    name = capture_name(entry)
    error = entry["provider_error"]
    norm = recorded["fp32_norms"][name]
    off = abs(error["reference_norm"] / norm - 1)
    failures.expect(off <= GOLDEN_TOLERANCE, f"{name}: golden norm off by {off:.2e}")
    default = recorded["variants"]["default"][name]
    ratio = error["relative_l2"] / default["relative_l2"] if default["relative_l2"] else 1
    tolerance = GRADIENT_TOLERANCE if is_gradient(entry) else FORWARD_TOLERANCE
    failures.expect(
        abs(ratio - 1) <= tolerance,
        f"{name}: provider error {error['relative_l2']:.3e}, {ratio:.3f} of PyTorch's",
    )


def failed_gates(entry):
    return [
        f"{gate['gate']} {gate['value']:.3e} > {gate['bound']:.3e}"
        for gate in entry["gates"]
        if not gate["passed"] and not gate["not_measured"]
    ]


def check_gates(program, folder, captures, failures):
    with open(os.path.join(captures, "block0_fullsize_h200.json"), encoding="utf-8") as file:
        recorded = json.load(file)["layouts"]
    report = replay(program, folder, "--layouts=" + ",".join(LAYOUT_ROWS), "--backward")
    failures.expect(report is not None, "a report")
    if report is None:
        return
    failures.expect(report["verdict"]["outcome"] == "OUTCOME_PASSED", report["verdict"]["outcome"])
    for task in report["tasks"]:
        result = task["block_replay"]
        layout = next(name for name, rows in LAYOUT_ROWS.items() if rows == result["rows"])
        print(f"{layout}: peak memory {int(result['peak_memory_bytes']) / 2**30:.1f} GiB")
        for timing in result["timings"]:
            print(
                f"  {timing['work']}: candidate {timing['candidate']['median_ms']:.3f} ms, provider "
                f"{timing['provider']['median_ms']:.3f} ms"
            )
        for entry in result["entries"]:
            for gate in failed_gates(entry):
                failures.expect(False, f"{layout} {entry['name']}: gate {gate}")
            check_entry(entry, recorded[layout], failures)
        check_hashes(layout, result["entries"], recorded[layout]["variants"]["default"], failures)


def check_hashes(layout, entries, default, failures):
    """Forward bytes of the provider against PyTorch's."""
    same = {
        entry["name"]: entry["provider_error"]["sha256"] == default[capture_name(entry)]["sha256"]
        for entry in entries
        if not is_gradient(entry)
    }
    for name in BEFORE_ATTENTION:
        failures.expect(same[name], f"{layout} {name}: not PyTorch's bytes")
    print("  forward with PyTorch's bytes: " + " ".join(name for name in same if same[name]))


def check_controls(program, folder, failures):
    _, listed, _, _ = run(program, "faults", "--job=block-replay")
    failures.expect(listed != "", "a list of controls")
    for line in listed.splitlines():
        name, place, _ = line.split("\t")
        backward = place.startswith("leaf.") or place.endswith(".grad")
        flags = ["--layouts=tiny", f"--inject={name}"] + ["--backward"] * backward
        report = replay(program, folder, *flags)
        failures.expect(report is not None, f"{name}: a report")
        if report is None:
            continue
        found = report["verdict"].get("first_failure", {}).get("entry", "")
        failures.expect(found == place, f"{name}: found at {found!r}, must be {place!r}")


def check_pytorch(program, folder, failures):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch_block.py")
    for layout in LAYOUT_ROWS:
        layout_path = os.path.join(folder, f"{layout}.layout.safetensors")
        capture = os.path.join(folder, f"{layout}.safetensors")
        status, _, error, _ = run(
            program, "layout", f"--layout={layout}", f"--save-tensors={layout_path}"
        )
        failures.expect(status == 0, f"plumbline layout: {error}")
        status, out, error, seconds = run(sys.executable, script, layout_path, capture)
        failures.expect(status == 0, f"pytorch_block.py: {error[-2000:]}")
        if status != 0:
            return
        print(f"{layout}: {out.strip()}, {seconds:.0f} s")
        report = replay(
            program,
            folder,
            f"--layouts={layout}",
            "--backward",
            "--composition=provider/default",
            f"--provider=pytorch=worker:{capture}",
        )
        os.remove(capture)
        failures.expect(report is not None, "a report")
        if report is None:
            return
        compare_with_pytorch(report["tasks"][0]["block_replay"]["entries"], failures)


def compare_with_pytorch(entries, failures):
    equal = []
    for entry in entries:
        name, found = entry["name"], entry["isolated"]
        if found["bitwise_equal"]:
            equal.append(name)
            continue
        print(
            f"  {name}: {int(found['differing_elements'])} values differ, relative L2 "
            f"{found['relative_l2']:.2e}, at most {found['max_u']:.3g} u"
        )
        if name == "attention":
            failures.expect(found["relative_l2"] <= ATTENTION_RELATIVE_L2, "attention within 1e-3")
        else:
            demanded = not is_gradient(entry) or name in BITWISE_GRADIENTS
            failures.expect(not demanded, f"{name}: not PyTorch's bytes")
    print("  PyTorch's bytes: " + " ".join(equal))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    part, program, captures = sys.argv[1:]
    failures = Failures()
    with tempfile.TemporaryDirectory(prefix="plumbline-", dir="/tmp") as folder:
        os.environ["PLUMBLINE_STATE_DIR"] = os.path.join(folder, "state")
        os.environ.pop("PLUMBLINE_SERVER", None)
        if part == "gates":
            check_gates(program, folder, captures, failures)
        elif part == "controls":
            check_controls(program, folder, failures)
        elif part == "pytorch":
            check_pytorch(program, folder, failures)
        elif part == "ptx":
            check_ptx(program, folder, failures)
        else:
            sys.exit(__doc__)
        log = os.path.join(folder, "state", "log")
        if failures.count and os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                print(file.read()[-3000:])
    print(f"{failures.count} do not hold")
    return 1 if failures.count else 0


if __name__ == "__main__":
    sys.exit(main())
