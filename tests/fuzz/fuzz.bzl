"""fuzz_target: a fuzzer, and the test that replays its corpus."""

load("//bazel:copts.bzl", "PLUMBLINE_COPTS")

def fuzz_target(name, deps):
    """NAME_fuzz.cc defines LLVMFuzzerTestOneInput; corpus/NAME holds what it is begun with and what it has found.

    NAME_test replays the corpus in any build; NAME_fuzzer is libFuzzer's, of --config=fuzz alone.
    """
    native.cc_library(
        name = name + "_fuzz",
        testonly = True,
        srcs = [name + "_fuzz.cc"],
        copts = PLUMBLINE_COPTS,
        deps = deps + [":input"],
        alwayslink = True,
    )
    native.cc_test(
        name = name + "_test",
        size = "small",
        srcs = ["replay_main.cc"],
        args = ["tests/fuzz/corpus/" + name],
        copts = PLUMBLINE_COPTS,
        data = native.glob(["corpus/{}/*".format(name)]),
        deps = [":{}_fuzz".format(name)],
    )
    native.cc_binary(
        name = name + "_fuzzer",
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [":{}_fuzz".format(name)],
    )
