#!/usr/bin/env python3
"""Runs the MiniMax-H3 transformer of an installed diffusers and writes what it computed as a Plumbline capture.

  plumbline_capture.py model      --checkpoint=H3 --inputs=IN --output=OUT     every module, forward and backward
  plumbline_capture.py block      --checkpoint=H3 --inputs=IN --output=OUT     one block, node by node
  plumbline_capture.py generation --checkpoint=H3 --contract=JSON --conditioning=FILE --seed=N --output=OUT

`save_conditioning` of capture_generation.py makes a generation's conditioning file from the state of a pipeline.
docs/captures.md says how the files are used. Needs PyTorch, safetensors, and a diffusers that has
MiniMaxH3Transformer3DModel.
"""

import argparse
import sys

import torch
from capture_files import CaptureWriter, CheckpointWeights, InputError, block_inputs, check_output, full_model_inputs
from capture_files import save_tensors
from capture_generation import capture_generation
from capture_run import ATTENTION, DTYPES, library_choices, load_model, metadata_of, move, place

# Modules whose output is a tap, by the tap's name.
MODULES = (
    "proj_in",
    "audio_proj_in",
    "context_embedder",
    "token_refiner",
    "time_proj",
    "time_embedder",
    "norm_out",
    "proj_out",
    "audio_proj_out",
)


def capture_model(options):
    inputs = full_model_inputs(options.inputs, CheckpointWeights(options.checkpoint).config)
    model = load_model(options)
    offload = place(model, options)
    if options.checkpointing:
        model.enable_gradient_checkpointing()
    writer = CaptureWriter(options.output, metadata_of(options))
    add_taps(model, writer, options, offload)

    device = options.device
    leaves = {
        name: inputs[f"input.{name}"].float().to(device).requires_grad_(not options.forward_only)
        for name in ("hidden_states", "audio_hidden_states", "encoder_hidden_states")
    }
    layout = ("timestep", "timestep_indices", "token_tags", "position_ids")
    indices = ("video_indices", "audio_indices", "text_indices")
    with library_choices(options), torch.set_grad_enabled(not options.forward_only):
        video, audio = model(
            **leaves, **{name: inputs[name].to(device) for name in layout + indices}, return_dict=False
        )
        writer.add("output.video", video)
        writer.add("output.audio", audio)
        if not options.forward_only:
            if offload:
                offload.in_backward = True
            upstream = [inputs["upstream.video"].float().to(device), inputs["upstream.audio"].float().to(device)]
            torch.autograd.backward([video, audio], upstream)
            for name, leaf in leaves.items():
                writer.add(f"input_gradients.{name}", leaf.grad)
    writer.finish()
    if options.save_inputs:
        save_tensors(options.save_inputs, inputs)


def add_taps(model, writer, options, offload):
    """Writes outputs, the gradients that reach them, and parameters' gradients, each as it appears."""
    taps = {name: getattr(model, name) for name in MODULES}
    taps |= {f"token_refiner.refiner_blocks.{i}": block for i, block in enumerate(model.token_refiner.refiner_blocks)}
    taps |= {f"block.{i}": block for i, block in enumerate(model.transformer_blocks)}

    def tap(name):
        def hook(module, arguments, output):
            if writer.has(f"nodes.{name}"):
                return  # A checkpointed block's second forward.
            writer.add(f"nodes.{name}", output)
            if output.requires_grad:
                output.register_hook(lambda gradient: writer.add(f"nodes.{name}.grad", gradient))

        return hook

    for name, module in taps.items():
        module.register_forward_hook(tap(name))
    if options.forward_only:
        return

    def take_gradient(name):
        def hook(parameter):
            writer.add(f"parameter.{name}", parameter.grad)
            parameter.grad = None
            if offload:
                offload.release(parameter)

        return hook

    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(take_gradient(name))


