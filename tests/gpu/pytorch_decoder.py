"""The video decoder in PyTorch under float16 autocast, against what `plumbline decode` makes of the same latents.

Usage: pytorch_decoder.py PLUMBLINE GOLDEN

PLUMBLINE is the program, GOLDEN the folder of captures and of the checkpoint they were made from. Prints the distance
of the provider, the golden and the candidate from PyTorch's result and from the captured float32 one.

Each rounding to float16 makes more of a difference in the last bit of a float32 sum: after four or five, one after the
other, two runs that differ in the order of their sums alone are as far apart as independent roundings make them. So the
measure is PyTorch itself with its linear layers summed in another order: the provider may not be much further from
PyTorch than that, nor its error be another than PyTorch's. Needs PyTorch with CUDA.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

TILE, OVERLAP, PATCH, PATCH_T = 48, 16, 16, 4
HEAD_WIDTH, FREQUENCIES, THETA, EPSILON = 64, 8, 100.0, 1e-5
# Of the distance that another order of summation makes, and of PyTorch's own error.
MOST_DISTANCE, MOST_ERROR_OFF = 1.15, 0.15


class Decoder:
    def __init__(self, weights):
        self.weights = weights
        self.blocks = sum(name.endswith(".scale1") for name in weights)

    def linear(self, name, x):
        return F.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def rotary(self, extents, appended):
        axes = [2 * (torch.arange(0.5, n, dtype=torch.float32, device="cuda") / n) - 1 for n in extents]
        positions = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, 2)
        positions = torch.cat([positions, positions.new_zeros(appended, 3)])
        frequencies = 1.0 / THETA ** torch.arange(0, 1, 1 / FREQUENCIES, dtype=torch.float32, device="cuda")
        angles = 2.0 * torch.pi * positions[:, :, None] * frequencies
        angles = angles.flatten(1).tile(2)[None, :, None]
        return angles.cos(), angles.sin()

    def attention(self, prefix, x, rotary):
        q, k, v = (self.linear(f"{prefix}attn.to_{n}", x).unflatten(2, (-1, HEAD_WIDTH)) for n in "qkv")
        turned = []
        for each in (q, k):
            each = F.rms_norm(each.float(), (HEAD_WIDTH,), eps=EPSILON).to(each.dtype)
            cos, sin = (table.to(each.dtype) for table in rotary)
            moving, still = each[..., : cos.shape[-1]], each[..., cos.shape[-1] :]
            first, second = moving.chunk(2, dim=-1)
            moving = moving * cos + torch.cat([-second, first], dim=-1) * sin
            turned.append(torch.cat([moving, still], dim=-1))
        heads = (each.transpose(1, 2) for each in (*turned, v))
        out = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        return self.linear(f"{prefix}attn.to_out.0", out)

    def block(self, index, h, rotary):
        prefix = f"decoder.transformer_blocks.{index}."
        w = {name: self.weights[prefix + name] for name in ("norm1.weight", "norm2.weight", "scale1", "scale2")}
        width = h.shape[-1]
        x = F.rms_norm(h.float(), (width,), w["norm1.weight"], EPSILON).to(h.dtype)
        h = h + self.attention(prefix, x, rotary) * w["scale1"]
        x = F.rms_norm(h.float(), (width,), w["norm2.weight"], EPSILON).to(h.dtype)
        value, gate = self.linear(f"{prefix}ff.net.0.proj", x).chunk(2, dim=-1)
        return h + self.linear(f"{prefix}ff.net.2", value * F.silu(gate)) * w["scale2"]

    def tile(self, z):
        z = F.conv3d(z, self.weights["post_quant_conv.weight"], self.weights["post_quant_conv.bias"])
        extents = z.shape[2:]
        h = self.linear("decoder.proj_in", z.permute(0, 2, 3, 4, 1).flatten(1, 3))
        count = h.shape[1]
        registers = self.weights["decoder.register_tokens"]
        h = torch.cat([h, registers, torch.zeros_like(h[:, :1])], dim=1)
        rotary = self.rotary(extents, registers.shape[1] + 1)
        for index in range(self.blocks):
            h = self.block(index, h, rotary)
        norm = [self.weights[f"decoder.norm_out.{name}"] for name in ("weight", "bias")]
        h = self.linear("decoder.proj_out", F.layer_norm(h, (h.shape[-1],), *norm, EPSILON))[:, :count]
        h = h.view(1, *extents, 3, PATCH_T, PATCH, PATCH).permute(0, 4, 1, 5, 2, 6, 3, 7)
        return h.reshape(1, 3, extents[0] * PATCH_T, extents[1] * PATCH, extents[2] * PATCH)


class OtherOrder(Decoder):
    """The same, with products as float32 sums of another library routine, rounded once."""

    def linear(self, name, x):
        w, b = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        with torch.autocast("cuda", enabled=False):
            x, w, b = (each.half().float() for each in (x, w, b))
            return (x @ w.T + b).half()


def starts(pixels):
    count = 1
    while TILE * count - OVERLAP * (count - 1) < pixels:
        count += 1
    if count == 1:
        return [0]
    overlaps = [OVERLAP] * (count - 1)
    for i in range((TILE * count - sum(overlaps) - pixels) // PATCH):
        overlaps[i % len(overlaps)] += PATCH
    found = [0]
    for overlap in overlaps:
        found.append(found[-1] + TILE - overlap)
    return found


def fade(before, after, extent, axis):
    shape = [1] * after.ndim
    shape[axis] = extent
    weight = (torch.arange(extent, device="cuda", dtype=after.dtype) / extent).view(shape)
    head = before.narrow(axis, before.shape[axis] - extent, extent) * (1 - weight)
    head = head + after.narrow(axis, 0, extent) * weight
    return torch.cat([head, after.narrow(axis, extent, after.shape[axis] - extent)], dim=axis)


def clip(decoder, z):
    rows, columns = starts(z.shape[3] * PATCH), starts(z.shape[4] * PATCH)
    side = TILE // PATCH
    tiles = [[decoder.tile(z[..., y // PATCH : y // PATCH + side, x // PATCH : x // PATCH + side])
              for x in columns] for y in rows]  # fmt: skip
    lines = []
    for i, y in enumerate(rows):
        line = []
        for j, x in enumerate(columns):
            tile = tiles[i][j]
            if i > 0:
                tile = fade(tiles[i - 1][j], tile, rows[i - 1] + TILE - y, 3)
            if j > 0:
                tile = fade(tiles[i][j - 1], tile, columns[j - 1] + TILE - x, 4)
            height = rows[i + 1] - y if i + 1 < len(rows) else TILE
            width = columns[j + 1] - x if j + 1 < len(columns) else TILE
            line.append(tile[..., :height, :width])
        lines.append(torch.cat(line, dim=4))
    return torch.cat(lines, dim=3)


def decode(decoder, z):
    frames, tail = [], None
    for start in range(0, z.shape[2] - 2, 5):
        whole = clip(decoder, z[:, :, start : start + 7])
        first = whole[:, :, 3:20]
        frames.append(first if tail is None else fade(tail, first, 5, 2))
        tail = whole[:, :, 23:28]
    return torch.cat([*frames, tail], dim=2)


def distance(reference, x):
    return ((reference.double() - x.double()).norm() / reference.double().norm()).item()


def main():
    plumbline, golden = sys.argv[1:]
    capture = load_file(f"{golden}/video_vae_io.safetensors")
    weights = load_file(f"{golden}/checkpoint/vae/diffusion_pytorch_model.safetensors")
    weights = {name: tensor.cuda() for name, tensor in weights.items()}
    decoder = Decoder(weights)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    with torch.no_grad():
        exact = decode(decoder, capture["z"].cuda()).float().cpu()
        with torch.autocast("cuda", torch.float16):
            halved = decode(decoder, capture["z"].cuda()).float().cpu()
            other = decode(OtherOrder(weights), capture["z"].cuda()).float().cpu()
    captured = capture["decoded_tiled"]
    rounding, spread = distance(captured, halved), distance(halved, other)
    print(f"{'':<12} {'to PyTorch float16':>20} {'to the capture':>16}")
    print(f"{'PyTorch f32':<12} {distance(halved, exact):>20.3e} {distance(captured, exact):>16.3e}")
    print(f"{'PyTorch f16':<12} {0:>20} {rounding:>16.3e}")
    print(f"{'other order':<12} {spread:>20.3e} {distance(captured, other):>16.3e}")
    found = {}
    for composition in ("golden", "candidate", "provider"):
        with tempfile.TemporaryDirectory() as folder:
            out = f"{folder}/decoded.safetensors"
            subprocess.run(
                [plumbline, "decode", f"--checkpoint={golden}/checkpoint",
                 f"--latents={golden}/video_vae_io.safetensors", f"--output={out}", f"--composition={composition}",
                 f"--tile={TILE}", f"--tile-overlap={OVERLAP}"],
                check=True, stdout=subprocess.DEVNULL,
                env={"PLUMBLINE_STATE_DIR": folder, "PATH": "/usr/bin:/bin", "HOME": folder,
                     **{k: v for k, v in os.environ.items() if k == "LD_LIBRARY_PATH"}},
            )  # fmt: skip
            made = load_file(out)["decoded"]
        found[composition] = (distance(halved, made), distance(captured, made))
        print(f"{composition:<12} {found[composition][0]:>20.3e} {found[composition][1]:>16.3e}")
    to_pytorch, error = found["provider"]
    passed = found["golden"][1] <= 1e-5 and found["candidate"][1] <= 1e-5
    passed = passed and to_pytorch <= MOST_DISTANCE * spread and abs(error / rounding - 1) <= MOST_ERROR_OFF
    print("passed" if passed else "FAILED")
    return 0 if passed else 1


if __name__ == "__main__":
    assert pathlib.Path(sys.argv[1]).exists()
    sys.exit(main())
