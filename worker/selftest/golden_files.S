/* The captures that a self-test compares with, byte for byte as they lie in tests/golden. */
        .section .rodata
        .macro file symbol, path
        .balign 64
        .global \symbol
        .hidden \symbol
\symbol:
        .incbin "\path"
        .global \symbol\()_end
        .hidden \symbol\()_end
\symbol\()_end:
        .byte 0
        .endm

        file plumbline_golden_block_fp32, "tests/golden/block0_fp32_cpu.safetensors"
        file plumbline_golden_block_bf16, "tests/golden/block0_bf16_cuda.safetensors"
        file plumbline_golden_model_fp32, "tests/golden/transformer_fp32_cpu.safetensors"
        file plumbline_golden_model_bf16, "tests/golden/transformer_bf16_cuda.safetensors"
        file plumbline_golden_inputs, "tests/golden/transformer_inputs.safetensors"
        file plumbline_golden_generation, "tests/golden/generation_fp32_cpu.safetensors"
        file plumbline_golden_layouts, "tests/golden/layouts.safetensors"
        file plumbline_golden_scheduler, "tests/golden/scheduler.safetensors"
        file plumbline_golden_rng, "tests/golden/rng.safetensors"
        file plumbline_golden_video_vae, "tests/golden/video_vae_io.safetensors"
        file plumbline_golden_audio_vae, "tests/golden/audio_vae_io.safetensors"
        file plumbline_golden_metrics, "tests/golden/metrics_io.safetensors"
        file plumbline_golden_json, "tests/golden/golden.json"

        .section .note.GNU-stack, "", @progbits