def capture_block(options):
    from diffusers.models.transformers import transformer_minimax_h3 as source

    weights = CheckpointWeights(options.checkpoint)
    config = weights.config
    if not 0 <= options.block < config["num_layers"]:
        raise InputError(f"--block={options.block}: accepted: 0 to {config['num_layers'] - 1}")
    inputs = block_inputs(options.inputs, config)
    sizes = ("hidden_size", "num_attention_heads", "attention_head_dim", "ffn_dim", "time_embed_dim")
    block = source.MiniMaxH3TransformerBlock(
        **{name: config[name] for name in sizes + ("norm_eps", "qk_norm_eps")}
    ).to(torch.bfloat16)
    block.load_state_dict(weights.read(f"transformer_blocks.{options.block}."))
    block.eval()
    move(block, options)
    rope = source.MiniMaxH3RotaryPosEmbed(config["rope_freq_dim"], config["rope_theta"]).to(options.device)

    writer = CaptureWriter(options.output, metadata_of(options))
    hidden = inputs["block.input"].to(options.device, DTYPES[options.dtype]).requires_grad_()
    temb = inputs["block.temb"].float().to(options.device).requires_grad_()
    rows = (inputs["timestep_indices"] * 3 + inputs["token_tags"]).to(options.device)

    def node(name, tensor):
        writer.add(f"node.{name}", tensor)
        if tensor.requires_grad and not options.forward_only:
            tensor.register_hook(lambda gradient: writer.add(f"node.{name}.grad", gradient))

    outputs = {
        "adaln_projection": block.adaln_proj.linear,
        "q_proj": block.attn.to_q,
        "k_proj": block.attn.to_k,
        "v_proj": block.attn.to_v,
        "q_norm": block.attn.norm_q,
        "k_norm": block.attn.norm_k,
        "o_proj": block.attn.to_out[0],
        "ffn_gate_up": block.ff.net[0].proj,
        "swiglu": block.ff.net[0],
        "ffn_down": block.ff.net[2],
        "residual_mlp": block,
    }
    # What no module returns is what the next one is given.
    arguments = {
        "norm1": block.attn,
        "attention": block.attn.to_out[0],
        "residual_attn": block.norm2,
        "norm2": block.ff,
    }
    for name, module in outputs.items():
        module.register_forward_hook(lambda _, __, output, name=name: node(name, output))
    for name, module in arguments.items():
        module.register_forward_pre_hook(lambda _, given, name=name: node(name, given[0]))
    rotate, rotated = source._apply_rotary_emb, iter(("rope_q", "rope_k"))

    def tapped_rotate(*given, **named):
        result = rotate(*given, **named)
        node(next(rotated), result)
        return result

    source._apply_rotary_emb = tapped_rotate
    try:
        with library_choices(options):
            output = block(hidden, temb, rows, rope(inputs["position_ids"].to(options.device)))
            if not options.forward_only:
                output.backward(inputs["block.upstream"].to(options.device, DTYPES[options.dtype]))
    finally:
        source._apply_rotary_emb = rotate
    if not options.forward_only:
        for name, parameter in block.named_parameters():
            writer.add(f"leaf.{name}", parameter.grad)
        writer.add("leaf.input", hidden.grad)
        writer.add("leaf.temb", temb.grad)
    writer.finish()
    if options.save_inputs:
        save_tensors(options.save_inputs, inputs)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    model = commands.add_parser("model", help="every module's output and gradient, every parameter's gradient")
    block = commands.add_parser("block", help="the 17 nodes of one block, with gradients")
    generation = commands.add_parser("generation", help="every step of a generation")
    for command in (model, block, generation):
        command.add_argument("--checkpoint", required=True, help="folder that holds transformer/")
        command.add_argument("--output", required=True, help="safetensors file to write")
        command.add_argument("--dtype", choices=DTYPES, default="bfloat16", help="default bfloat16")
        command.add_argument("--device", default="cuda:0", help="cuda:N or cpu; default cuda:0")
        command.add_argument("--attention", choices=ATTENTION, help="default: what PyTorch picks")
        command.add_argument("--blas", choices=("cublas", "cublaslt"), help="default: what PyTorch picks")
    for command in (model, generation):
        command.add_argument("--offload", action="store_true", help="keep the blocks in the host's memory")
    for command in (model, block):
        command.add_argument("--inputs", required=True, help="inputs, or a layout, whose stand-ins are then made")
        command.add_argument("--save-inputs", help="write the inputs to this file")
        command.add_argument("--forward-only", action="store_true", help="no gradients")
    model.add_argument("--checkpointing", action="store_true", help="run forwards again instead of keeping them")
    block.add_argument("--block", type=int, default=0, help="index, default 0")
    generation.add_argument("--contract", required=True, help="JSON, as for plumbline submit generation")
    generation.add_argument("--conditioning", required=True, help="as save_conditioning writes it")
    generation.add_argument("--seed", type=int, required=True, help="one of the contract's")
    generation.add_argument("--noise", help="safetensors with noise.keyframe.N, noise.video, noise.audio")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse_arguments(arguments)
    run = {"model": capture_model, "block": capture_block, "generation": capture_generation}[options.command]
    try:
        check_output("--output", options.output)
        if getattr(options, "save_inputs", None):
            check_output("--save-inputs", options.save_inputs)
        run(options)
    except InputError as error:
        print(f"plumbline_capture: {error}", file=sys.stderr)
        return 2
    if options.device.startswith("cuda"):
        peak = torch.cuda.max_memory_allocated(options.device) / 2**30
        print(f"largest memory of the device in use: {peak:.2f} GiB", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
