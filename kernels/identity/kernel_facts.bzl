"""kernel_facts: what decides the numbers of some targets, read off the targets themselves.

An aspect walks the dependencies, so a source that is linked is recorded without being listed anywhere, and a source
that is listed but not linked is not. It looks at the project's own packages below `kernels` and `worker/h3`.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_PACKAGES = ["kernels", "worker/h3"]

# Options that change no value. Any other -f, -m, -O, -std or -D is taken to decide numbers.
_NEUTRAL_PREFIXES = [
    "-fPIC",
    "-fpic",
    "-fsanitize",
    "-fno-sanitize",
    "-fno-omit-frame-pointer",
    "-fstack-protector",
    "-fdiagnostics",
]

_KernelFactsInfo = provider(fields = {
    "sources": "depset of File: sources and headers of the targets",
    "test_sources": "depset of File: those of testonly targets among them",
    "flags": "depset of string: LABEL, then the target's own options that decide numbers",
    "commands": "depset of string: LABEL, then all options it is compiled and linked with, the toolchain's included",
})

def _starts_with_any(text, prefixes):
    for prefix in prefixes:
        if text.startswith(prefix):
            return True
    return False

def _decides_numbers(option):
    return _starts_with_any(option, ["-f", "-m", "-O", "-std", "-D", "--"]) and \
           not _starts_with_any(option, _NEUTRAL_PREFIXES)

def _is_ours(label):
    if label.workspace_name:
        return False
    for package in _PACKAGES:
        if label.package == package or label.package.startswith(package + "/"):
            return True
    return False

def _files(ctx, attribute):
    return [file for target in getattr(ctx.rule.attr, attribute, []) for file in target.files.to_list()]

# The options that the toolchain, the command line and the target give g++, in its order. (A CppCompile action does
# not show its own in this version of Bazel.)
def _cpp_command(ctx, own):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    return cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + own,
        ),
    )

def _aspect_impl(target, ctx):
    dependencies = getattr(ctx.rule.attr, "deps", [])
    actual = getattr(ctx.rule.attr, "actual", None)
    if actual:
        dependencies = dependencies + [actual]
    infos = [d[_KernelFactsInfo] for d in dependencies if _KernelFactsInfo in d]

    sources = []
    flags = []
    commands = []
    if CcInfo in target and _is_ours(target.label):
        sources = _files(ctx, "srcs") + _files(ctx, "hdrs") + _files(ctx, "textual_hdrs")
        own = getattr(ctx.rule.attr, "copts", []) + \
              ["-D" + define for define in getattr(ctx.rule.attr, "defines", []) + getattr(ctx.rule.attr, "local_defines", [])] + \
              ["--gpu-architecture=" + arch for arch in getattr(ctx.rule.attr, "archs", [])] + \
              ["--gpu-ptx-architecture=" + arch for arch in getattr(ctx.rule.attr, "ptx_archs", [])]
        command_line = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts
        flags.append(" ".join([str(target.label)] + [o for o in command_line + own if _decides_numbers(o)]))
        link = ctx.fragments.cpp.linkopts + getattr(ctx.rule.attr, "linkopts", [])
        commands.append(" ".join([str(target.label)] + _cpp_command(ctx, own) + link))
        for action in target.actions:
            if action.mnemonic == "NvccCompile":
                commands.append(" ".join([str(target.label)] + action.argv))

    return [_KernelFactsInfo(
        sources = depset(sources, transitive = [i.sources for i in infos]),
        test_sources = depset(
            sources if getattr(ctx.rule.attr, "testonly", False) else [],
            transitive = [i.test_sources for i in infos],
        ),
        flags = depset(flags, transitive = [i.flags for i in infos]),
        commands = depset(commands, transitive = [i.commands for i in infos]),
    )]

_kernel_facts_aspect = aspect(
    implementation = _aspect_impl,
    attr_aspects = ["deps", "actual"],
    attrs = {"_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain")},
    fragments = ["cpp"],
)

def _impl(ctx):
    infos = [d[_KernelFactsInfo] for d in ctx.attr.deps]
    files = depset(transitive = [i.test_sources if ctx.attr.tests_alone else i.sources for i in infos])
    sources = {f.path: f for f in files.to_list()}

    ctx.actions.run_shell(
        inputs = sources.values(),
        outputs = [ctx.outputs.sources],
        arguments = [ctx.outputs.sources.path] + sorted(sources.keys()),
        command = "out=$1; shift; sha256sum \"$@\" > \"$out\"",
        mnemonic = "HashSources",
    )
    for output, lines in [
        (ctx.outputs.flags, depset(transitive = [i.flags for i in infos])),
        (ctx.outputs.commands, depset(transitive = [i.commands for i in infos])),
    ]:
        ctx.actions.write(output, "".join([line + "\n" for line in sorted(lines.to_list())]))
    return []

kernel_facts = rule(
    doc = """Writes, of everything that `deps` link from kernels/ and worker/h3:

    NAME.sources   "SHA256  PATH" for each source and header
    NAME.flags     "LABEL OPTION..." for each target: its options that decide numbers, the same in every build mode
    NAME.commands  "LABEL OPTION..." for each target: everything that it is compiled and linked with
""",
    implementation = _impl,
    attrs = {
        "deps": attr.label_list(aspects = [_kernel_facts_aspect], mandatory = True),
        "tests_alone": attr.bool(doc = "whether NAME.sources names the sources of testonly targets alone"),
    },
    outputs = {
        "sources": "%{name}.sources",
        "flags": "%{name}.flags",
        "commands": "%{name}.commands",
    },
)
