"""What the parts at full size run on, and the same small enough for a CPU, where only the scripts themselves are tried."""

import dataclasses
import json
import os
import random
import struct

LATENT_CHANNELS = 24

RELEASED_CONFIG = {
    "num_attention_heads": 56,
    "attention_head_dim": 128,
    "hidden_size": 5376,
    "num_layers": 50,
    "num_refiner_layers": 2,
    "ffn_dim": 14336,
    "in_channels": LATENT_CHANNELS,
    "audio_in_channels": 32,
    "patch_size": [1, 2, 2],
    "text_dim": 5120,
    "freq_dim": 256,
    "time_embed_hidden_dim": 5376,
    "time_embed_dim": 2688,
    "rope_freq_dim": 16,
    "rope_theta": 10000.0,
    "norm_eps": 1e-5,
    "qk_norm_eps": 1e-5,
    "final_norm_eps": 1e-5,
}
TINY_CONFIG = dict(
    RELEASED_CONFIG,
    num_attention_heads=2,
    hidden_size=128,
    num_layers=2,
    ffn_dim=256,
    text_dim=64,
    time_embed_hidden_dim=128,
    time_embed_dim=64,
)


@dataclasses.dataclass(frozen=True)
class Size:
    checkpoint: str
    config: dict
    frames: int
    height: int
    width: int
    # Of a generation from end to end.
    seed_height: int
    seed_width: int
    # Of runs that are taken up again: (height, width), once with large weights and once with large steps.
    load_canvas: tuple
    resume_canvas: tuple
    lease: str
    text_rows: int
    gate_layout: str
    tensors: int  # of the gate
    # Blocks of the checkpoints that are written: one as large as fits, one whose steps are soon computed.
    file_blocks: int
    resumed_blocks: int


SIZES = {
    "released": Size(
        checkpoint="synthetic:released:1",
        config=RELEASED_CONFIG,
        frames=124,
        height=768,
        width=1344,
        seed_height=192,
        seed_width=320,
        load_canvas=(192, 320),
        resume_canvas=(768, 1344),
        lease="3s",
        text_rows=194,
        gate_layout="small",
        tensors=764,
        file_blocks=22,
        resumed_blocks=1,
    ),
    "tiny": Size(
        checkpoint="synthetic:tiny:1",
        config=TINY_CONFIG,
        frames=22,
        # So that a step takes long enough to be ended amid.
        height=384,
        width=640,
        seed_height=96,
        seed_width=128,
        load_canvas=(256, 384),
        resume_canvas=(256, 384),
        lease="2s",
        text_rows=7,
        gate_layout="tiny",
        tensors=92,
        file_blocks=4,
        resumed_blocks=2,
    ),
}


def write_config(size, blocks, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(size.config, num_layers=blocks), file)


def write_conditioning(size, height, width, path):
    """A prompt and a keyframe of random values, always the same."""
    values = random.Random(1)

    def normal(count):
        return struct.pack(f"<{count}f", *(values.gauss(0, 1) for _ in range(count)))

    rows, text_width = size.text_rows, size.config["text_dim"]
    latent = [1, LATENT_CHANNELS, 1, height // 16, width // 16]
    tensors = {
        "prompt_embeds": ("F32", [1, rows, text_width], normal(rows * text_width)),
        "text_token_tags": ("I64", [rows], struct.pack(f"<{rows}q", *[1] * rows)),
        "condition_latents.0": ("F32", latent, normal(LATENT_CHANNELS * latent[3] * latent[4])),
    }
    header, offset = {"__metadata__": {"anchors": "first"}}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def generation_words(size, folder, steps, height=None, width=None, seeds=(42,), checkpoint=None):
    """The words of a submit command, but for how it is authorised; its files go to `folder`."""
    height, width = height or size.height, width or size.width
    conditioning = os.path.join(folder, f"conditioning-{width}x{height}.safetensors")
    if not os.path.exists(conditioning):
        write_conditioning(size, height, width, conditioning)
    contract = os.path.join(folder, f"contract-{width}x{height}-{steps}-{'-'.join(map(str, seeds))}.json")
    with open(contract, "w", encoding="utf-8") as file:
        json.dump(
            {
                "seeds": list(seeds),
                "num_frames": size.frames,
                "height": height,
                "width": width,
                "num_inference_steps": steps + 1,
                "rng": "torch-cuda:132",
            },
            file,
        )
    return [
        "submit",
        "generation",
        f"--checkpoint={checkpoint or size.checkpoint}",
        f"--contract={contract}",
        f"--conditioning={conditioning}",
    ]
