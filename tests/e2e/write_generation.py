"""write_generation.py GOLDEN CONTRACT CONDITIONING STEPS: a small generation of the captured prompt and keyframe."""

import json
import sys

from tests.e2e.harness import write_conditioning

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
write_conditioning(conditioning, golden)
