"""A kernel that lives in Triton (or PyTorch), judged by what it wrote.

Usage: swiglu_triton.py PROVIDER.safetensors CANDIDATE.safetensors

PROVIDER is what `plumbline submit block-replay --composition=provider --save-tensors=PROVIDER` wrote. CANDIDATE gets the
same tensors, but for node.swiglu, which the kernel below computes from node.ffn_gate_up: Triton where there is a GPU, the
same arithmetic in PyTorch elsewhere. Then: `plumbline submit block-replay ... --candidate=CANDIDATE`.

Needs PyTorch; Triton comes with it.
"""

import json
import struct
import sys

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

TYPES = {"BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64, "I64": torch.int64}


def read(path):
    """{name: tensor} of a safetensors file, in its order."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, info in header.items():
        begin, end = info["data_offsets"]
        values = torch.frombuffer(data, dtype=torch.uint8, count=end - begin, offset=8 + size + begin)
        tensors[name] = values.clone().view(TYPES[info["dtype"]]).reshape(info["shape"])
    return tensors


def write(path, tensors):
    names = {dtype: name for name, dtype in TYPES.items()}
    header, bodies, offset = {}, [], 0
    for name, tensor in tensors.items():
        body = bytes(tensor.contiguous().cpu().reshape(-1).view(torch.uint8).tolist())
        header[name] = {
            "dtype": names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(body)],
        }
        bodies.append(body)
        offset += len(body)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(bodies))


if triton is not None:

    @triton.jit
    def swiglu_kernel(gate_up, out, width, block: tl.constexpr):
        row = tl.program_id(0)
        column = tl.program_id(1) * block + tl.arange(0, block)
        inside = column < width
        a = tl.load(gate_up + row * 2 * width + column, mask=inside).to(tl.float32)
        b = tl.load(gate_up + row * 2 * width + width + column, mask=inside).to(tl.float32)
        # The SiLU is rounded, then the product.
        s = (b / (1.0 + tl.exp(-b))).to(tl.bfloat16).to(tl.float32)
        tl.store(out + row * width + column, (a * s).to(tl.bfloat16), mask=inside)


def swiglu(gate_up):
    """round(a * round(SiLU(b))) of (batch, rows, 2 F) bfloat16."""
    width = gate_up.shape[-1] // 2
    if triton is None or not torch.cuda.is_available():
        a, b = gate_up[..., :width].float(), gate_up[..., width:].float()
        return (a * torch.nn.functional.silu(b).bfloat16().float()).bfloat16()
    rows = gate_up.cuda().contiguous().reshape(-1, 2 * width)
    out = torch.empty(rows.shape[0], width, dtype=torch.bfloat16, device="cuda")
    block = 256
    swiglu_kernel[(rows.shape[0], triton.cdiv(width, block))](rows, out, width, block=block)
    return out.cpu().reshape(*gate_up.shape[:-1], width)


def main():
    tensors = read(sys.argv[1])
    tensors["node.swiglu"] = swiglu(tensors["node.ffn_gate_up"])
    write(sys.argv[2], tensors)


if __name__ == "__main__":
    main()
