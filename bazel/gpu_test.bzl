"""gpu_test: a test that needs a GPU, for `bazel test` and for the one program of `./dev gpu pack`."""

load(":copts.bzl", "PLUMBLINE_COPTS")

_ONLY_WITH_CUDA = select({
    "//bazel:cuda_enabled": [],
    "//conditions:default": ["//bazel:incompatible"],
})

def gpu_test(name, srcs, deps, data = []):
    """A cc_test of GoogleTest, left out of //... where //bazel:cuda is off, and NAME_cases, its cases as a library.

    Where there is no GPU its cases must skip themselves with the words "no CUDA device".
    """
    native.cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = srcs,
        copts = PLUMBLINE_COPTS,
        target_compatible_with = _ONLY_WITH_CUDA,
        deps = deps + ["//third_party/system:gtest"],
        alwayslink = True,  # Nothing names the cases: they register themselves.
    )
    native.cc_test(
        name = name,
        size = "small",
        data = data,
        target_compatible_with = _ONLY_WITH_CUDA,
        deps = [
            ":" + name + "_cases",
            "//third_party/system:gtest_main",
        ],
    )
