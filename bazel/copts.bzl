"""Compiler options of the project's own targets: `copts = PLUMBLINE_COPTS`, in kernels/ `copts = KERNEL_COPTS`."""

# The three -Wno: false alarms of g++ 12 that surface inside std::string and Abseil once they are inlined into our code.
PLUMBLINE_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-array-bounds",
    "-Wno-maybe-uninitialized",
    "-Wno-restrict",
    "-Wno-unused-parameter",  # an interface names what an override may ignore
]

# These decide numbers, so they are the same in every build mode (fastbuild, release, sanitizers) and are part of the
# kernel identity. No -ffast-math or any part of it that changes a value:
#  -O3                  the same code, vectorised the same way, in a debug build and in a release;
#  -march=x86-64-v3     AVX2 and FMA, checked when a program starts; -mtune=generic: not what the build machine has;
#  -ffp-contract=off    a fused multiply-add only where the source says std::fma;
#  -fno-math-errno      lets sqrt and fma be one instruction; changes errno, never a value;
#  -fno-trapping-math   nobody reads floating-point exception flags; changes them, never a value.
KERNEL_COPTS = PLUMBLINE_COPTS + [
    "-O3",
    "-march=x86-64-v3",
    "-mtune=generic",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
]

# Of cuda_library in kernels/, for device and host code. -fmad=false: a fused multiply-add only where the source says
# __fmaf_rn, as -ffp-contract=off for the CPU. Division, square root and subnormals are nvcc's IEEE defaults.
CUDA_KERNEL_COPTS = [
    "-fmad=false",
    "-Xcompiler",
    "-ffp-contract=off",
    "-Xcompiler",
    "-Wall,-Wextra,-Wno-unused-parameter,-Wno-array-bounds,-Wno-maybe-uninitialized,-Wno-restrict",
]

# The targets of every kernel: Hopper's own machine code, and for any other card of compute capability 8.0 and newer
# code that its driver compiles.
CUDA_ARCHS = ["90a"]
CUDA_PTX_ARCHS = ["80"]
