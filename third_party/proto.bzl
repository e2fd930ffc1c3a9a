"""C++ code from .proto files, with the system's protoc."""

def cc_proto(name, srcs, deps = [], visibility = None):
    """A cc_library of the messages in `srcs`; include them as "<package>/<file>.pb.h".

    Imports are written from the workspace root (import "schemas/options.proto");
    google/protobuf/*.proto come with the system's protobuf.

    Args:
      name: the library's name.
      srcs: .proto files of this package.
      deps: the cc_proto targets that `srcs` import.
      visibility: of the library and of its sources.
    """
    stems = []
    for src in srcs:
        if not src.endswith(".proto"):
            fail("%s: not a .proto file: %s" % (name, src))
        stems.append(src[:-len(".proto")])

    # For the cc_proto targets that import this one.
    native.filegroup(
        name = name + "_srcs",
        srcs = srcs + [_sources_of(dep) for dep in deps],
        visibility = visibility,
    )
    native.genrule(
        name = name + "_generate",
        srcs = srcs + [_sources_of(dep) for dep in deps],
        outs = [stem + ".pb.h" for stem in stems] + [stem + ".pb.cc" for stem in stems],
        cmd = "/usr/bin/protoc --proto_path=. --proto_path=/usr/include --cpp_out=$(GENDIR) " +
              " ".join(["$(location %s)" % src for src in srcs]),
        message = "Generating C++ of",
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = [stem + ".pb.cc" for stem in stems],
        hdrs = [stem + ".pb.h" for stem in stems],
        copts = ["-w"],
        deps = deps + ["//third_party:protobuf"],
        visibility = visibility,
    )

def _sources_of(label):
    """The filegroup beside a cc_proto: //a:b -> //a:b_srcs, //a -> //a:a_srcs."""
    if ":" in label:
        return label + "_srcs"
    return label + ":" + label.split("/")[-1] + "_srcs"
