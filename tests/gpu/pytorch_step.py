"""Seconds of one evaluation of the released model in PyTorch at 38,912 rows, as the last line, JSON.

A block, timed alone on random data and taken 50 times: all 50 do the same, and nothing lies between them. With it what is
around the blocks: the projections in, the final norm and both heads on every row. The text refiner (194 rows) and the
timestep embedding are left out, so that the step is, if anything, too fast. Needs PyTorch with CUDA.
"""

import json

import torch
import torch.nn.functional as F

import pytorch_bench
import pytorch_block as block

ROWS, VIDEO_ROWS, AUDIO_ROWS, TEXT_ROWS = 38912, 38304, 414, 194
BLOCKS = 50


class Boundaries:
    """Random weights and inputs of what is around the blocks."""

    def __init__(self):
        float32 = lambda *shape: torch.randn(*shape, device="cuda") * 0.02
        self.video, self.audio = float32(VIDEO_ROWS, 96), float32(AUDIO_ROWS, 32)
        self.text = pytorch_bench.random(TEXT_ROWS, 5120)
        self.video_in, self.audio_in = float32(block.HIDDEN, 96), float32(block.HIDDEN, 32)
        self.text_in = pytorch_bench.random(block.HIDDEN, 5120)
        self.video_out, self.audio_out = float32(96, block.HIDDEN), float32(32, block.HIDDEN)
        self.norm = pytorch_bench.random(block.HIDDEN)
        self.table = pytorch_bench.random(3, 2 * block.HIDDEN)
        self.index = torch.arange(ROWS, device="cuda") * 3 // ROWS
        self.hidden = pytorch_bench.random(ROWS, block.HIDDEN)

    def run(self):
        packed = torch.empty(ROWS, block.HIDDEN, device="cuda", dtype=torch.bfloat16)
        packed[:TEXT_ROWS] = F.linear(self.text, self.text_in)
        packed[TEXT_ROWS : TEXT_ROWS + AUDIO_ROWS] = F.linear(self.audio, self.audio_in)
        packed[TEXT_ROWS + AUDIO_ROWS :] = F.linear(self.video, self.video_in)
        shift, scale = self.table.index_select(0, self.index).chunk(2, -1)
        normed = F.rms_norm(self.hidden, (block.HIDDEN,), self.norm, block.EPSILON) * (1.0 + scale) + shift
        normed = normed.float()
        return packed, F.linear(normed, self.video_out), F.linear(normed, self.audio_out)


def main():
    with torch.no_grad():
        model = pytorch_bench.Block(ROWS)
        block_ms = pytorch_bench.median_ms(lambda _: model.forward())
        del model
        around = Boundaries()
        around_ms = pytorch_bench.median_ms(lambda _: around.run())
    versions = f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}"
    step_seconds = (BLOCKS * block_ms + around_ms) / 1000
    print(json.dumps({"block_ms": block_ms, "around_ms": around_ms, "step_seconds": step_seconds, "versions": versions}))


if __name__ == "__main__":
    main()
