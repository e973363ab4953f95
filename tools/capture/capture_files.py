"""Files of a capture: inputs and their stand-ins, the weights of a checkpoint, and what is written."""

import json
import math
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

ROWS = ("position_ids", "token_tags", "video_indices", "audio_indices", "text_indices")
LAYOUT = ROWS + ("timestep", "timestep_indices")
SHARD_BYTES = 4 << 30
INDEX = "diffusion_pytorch_model.safetensors.index.json"
SINGLE = "diffusion_pytorch_model.safetensors"


class InputError(Exception):
    """Something that was given is wrong; the message says what and what would be right."""


def read_tensors(path):
    """All tensors of a safetensors file, and its metadata."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file")
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}


def read_json(path):
    """The object of a JSON file; what is wrong with it is told by its name and line."""
    try:
        value = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}; accepted: a JSON file") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: is no JSON object")
    return value


def check_output(flag, path):
    """Raises InputError where save_tensors could not write to `path`: before the hours that would fill it."""
    part = Path(f"{path}.part")
    try:
        part.open("wb").close()
        part.unlink()
    except OSError as error:
        raise InputError(f"{flag}: {error}; accepted: a file in a folder that is there") from error


def save_tensors(path, tensors, metadata=None):
    """Whole or not at all: a name that is there is a complete file."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    part = Path(f"{path}.part")
    save_file(tensors, part, metadata)
    part.replace(path)


class CaptureWriter:
    """Takes tensors off the device as they come and writes them, a file of SHARD_BYTES at a time.

    A capture that fits one file is one; a larger one is OUTPUT-00001.safetensors and so on with OUTPUT.index.json,
    which Plumbline takes in a capture's place.
    """

    def __init__(self, path, metadata):
        self.path = Path(path)
        self.metadata = metadata
        self.names = set()
        self.pending, self.pending_bytes = {}, 0
        self.shards = {}

    def has(self, name):
        return name in self.names

    def add(self, name, tensor):
        if tensor is None:
            raise InputError(f"{name}: no gradient came")
        if name in self.names:
            raise InputError(f"{name}: came twice")
        self.names.add(name)
        # A copy: what autograd hands out it may use again.
        kept = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor.detach())
        size = kept.numel() * kept.element_size()
        if self.pending and self.pending_bytes + size > SHARD_BYTES:
            self._write_shard()
        self.pending[name] = kept
        self.pending_bytes += size

    def finish(self):
        if not self.shards:
            save_tensors(self.path, self.pending, self.metadata)
            return
        self._write_shard()
        weight_map = {name: shard for shard, names in self.shards.items() for name in names}
        index = Path(f"{self.path}.index.json")
        part = Path(f"{index}.part")
        part.write_text(json.dumps({"metadata": self.metadata, "weight_map": weight_map}, indent=1, sort_keys=True))
        part.replace(index)

    def _write_shard(self):
        name = f"{self.path.stem}-{len(self.shards) + 1:05}.safetensors"
        save_tensors(self.path.with_name(name), self.pending, self.metadata)
        self.shards[name] = sorted(self.pending)
        self.pending, self.pending_bytes = {}, 0


class CheckpointWeights:
    """Weights of a checkpoint in the released layout, read a tensor at a time."""

    def __init__(self, checkpoint):
        self.folder = Path(checkpoint) / "transformer"
        config = self.folder / "config.json"
        if not config.is_file():
            raise InputError(f"{config}: there is no such file; --checkpoint takes the folder that holds transformer/")
        self.config = read_json(config)

    def read(self, prefix):
        """Tensors whose names begin with `prefix`, by the rest of their names."""
        index = self.folder / INDEX
        if index.is_file():
            places = read_json(index)["weight_map"]
        else:
            with safe_open(self.folder / SINGLE, framework="pt") as file:
                places = dict.fromkeys(file.keys(), SINGLE)
        tensors = {}
        for shard in sorted({place for name, place in places.items() if name.startswith(prefix)}):
            with safe_open(self.folder / shard, framework="pt") as file:
                for name, place in places.items():
                    if place == shard and name.startswith(prefix):
                        tensors[name.removeprefix(prefix)] = file.get_tensor(name)
        return tensors


def full_model_inputs(path, config):
    """What a capture of the model is run on; stand-ins where the file has a layout alone."""
    tensors = layout_of(path)
    video, audio, text = (tensors[f"{kind}_indices"].numel() for kind in ("video", "audio", "text"))
    patch = config["in_channels"] * math.prod(config["patch_size"])
    shapes = {
        "input.hidden_states": ("input.video", (1, video, patch), 1.5),
        "input.audio_hidden_states": ("input.audio", (1, audio, config["audio_in_channels"]), 1.5),
        "input.encoder_hidden_states": ("input.text", (1, text, config["text_dim"]), 1.5),
        "upstream.video": ("upstream.video", (1, video, patch), 1.0),
        "upstream.audio": ("upstream.audio", (1, audio, config["audio_in_channels"]), 1.0),
    }
    return with_stand_ins(path, tensors, shapes, rounded=("input.encoder_hidden_states",))


def block_inputs(path, config):
    """What a capture of a block is run on, likewise."""
    tensors = layout_of(path)
    rows = tensors["position_ids"].shape[0]
    shapes = {
        "block.input": ("block.input", (1, rows, config["hidden_size"]), 1.5),
        "block.temb": ("block.temb", (tensors["timestep"].numel(), config["time_embed_dim"]), 1.5),
        "block.upstream": ("block.upstream", (1, rows, config["hidden_size"]), 1.0),
    }
    return with_stand_ins(path, tensors, shapes, rounded=("block.input", "block.upstream"))


def layout_of(path):
    tensors, _ = read_tensors(path)
    missing = [name for name in LAYOUT if name not in tensors]
    if missing:
        raise InputError(f"{path}: has no {', '.join(missing)}; `plumbline layout --save-tensors` writes them")
    return tensors


def with_stand_ins(path, tensors, shapes, rounded):
    given = [name for name in shapes if name in tensors]
    if given and len(given) < len(shapes):
        missing = ", ".join(name for name in shapes if name not in tensors)
        raise InputError(f"{path}: has {', '.join(given)} and no {missing}; accepted: all of them, or a layout alone")
    result = {name: tensors[name] for name in LAYOUT}
    for name, (stand_in, shape, scale) in shapes.items():
        result[name] = tensors[name] if given else synthetic(stand_in, shape, scale)
        if not given and name in rounded:
            result[name] = result[name].bfloat16().float()
        if tuple(result[name].shape) != shape:
            raise InputError(f"{path}: {name} is {tuple(result[name].shape)}; the layout asks for {shape}")
    return result


def synthetic(name, shape, scale, seed=0):
    """The tensor that Plumbline computes from this name (docs/numerics.md, "Synthetic weights"), float32."""
    mask = (1 << 64) - 1

    def signed(pattern):
        return pattern - (1 << 64) if pattern >> 63 else pattern

    def shifted(patterns, bits):
        return (patterns >> bits) & ((1 << (64 - bits)) - 1)

    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & mask
    key ^= (seed * 0xD1342543DE82EF95) & mask
    z = torch.arange(1, math.prod(shape) + 1, dtype=torch.int64) * signed(0x9E3779B97F4A7C15) + signed(key)
    z = (z ^ shifted(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(z, 27)) * signed(0x94D049BB133111EB)
    z = shifted(z ^ shifted(z, 31), 40)
    values = (z - (1 << 23)).to(torch.float32) * 2.0**-23 * torch.tensor(scale, dtype=torch.float32)
    return values.view(shape)
