"""CUDA C++ through nvcc, as libraries that host code links."""

load("@local_cuda//:defs.bzl", "CUDA_HOME", "HAVE_CUDA")

# Ampere and Hopper as machine code; newer devices compile the PTX when they load it.
_ARCHITECTURES = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=sm_90",
    "-gencode=arch=compute_90,code=compute_90",
]

_NVCC_OPTIONS = [
    "-std=c++20",
    "-O3",
    "--fmad=false",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "-Werror=all-warnings",
    "-Xcompiler=-Wall,-Wextra,-Werror,-fPIC",
]

def cuda_library(name, srcs, headers = [], nvcc_options = [], deps = [], **kwargs):
    """A cc_library of CUDA sources; incompatible with machines that have no CUDA toolkit.

    Args:
      name: the library's name.
      srcs: .cu files, each compiled by nvcc to one object. Includes are from the workspace root.
      headers: the header files that the sources include, as labels of files or filegroups.
      nvcc_options: added to the common ones.
      deps: cc_library targets that users of this library link.
      **kwargs: passed to the cc_library.
    """
    if not HAVE_CUDA:
        native.cc_library(
            name = name,
            target_compatible_with = ["@platforms//:incompatible"],
            **kwargs
        )
        return
    objects = []
    for src in srcs:
        out = "%s_%s.o" % (name, src.replace("/", "_").replace(".", "_"))
        native.genrule(
            name = out + "_compile",
            srcs = [src] + headers,
            outs = [out],
            cmd = " ".join(
                [CUDA_HOME + "/bin/nvcc", "-c", "-x cu", "$(location %s)" % src, "-o $@"] +
                ["-I. -I$(GENDIR)"] + _NVCC_OPTIONS + _ARCHITECTURES + nvcc_options,
            ),
            message = "Compiling with nvcc",
            visibility = ["//visibility:private"],
        )
        objects.append(out)
    native.cc_library(
        name = name,
        srcs = objects,
        deps = deps + ["//third_party/cuda"],
        **kwargs
    )
