"""tools/capture against the captures in tests/golden, where PyTorch and diffusers are.

Usage: capture.py TOOLS GOLDEN OUT      (folders: tools/capture, tests/golden, and one for what is written)

Prints a line for each comparison and ends with 1 if one is out of bounds.
"""

import json
import subprocess
import sys
from pathlib import Path

import torch

TOOLS, GOLDEN, OUT = (Path(path) for path in sys.argv[1:4])
sys.path.insert(0, str(TOOLS))
import capture_files  # noqa: E402
from capture_generation import save_conditioning  # noqa: E402

CHECKPOINT = GOLDEN / "checkpoint"
# Layout of the golden captures: 2 latent frames of 6 x 8, 5 audio latents, one keyframe.
CONTRACT = {
    "seeds": [42],
    "num_frames": 5,
    "height": 96,
    "width": 128,
    "num_inference_steps": 6,
    "num_audio_latents": 5,
    "rng": "torch-cpu",
}
failures = []


def capture(*arguments):
    command = [sys.executable, str(TOOLS / "plumbline_capture.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(" ".join(map(str, arguments)), "\n", done.stdout[-1500:], done.stderr[-3000:], flush=True)
    return done.returncode == 0


def report(title, passed, what):
    print(f"{'ok  ' if passed else 'FAIL'}  {title:44}  {what}", flush=True)
    if not passed:
        failures.append(title)


def compare(title, found_path, expected_path, bound, rename=lambda name: name, only_common=False):
    """Worst relative L2 over tensors, which must have the same names, shapes and types."""
    if not found_path.is_file():
        report(title, False, "was not written")
        return
    found, _ = capture_files.read_tensors(found_path)
    expected, _ = capture_files.read_tensors(expected_path)
    expected = {rename(name): tensor for name, tensor in expected.items()}
    if only_common:
        found = {name: tensor for name, tensor in found.items() if name in expected}
    missing, extra = expected.keys() - found.keys(), found.keys() - expected.keys()
    if missing or extra:
        report(title, False, f"missing {sorted(missing)[:4]}, extra {sorted(extra)[:4]}")
        return
    worst, equal = (0.0, ""), 0
    for name, reference in expected.items():
        tensor = found[name]
        if tensor.shape != reference.shape or tensor.dtype != reference.dtype:
            report(title, False, f"{name}: {tensor.dtype} {tuple(tensor.shape)}, not {reference.dtype} "
                                 f"{tuple(reference.shape)}")
            return
        equal += torch.equal(tensor, reference)
        a, b = tensor.double(), reference.double()
        norm = b.norm().item()
        worst = max(worst, ((a - b).norm().item() / (norm or 1.0), name))
    report(title, worst[0] <= bound, f"{worst[0]:.2e} <= {bound:g} ({worst[1]}); {equal} of {len(expected)} bitwise")


def check_model(title, golden, bound, *arguments, only_common=False):
    path = OUT / f"model-{title.replace(' ', '-')}.safetensors"
    capture("model", f"--checkpoint={CHECKPOINT}", f"--inputs={GOLDEN / 'transformer_inputs.safetensors'}",
            f"--output={path}", *arguments)
    compare(f"model {title}", path, GOLDEN / golden, bound, only_common=only_common)


def check_block(title, golden, bound, *arguments):
    path = OUT / f"block-{title.replace(' ', '-')}.safetensors"
    capture("block", f"--checkpoint={CHECKPOINT}", f"--inputs={GOLDEN / 'transformer_inputs.safetensors'}",
            f"--output={path}", *arguments)
    compare(f"block {title}", path, GOLDEN / golden, bound)


def layout_alone():
    inputs, _ = capture_files.read_tensors(GOLDEN / "transformer_inputs.safetensors")
    path = OUT / "layout.safetensors"
    capture_files.save_tensors(path, {name: inputs[name] for name in capture_files.LAYOUT})
    return path


def check_generation(title, bound, *arguments):
    from diffusers.modular_pipelines.modular_pipeline import PipelineState

    inputs, _ = capture_files.read_tensors(GOLDEN / "transformer_inputs.safetensors")
    golden, _ = capture_files.read_tensors(GOLDEN / "generation_fp32_cpu.safetensors")
    state = PipelineState()
    state.set("prompt_embeds", inputs["input.encoder_hidden_states"])
    state.set("text_token_tags", torch.ones(1, inputs["text_indices"].numel(), dtype=torch.int64))
    state.set("condition_latents", [golden["condition_latents"]])
    state.set("keyframe_anchors", ("first",))
    conditioning, contract = OUT / "conditioning.safetensors", OUT / "contract.json"
    save_conditioning(conditioning, state)
    contract.write_text(json.dumps(CONTRACT))
    path = OUT / f"generation-{title.replace(' ', '-')}.safetensors"
    capture("generation", f"--checkpoint={CHECKPOINT}", f"--contract={contract}", f"--conditioning={conditioning}",
            "--seed=42", f"--output={path}", *arguments)
    expected = OUT / "generation-expected.safetensors"
    capture_files.save_tensors(expected, {k: v for k, v in golden.items() if k != "condition_latents"})
    compare(f"generation {title}", path, expected, bound)
    expected.unlink()


def check_shards():
    """A capture larger than one file, made small."""
    whole, _ = capture_files.read_tensors(GOLDEN / "block0_fp32_cpu.safetensors")
    capture_files.SHARD_BYTES = 1 << 20
    writer = capture_files.CaptureWriter(OUT / "sharded.safetensors", {"torch": torch.__version__})
    for name, tensor in whole.items():
        writer.add(name, tensor)
    writer.finish()
    places = json.loads((OUT / "sharded.safetensors.index.json").read_text())["weight_map"]
    found = {}
    for shard in set(places.values()):
        tensors, _ = capture_files.read_tensors(OUT / shard)
        found |= {name: tensor for name, tensor in tensors.items() if places[name] == shard}
    equal = found.keys() == whole.keys() and all(torch.equal(found[name], whole[name]) for name in whole)
    report("shards", equal and len(set(places.values())) > 2, f"{len(set(places.values()))} files")
    for path in OUT.glob("sharded*"):
        path.unlink()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    cpu, gpu = "--device=cpu", "--device=cuda:0"
    full = "--dtype=float32"
    check_shards()
    check_model("float32 cpu", "transformer_fp32_cpu.safetensors", 1e-6, cpu, full)
    check_model("float32 cpu offload", "transformer_fp32_cpu.safetensors", 1e-6, cpu, full, "--offload")
    check_block("float32 cpu", "block0_fp32_cpu.safetensors", 1e-6, cpu, full)
    check_generation("float32 cpu", 1e-6, cpu, full)
    check_generation("float32 cpu offload", 1e-6, cpu, full, "--offload")
    inputs = OUT / "stand-ins.safetensors"
    forward = OUT / "forward.safetensors"
    capture("model", f"--checkpoint={CHECKPOINT}", f"--inputs={layout_alone()}", f"--output={forward}",
            f"--save-inputs={inputs}", cpu, full, "--forward-only")
    compare("stand-ins", inputs, GOLDEN / "transformer_inputs.safetensors", 0)
    for path in (inputs, forward):
        path.unlink(missing_ok=True)
    if torch.cuda.is_available():
        check_model("float32 gpu", "transformer_fp32_cpu.safetensors", 5e-6, gpu, full)
        check_model("float32 gpu offload", "transformer_fp32_cpu.safetensors", 5e-6, gpu, full, "--offload")
        check_model("float32 gpu checkpointing", "transformer_fp32_cpu.safetensors", 5e-6, gpu, full, "--checkpointing")
        check_generation("float32 gpu", 5e-6, gpu, full)
        bfloat16 = "transformer_bf16_cuda.safetensors"
        check_model("bfloat16 gpu", bfloat16, 2e-2, gpu, only_common=True)
        check_model("bfloat16 gpu offload", bfloat16, 2e-2, gpu, "--offload", only_common=True)
        for attention in ("flash", "efficient", "math"):
            check_model(f"bfloat16 gpu {attention}", bfloat16, 1e-1, gpu, f"--attention={attention}", only_common=True)
        check_block("bfloat16 gpu", "block0_bf16_cuda.safetensors", 2e-2, gpu)
    print(f"{len(failures)} failed" if failures else "all passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
