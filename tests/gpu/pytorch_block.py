"""Block 0 at the released size in PyTorch, forward and backward, as a capture of a provider.

Usage: pytorch_block.py LAYOUT.safetensors OUT.safetensors

LAYOUT is what `plumbline layout` writes. Weights are synthetic with seed 1 and inputs the stand-in ones, so that
`plumbline submit block-replay --checkpoint=synthetic:released:1` can stand beside OUT. Needs PyTorch with CUDA; every
operation is called as the diffusers implementation of the model calls it.
"""

import math
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

HIDDEN, HEADS, HEAD_WIDTH, FFN, TIME_EMBED = 5376, 56, 128, 14336, 2688
EPSILON = 1e-5
FREQUENCIES = 16  # of each of the three axes
ROTATED = 6 * FREQUENCIES
MODALITIES, CHUNKS = 3, 6
WEIGHT_SEED = 1

SHAPES = {
    "adaln_proj.linear.weight": (MODALITIES * CHUNKS * HIDDEN, TIME_EMBED),
    "adaln_proj.linear.bias": (MODALITIES * CHUNKS * HIDDEN,),
    "norm1.weight": (HIDDEN,),
    "norm2.weight": (HIDDEN,),
    "attn.to_q.weight": (HEADS * HEAD_WIDTH, HIDDEN),
    "attn.to_k.weight": (HEADS * HEAD_WIDTH, HIDDEN),
    "attn.to_v.weight": (HEADS * HEAD_WIDTH, HIDDEN),
    "attn.norm_q.weight": (HEAD_WIDTH,),
    "attn.norm_k.weight": (HEAD_WIDTH,),
    "attn.to_out.0.weight": (HIDDEN, HEADS * HEAD_WIDTH),
    "ff.net.0.proj.weight": (2 * FFN, HIDDEN),
    "ff.net.2.weight": (HIDDEN, FFN),
}


def signed(value):
    """A 64-bit pattern as PyTorch's int64 holds it."""
    return value - (1 << 64) if value >> 63 else value


