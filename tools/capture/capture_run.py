"""The transformer of an installed diffusers, placed on a device or kept beside it, under chosen libraries."""

import contextlib

import torch
from capture_files import InputError
from torch.nn.attention import SDPBackend, sdpa_kernel

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ATTENTION = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


def load_model(options):
    """The transformer with the checkpoint's stored types, in the host's memory, ready to be placed."""
    from diffusers import MiniMaxH3Transformer3DModel

    model = MiniMaxH3Transformer3DModel.from_pretrained(
        options.checkpoint, subfolder="transformer", torch_dtype=torch.bfloat16, local_files_only=True
    )
    model.eval()
    for name, parameter in model.named_parameters():
        if parameter.dtype != stored_type(model, name):
            raise InputError(f"{name} was loaded as {parameter.dtype}, not {stored_type(model, name)}")
    return model


def stored_type(model, name):
    kept = model._keep_in_fp32_modules
    return torch.float32 if any(part in name for part in kept) else torch.bfloat16


def run_type(parameter, options):
    """The type that a parameter computes in: stored float32 stays, bfloat16 is widened for a float32 run."""
    return parameter.dtype if parameter.dtype == torch.float32 else DTYPES[options.dtype]


def move(module, options):
    for parameter in module.parameters():
        parameter.data = parameter.data.to(options.device, run_type(parameter, options))
    for buffer in module.buffers():
        buffer.data = buffer.data.to(options.device)


class Offload:
    """Keeps the blocks in the host's memory; each is on the device for its forward and again for its backward.

    Gradient checkpointing runs a block's forward a second time before its backward, so that weights and activations of
    one block are there at a time. A parameter leaves when its gradient has come.
    """

    def __init__(self, model, options):
        self.options = options
        self.in_backward = False
        self.stored, self.here = {}, set()
        for name, module in model.named_children():
            if name != "transformer_blocks":
                move(module, options)
        model.enable_gradient_checkpointing()
        for block in model.transformer_blocks:
            self.stored |= {parameter: parameter.data for parameter in block.parameters()}
            block.register_forward_pre_hook(lambda module, _: self.bring(module))
            block.register_forward_hook(self.after_forward)

    def bring(self, block):
        for parameter in block.parameters():
            if parameter not in self.here:
                stored = self.stored[parameter]
                parameter.data = stored.to(self.options.device, run_type(stored, self.options))
                self.here.add(parameter)

    def after_forward(self, block, *_):
        if not self.in_backward:
            for parameter in block.parameters():
                self.release(parameter)

    def release(self, parameter):
        if parameter in self.here:
            parameter.data = self.stored[parameter]
            self.here.remove(parameter)


def place(model, options):
    """Puts the model on the device, all of it, or as --offload has it."""
    if options.offload:
        return Offload(model, options)
    move(model, options)
    return None


@contextlib.contextmanager
def library_choices(options):
    """The attention kernel and the BLAS library that the run is asked to use."""
    if options.blas:
        torch.backends.cuda.preferred_blas_library(options.blas)
    torch.backends.cuda.matmul.allow_tf32 = False
    with sdpa_kernel(ATTENTION[options.attention]) if options.attention else contextlib.nullcontext():
        yield


def metadata_of(options):
    """What decided the numbers. Never a name of a machine, a person or a path."""
    facts = {"torch": torch.__version__, "dtype": options.dtype, "attention": options.attention or "default"}
    if options.device.startswith("cuda"):
        facts |= {"device": torch.cuda.get_device_name(options.device), "blas": options.blas or "default"}
    else:
        facts["device"] = "cpu"
    return facts
