"""Finds the CUDA toolkit and NCCL; a machine without them gets incompatible targets instead."""

_PRESENT = """
cc_library(
    name = "{name}",
    hdrs = glob([
        "include/*.h",
        "include/*.hpp",
        "include/crt/**",
        "include/nccl_device/**",
        "include/nv/**",
    ]),
    includes = ["include"],
    linkopts = [
        "-L{directory}/lib64",
        "-Wl,-rpath,{directory}/lib64",
        {libraries},
    ],
    visibility = ["//visibility:public"],
)
"""

_ABSENT = """
cc_library(
    name = "{name}",
    target_compatible_with = ["@platforms//:incompatible"],
    visibility = ["//visibility:public"],
)
"""

def _has_all(repository_ctx, directory, files):
    for file in files:
        if not repository_ctx.path(directory + "/" + file).exists:
            return False
    return True

def _library(name, directory, present, libraries):
    if not present:
        return _ABSENT.format(name = name)
    return _PRESENT.format(
        name = name,
        directory = directory,
        libraries = ", ".join(['"-l%s"' % library for library in libraries]),
    )

def _cuda_configure_impl(repository_ctx):
    directory = repository_ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    have_cuda = _has_all(repository_ctx, directory, [
        "bin/nvcc",
        "include/cublasLt.h",
        "lib64/libcublasLt.so",
    ])
    have_nccl = have_cuda and _has_all(repository_ctx, directory, [
        "include/nccl.h",
        "lib64/libnccl.so",
    ])
    if have_cuda:
        repository_ctx.symlink(directory + "/include", "include")
    repository_ctx.file(
        "BUILD",
        _library("cuda", directory, have_cuda, ["cublasLt", "cudart"]) +
        _library("nccl", directory, have_nccl, ["nccl"]),
    )
    repository_ctx.file(
        "defs.bzl",
        'HAVE_CUDA = %s\nHAVE_NCCL = %s\nCUDA_HOME = "%s"\n' % (have_cuda, have_nccl, directory),
    )

# Makes @<name>//:cuda (runtime and cuBLASLt), @<name>//:nccl and @<name>//:defs.bzl from the
# toolkit in $CUDA_HOME, or in /usr/local/cuda.
cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
