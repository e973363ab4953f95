"""Times of PyTorch on the work of `gpu_tests bench`: the block, attention and the products.

Usage: pytorch_bench.py OUT.json

Everything is bfloat16 with random data; medians by CUDA events after warm-up. The block is what diffusers' model
computes, attention is what PyTorch picks. Needs PyTorch with CUDA.
"""

import json
import sys

import torch
import torch.nn.functional as F

import pytorch_block as block

ROWS = (264, 925, 3160, 38912)
TIMESTEPS = 3
WARM_UPS, LEAST_RUNS, MOST_RUNS, BUDGET_MS = 2, 3, 20, 400.0
ROTATED_BYTES = 300e6
PRODUCTS = {
    "q_proj": (block.HEADS * block.HEAD_WIDTH, block.HIDDEN),
    "o_proj": (block.HIDDEN, block.HEADS * block.HEAD_WIDTH),
    "ffn_gate_up": (2 * block.FFN, block.HIDDEN),
    "ffn_down": (block.HIDDEN, block.FFN),
}


def times_ms(call):
    """Median, least and most."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for run in range(WARM_UPS + MOST_RUNS):
        if len(times) >= LEAST_RUNS and sum(times) > BUDGET_MS:
            break
        begin.record()
        call(run)
        end.record()
        end.synchronize()
        if run >= WARM_UPS:
            times.append(begin.elapsed_time(end))
    times.sort()
    return times[len(times) // 2], times[0], times[-1]


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


class Block:
    """Random weights and inputs of one block."""

    def __init__(self, rows):
        self.parameters = {
            name: (random(*shape) * (0.02 if len(shape) > 1 else 1)).requires_grad_(True)
            for name, shape in block.SHAPES.items()
        }
        self.x = random(1, rows, block.HIDDEN).requires_grad_(True)
        self.temb = torch.randn(TIMESTEPS, block.TIME_EMBED, device="cuda").requires_grad_(True)
        self.upstream = random(1, rows, block.HIDDEN)
        self.index = torch.arange(rows, device="cuda") * TIMESTEPS * block.MODALITIES // rows
        self.tables = block.rotary_tables(torch.rand(rows, 3, dtype=torch.float64) * 100)

    def norm(self, value, weight, scale, shift):
        normalised = F.rms_norm(value, (block.HIDDEN,), self.parameters[weight], block.EPSILON)
        return normalised * (1.0 + scale.index_select(0, self.index)) + shift.index_select(0, self.index)

    def heads(self, value, weight, norm):
        value = F.linear(value, self.parameters[weight]).unflatten(-1, (block.HEADS, -1))
        if norm is None:
            return value
        value = F.rms_norm(value, (block.HEAD_WIDTH,), self.parameters[norm], block.EPSILON)
        return block.rotate(value, *self.tables)

    def forward(self):
        p = self.parameters
        table = F.linear(F.silu(self.temb).bfloat16(), p["adaln_proj.linear.weight"], p["adaln_proj.linear.bias"])
        chunks = table.view(-1, block.CHUNKS * block.HIDDEN).chunk(block.CHUNKS, -1)
        shift1, scale1, gate1, shift2, scale2, gate2 = chunks
        normed = self.norm(self.x, "norm1.weight", scale1, shift1)
        q = self.heads(normed, "attn.to_q.weight", "attn.norm_q.weight")
        k = self.heads(normed, "attn.to_k.weight", "attn.norm_k.weight")
        v = self.heads(normed, "attn.to_v.weight", None)
        attended = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))
        out = F.linear(attended.transpose(1, 2).flatten(2, 3), p["attn.to_out.0.weight"])
        residual = self.x + gate1.index_select(0, self.index) * out
        normed = self.norm(residual, "norm2.weight", scale2, shift2)
        value, gate = F.linear(normed, p["ff.net.0.proj.weight"]).chunk(2, -1)
        down = F.linear(value * F.silu(gate), p["ff.net.2.weight"])
        return residual + gate2.index_select(0, self.index) * down

    def gradients(self):
        leaves = [self.x, self.temb, *self.parameters.values()]
        torch.autograd.grad(self.forward(), leaves, self.upstream)


def bench(rows):
    entries = []

    def add(work, direction, times, flops=0):
        median, least, most = times
        entry = {"rows": rows, "work": work, "direction": direction}
        entry |= {"median_ms": median, "least_ms": least, "most_ms": most}
        if flops:
            entry["tflops"] = flops / median / 1e9
        entries.append(entry)
        print(entry, flush=True)

    model = Block(rows)
    with torch.no_grad():
        add("block", "forward", times_ms(lambda _: model.forward()))
    add("block", "forward+backward", times_ms(lambda _: model.gradients()))
    del model

    flops = 4 * rows * rows * block.HEADS * block.HEAD_WIDTH
    q, k, v = (random(1, rows, block.HEADS, block.HEAD_WIDTH).transpose(1, 2).requires_grad_(True) for _ in range(3))
    with torch.no_grad():
        add("attention", "forward", times_ms(lambda _: F.scaled_dot_product_attention(q, k, v)), flops)
    output = F.scaled_dot_product_attention(q, k, v)
    upstream = torch.randn_like(output)
    backward = lambda _: torch.autograd.grad(output, (q, k, v), upstream, retain_graph=True)
    add("attention", "backward", times_ms(backward), 2.5 * flops)
    del q, k, v, output, upstream, backward

    for name, (outputs, inputs) in PRODUCTS.items():
        x = random(rows, inputs)
        copies = int(ROTATED_BYTES // (2 * outputs * inputs)) + 1
        weights = [random(outputs, inputs) for _ in range(copies)]
        times = times_ms(lambda run: F.linear(x, weights[run % copies]))
        add(name, "forward", times, 2 * rows * outputs * inputs)
        del x, weights
    return entries


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    entries = []
    for rows in ROWS:
        entries += bench(rows)
    versions = f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}"
    with open(sys.argv[1], "w") as file:
        json.dump({"peer": versions, "entries": entries}, file, indent=1)


if __name__ == "__main__":
    main()