def shifted(values, bits):
    """Logical right shift of int64 patterns."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def synthetic(name, shape, scale, offset=0.0, seed=0):
    """The synthetic tensor of kernels/numerics/synthetic.h, float32."""
    mask = (1 << 64) - 1
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & mask
    key ^= (seed * 0xD1342543DE82EF95) & mask
    z = torch.arange(1, math.prod(shape) + 1, dtype=torch.int64, device="cuda")
    z = z * signed(0x9E3779B97F4A7C15) + signed(key)
    z = (z ^ shifted(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(z, 27)) * signed(0x94D049BB133111EB)
    z = shifted(z ^ shifted(z, 31), 40)
    values = (z - (1 << 23)).to(torch.float32) * 2.0**-23
    values = values * torch.tensor(scale, dtype=torch.float32, device="cuda")
    if offset:
        values = values + torch.tensor(offset, dtype=torch.float32, device="cuda")
    return values.view(shape)


def recipe(name, shape):
    """Scale and offset of a parameter."""
    if name == "adaln_proj.linear.weight":
        return 0.5 * math.sqrt(3.0 / shape[1]), 0.0
    if name == "adaln_proj.linear.bias":
        return 0.1, 0.0
    if len(shape) == 1:
        return 0.25, 1.0
    return math.sqrt(3.0 / shape[1]), 0.0


def rotary_tables(positions):
    """cos and sin of (rows, 96) angles, float32 on the GPU."""
    exponents = torch.arange(0, 2 * FREQUENCIES, 2, dtype=torch.float32) / (2 * FREQUENCIES)
    inverse = 1.0 / (10000.0**exponents)
    angles = positions.to(torch.float32).unsqueeze(-1) * inverse.view(1, 1, -1)
    angles = torch.cat(angles.unbind(1), -1)
    angles = torch.cat((angles, angles), -1).cuda()
    return angles.cos(), angles.sin()


def rotate(x, cosines, sines):
    cosines = cosines.to(x.dtype)[None, :, None, :]
    sines = sines.to(x.dtype)[None, :, None, :]
    rotated, passed = x[..., :ROTATED], x[..., ROTATED:]
    first, second = rotated.chunk(2, -1)
    turned = rotated * cosines + torch.cat((-second, first), -1) * sines
    return torch.cat((turned, passed), -1).contiguous()


def run(layout):
    parameters = {}
    for name, shape in SHAPES.items():
        scale, offset = recipe(name, shape)
        values = synthetic("transformer_blocks.0." + name, shape, scale, offset, WEIGHT_SEED)
        parameters[name] = values.bfloat16().requires_grad_(True)
    rows = layout["position_ids"].shape[0]
    timesteps = layout["timestep"].numel()
    x = synthetic("block.input", (1, rows, HIDDEN), 1.5).bfloat16().requires_grad_(True)
    temb = synthetic("block.temb", (timesteps, TIME_EMBED), 1.5).requires_grad_(True)
    upstream = synthetic("block.upstream", (1, rows, HIDDEN), 1.0).bfloat16()
    index = (layout["timestep_indices"] * MODALITIES + layout["token_tags"]).cuda()
    cosines, sines = rotary_tables(layout["position_ids"])

    nodes = {}

    def node(name, value):
        nodes[name] = value
        value.retain_grad()
        return value

    def norm(value, weight, scale, shift):
        normalised = F.rms_norm(value, (HIDDEN,), parameters[weight], EPSILON)
        return normalised * (1.0 + scale.index_select(0, index)) + shift.index_select(0, index)

    def heads(value):
        return value.unflatten(-1, (HEADS, -1))

    table = node(
        "adaln_projection",
        F.linear(
            F.silu(temb).to(torch.bfloat16),
            parameters["adaln_proj.linear.weight"],
            parameters["adaln_proj.linear.bias"],
        ),
    )
    shift1, scale1, gate1, shift2, scale2, gate2 = table.view(-1, CHUNKS * HIDDEN).chunk(CHUNKS, -1)
    normed = node("norm1", norm(x, "norm1.weight", scale1, shift1))
    q = heads(node("q_proj", F.linear(normed, parameters["attn.to_q.weight"])))
    k = heads(node("k_proj", F.linear(normed, parameters["attn.to_k.weight"])))
    v = heads(node("v_proj", F.linear(normed, parameters["attn.to_v.weight"])))
    q = node("q_norm", F.rms_norm(q, (HEAD_WIDTH,), parameters["attn.norm_q.weight"], EPSILON))
    k = node("k_norm", F.rms_norm(k, (HEAD_WIDTH,), parameters["attn.norm_k.weight"], EPSILON))
    q = node("rope_q", rotate(q, cosines, sines))
    k = node("rope_k", rotate(k, cosines, sines))
    attended = F.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    )
    attended = node("attention", attended.transpose(1, 2).flatten(2, 3))
    out = node("o_proj", F.linear(attended, parameters["attn.to_out.0.weight"]))
    residual = node("residual_attn", x + gate1.index_select(0, index) * out)
    normed = node("norm2", norm(residual, "norm2.weight", scale2, shift2))
    gate_up = node("ffn_gate_up", F.linear(normed, parameters["ff.net.0.proj.weight"]))
    value, gate = gate_up.chunk(2, -1)
    inner = node("swiglu", value * F.silu(gate))
    down = node("ffn_down", F.linear(inner, parameters["ff.net.2.weight"]))
    result = node("residual_mlp", residual + gate2.index_select(0, index) * down)
    result.backward(upstream)

    capture = {f"node.{name}": value.detach() for name, value in nodes.items()}
    capture.update({f"node.{name}.grad": value.grad for name, value in nodes.items()})
    capture.update({f"leaf.{name}": value.grad for name, value in parameters.items()})
    capture["leaf.input"] = x.grad
    capture["leaf.temb"] = temb.grad
    return {name: value.contiguous().cpu() for name, value in capture.items()}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    torch.backends.cuda.matmul.allow_tf32 = False
    save_file(run(load_file(sys.argv[1])), sys.argv[2])
    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main()
