"""Every step of a generation, and the conditioning file that it starts from."""

import sys

import torch
from capture_files import CaptureWriter, InputError, read_json, read_tensors, save_tensors
from capture_run import library_choices, load_model, metadata_of, place

# The released pipeline's: keyframes are noised to, and held at, this flow time.
KEYFRAME_TIMESTEP = 0.999
VIDEO_TAG, AUDIO_TAG, AUDIO_CHANNELS = 0, 2, 2
PIXELS_PER_LATENT, AUDIO_LATENTS_PER_SECOND, FRAMES_PER_SECOND = 16, 40, 24


@torch.no_grad()
def capture_generation(options):
    from diffusers import MiniMaxH3Scheduler
    from diffusers.modular_pipelines.minimax_h3 import before_denoise as pipeline

    contract = read_json(options.contract)
    conditioning, metadata = read_tensors(options.conditioning)
    noise = read_tensors(options.noise)[0] if options.noise else {}
    anchors = tuple(word for word in metadata.get("anchors", "").split(",") if word)
    model = load_model(options)
    place(model, options)
    patch = tuple(model.config.patch_size)
    frames = 17 * max(0, -(-(contract["num_frames"] - 5) // 17)) + 5
    latent_frames = (frames - 5) // 17 * 5 + 2
    height, width = contract["height"] // PIXELS_PER_LATENT, contract["width"] // PIXELS_PER_LATENT
    audio_latents = contract.get("num_audio_latents") or round(frames / FRAMES_PER_SECOND * AUDIO_LATENTS_PER_SECOND)

    draw = noise_source(contract, options, noise)
    tags = conditioning["text_token_tags"].reshape(-1)
    positions, token_tags, video, audio, text, keyframe_rows, _ = (
        pipeline.MiniMaxH3PrepareLayoutStep.build_packed_sequence(
            tags, latent_frames, height, width, audio_latents, patch, AUDIO_CHANNELS, AUDIO_TAG, VIDEO_TAG, anchors
        )
    )
    video_schedule = MiniMaxH3Scheduler(shift=contract.get("video_shift", 12.0))
    audio_schedule = MiniMaxH3Scheduler(shift=contract.get("audio_shift", 3.0))
    for schedule in (video_schedule, audio_schedule):
        schedule.set_timesteps(contract["num_inference_steps"], device=options.device)

    rows = []
    for i in range(len(anchors)):
        latents = conditioning[f"condition_latents.{i}"].float().to(options.device)
        noised = video_schedule.scale_noise(latents, KEYFRAME_TIMESTEP, draw(f"noise.keyframe.{i}", latents.shape))
        rows.append(pipeline.patchify_video_latents(noised, patch))
    channels = model.config.in_channels
    noised = draw("noise.video", (1, channels, latent_frames, height, width))
    rows.append(pipeline.patchify_video_latents(noised, patch))
    rows = torch.cat(rows)
    sound = draw("noise.audio", (AUDIO_CHANNELS * audio_latents, model.config.audio_in_channels))

    writer = CaptureWriter(options.output, metadata_of(options))
    prompt = conditioning["prompt_embeds"].to(options.device)
    layout = {"token_tags": token_tags, "position_ids": positions}
    layout |= {"video_indices": video, "audio_indices": audio, "text_indices": text}
    layout = {name: tensor.to(options.device) for name, tensor in layout.items()}
    for i, (time, sound_time) in enumerate(zip(video_schedule.timesteps, audio_schedule.timesteps)):
        timestep, indices = pipeline.MiniMaxH3SetTimestepsStep.build_row_timesteps(
            video, audio, keyframe_rows, 0, tags.numel(), float(time), float(sound_time),
            max(float(time), KEYFRAME_TIMESTEP), 1.0,
        )
        step = {"rows": rows, "audio": sound, "timestep": timestep, "timestep_indices": indices}
        with library_choices(options):
            velocity, sound_velocity = model(
                hidden_states=rows[None], audio_hidden_states=sound[None], encoder_hidden_states=prompt,
                timestep=timestep.to(options.device), timestep_indices=indices.to(options.device), **layout,
                return_dict=False,
            )
        step |= {"velocity.video": velocity[0].float(), "velocity.audio": sound_velocity[0].float()}
        for name, tensor in step.items():
            writer.add(f"{name}.{i}", tensor)
        target = video_schedule.step(step["velocity.video"][keyframe_rows:], time, rows[keyframe_rows:], False)[0]
        rows = torch.cat([rows[:keyframe_rows], target])
        sound = audio_schedule.step(step["velocity.audio"], sound_time, sound, False)[0]
        print(f"step {i + 1} of {len(video_schedule.timesteps)}", file=sys.stderr, flush=True)
    writer.add(f"rows.{len(video_schedule.timesteps)}", rows)
    writer.add(f"audio.{len(video_schedule.timesteps)}", sound)
    writer.finish()


def noise_source(contract, options, noise):
    """Draws in the order of the calls, from the contract's generator, or takes what `--noise` holds."""
    if noise:
        return lambda name, shape: noise[name].reshape(shape).float().to(options.device)
    kind, _, processors = contract.get("rng", "torch-cuda:132").partition(":")
    device = "cpu" if kind == "torch-cpu" else options.device
    if kind != "torch-cpu":
        found = torch.cuda.get_device_properties(device).multi_processor_count if "cuda" in device else 0
        if found != int(processors or 0):
            raise InputError(
                f"rng: {contract.get('rng', 'torch-cuda:132')} draws on a GPU of {processors} multiprocessors; "
                f"{device} has {found}; give the noise with --noise"
            )
    generator = torch.Generator(device).manual_seed(options.seed)
    return lambda name, shape: torch.randn(shape, generator=generator, device=device).to(options.device)


def save_conditioning(path, state):
    """Writes the conditioning file from the state of a finished MiniMax-H3 pipeline, or from a mapping.

    Reads `prompt_embeds`, `text_token_tags`, `condition_latents` and `keyframe_anchors`, as diffusers' modular pipeline
    names them; the last two may be missing.
    """
    prompt, tags = state.get("prompt_embeds"), state.get("text_token_tags")
    if prompt is None or tags is None:
        raise InputError("the state has no prompt_embeds and text_token_tags; it is not that of a MiniMax-H3 pipeline")
    latents, anchors = state.get("condition_latents") or [], state.get("keyframe_anchors") or ()
    if len(latents) != len(anchors):
        raise InputError(f"{len(latents)} condition_latents for {len(anchors)} keyframe_anchors")
    tensors = {"prompt_embeds": prompt, "text_token_tags": tags.reshape(-1).to(torch.int64)}
    tensors |= {f"condition_latents.{i}": latent.float() for i, latent in enumerate(latents)}
    save_tensors(path, tensors, {"anchors": ",".join(anchors)})
