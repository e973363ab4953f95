"""write_generation.py GOLDEN CONTRACT CONDITIONING STEPS: a small generation of the captured prompt and keyframe."""

import json
import struct
import sys

from tests.e2e.harness import read_safetensors, write_safetensors

golden, contract, conditioning, steps = sys.argv[1:]
with open(contract, "w", encoding="utf-8") as file:
    json.dump(
        {
            "seeds": [42, 43, 44],
            "num_frames": 22,
            "height": 96,
            "width": 128,
            "num_inference_steps": int(steps) + 1,
            "rng": "torch-cpu",
        },
        file,
    )
write_safetensors(
    conditioning,
    {
        "text_token_tags": ("I64", [7], struct.pack("<7q", *[1] * 7)),
        "prompt_embeds": read_safetensors(f"{golden}/transformer_inputs.safetensors")[
            "input.encoder_hidden_states"
        ],
        "condition_latents.0": read_safetensors(f"{golden}/generation_fp32_cpu.safetensors")[
            "condition_latents"
        ],
    },
    {"anchors": "first"},
)
