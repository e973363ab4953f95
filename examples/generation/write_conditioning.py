#!/usr/bin/env python3
"""Writes conditioning.safetensors: a prompt and a keyframe for the stand-in checkpoint synthetic:tiny.

    write_conditioning.py FILE

The values mean nothing: they are what a text encoder and a video encoder would have written, in shape. For a real
checkpoint they come from the pipeline that was given the prompt (docs/captures.md, save_conditioning).
"""

import json
import random
import struct
import sys

TEXT_ROWS = 7
TEXT_WIDTH = 64  # synthetic:tiny; the released model's is in its configuration
# A keyframe in latents: a sixteenth of the contract's height and width.
KEYFRAME = [1, 24, 1, 6, 8]


def normal(source, count):
    """About normal, and the same wherever it is computed: a sum of uniform values."""
    values = [sum(source.random() for _ in range(12)) - 6 for _ in range(count)]
    return struct.pack(f"<{count}f", *values)


def product(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def main():
    (path,) = sys.argv[1:]
    source = random.Random(1)
    prompt = [1, TEXT_ROWS, TEXT_WIDTH]
    tensors = {
        "prompt_embeds": ("F32", prompt, normal(source, product(prompt))),
        # 1: text. 0 would be a row of a keyframe's vision block.
        "text_token_tags": ("I64", [TEXT_ROWS], struct.pack(f"<{TEXT_ROWS}q", *[1] * TEXT_ROWS)),
        "condition_latents.0": ("F32", KEYFRAME, normal(source, product(KEYFRAME))),
    }
    # Where the keyframes stand: first, last, or first,last.
    header = {"__metadata__": {"anchors": "first"}}
    offset = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


if __name__ == "__main__":
    main()
