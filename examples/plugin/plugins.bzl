"""plugin_object: a plug-in as its author builds it: one compiler command and the header, nothing of Bazel's toolchain."""

# What wrong.c can do wrong.
WRONG = [
    "UNWRITTEN",
    "OVERRUN",
    "UNDERRUN",
    "CHANGES_INPUT",
    "SCRATCH_OVERRUN",
    "NEIGHBOURS",
    "UNREPEATABLE",
    "FAILS",
    "CRASHES",
    "CRASHES_WHEN_LOADED",
    "HANGS_WHEN_LOADED",
    "OTHER_ABI",
    "UNKNOWN_NODE",
    "TAPPED",
    "HALVES",
    "EXITS",
    "BETWEEN_ROWS",
    "BAD_BACKWARD",
    "HANGS",
    "EXITS_AT_ONCE",
    "KILLS",
    "PRINTS",
]

COMPILERS = {
    "gcc_c99": "gcc -std=c99 -pedantic",
    "gcc_cxx": "g++ -x c++ -std=c++11",
    "clang_c99": "clang -std=c99 -pedantic",
    "clang_cxx": "clang++ -x c++ -std=c++11",
}

def plugin_object(name, src, out, compiler = "gcc -std=gnu99", defines = []):
    """Compiles `src` into the shared object `out`.

    Args:
      name: of the target
      src: one source
      out: the file to make, a .so
      compiler: the compiler, with the language it is told
      defines: -D options, without the -D
    """
    native.genrule(
        name = name,
        srcs = [src],
        outs = [out],
        cmd = " ".join(
            [compiler, "-O2 -Wall -Wextra -Werror -ffp-contract=off -fPIC -shared"] +
            ["'-D%s'" % define for define in defines] +
            ["-I$$(dirname $(location //kernels/plugin:plumbline_plugin.h))", "-o $@ $(location %s) -lm" % src],
        ),
        tools = ["//kernels/plugin:plumbline_plugin.h"],
        visibility = ["//visibility:public"],
    )
