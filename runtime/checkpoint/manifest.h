#ifndef PLANC_RUNTIME_CHECKPOINT_MANIFEST_H_
#define PLANC_RUNTIME_CHECKPOINT_MANIFEST_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/saved_data.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "schemas/job.pb.h"
#include "schemas/mesh.h"

namespace planc {

inline constexpr int kCheckpointFormatVersion = 1;
inline constexpr char kManifestName[] = "manifest.json";

// What is saved for each parameter. X(enumerator, text).
#define PLANC_STATE_KINDS(X) \
  X(kMaster, "master")       \
  X(kFirstMoment, "exp_avg") \
  X(kSecondMoment, "exp_avg_sq")

enum class StateKind : uint8_t {
#define PLANC_STATE_KIND_ENUM(name, text) name,
  PLANC_STATE_KINDS(PLANC_STATE_KIND_ENUM)
#undef PLANC_STATE_KIND_ENUM
};
inline constexpr int kStateKindCount = 3;
inline constexpr std::array<StateKind, kStateKindCount> kAllStateKinds = {
#define PLANC_STATE_KIND_VALUE(name, text) StateKind::name,
    PLANC_STATE_KINDS(PLANC_STATE_KIND_VALUE)
#undef PLANC_STATE_KIND_VALUE
};
const char* StateKindName(StateKind kind);

// One tensor of a shard file: a box of one parameter's state.
struct SavedTensor {
  std::string file;       // within the checkpoint's folder
  std::string key;        // within the file
  Box box;                // of the whole parameter
  uint64_t checksum = 0;  // XXH3-64 of the tensor's bytes
};

// A whole parameter and where its pieces lie.
struct SavedParameter {
  std::vector<int64_t> shape;
  bool transposed = false;                                      // as Parameter::transposed
  std::array<std::vector<SavedTensor>, kStateKindCount> state;  // by StateKind
};

// Every parameter of the plan's model by full name, without pieces: what a checkpoint of it has.
std::map<std::string, SavedParameter> ParametersOf(const Plan& plan);
// "[4, 3]".
std::string ShapeText(const std::vector<int64_t>& shape);

struct SavedFile {
  int64_t bytes = 0;
  uint64_t header_checksum = 0;  // SafetensorsFile::header_checksum
};

// The run that a checkpoint belongs to.
struct SavedRun {
  std::string id;  // RunRecord::id; empty: written by a planc that gave runs none, or imported
  // How often the run had gone back to one of its checkpoints and taken another way from there.
  int64_t branch = 0;
};

// The checkpoint that another one goes on from.
struct ParentCheckpoint {
  std::string run;        // SavedRun::id
  int64_t step = 0;       // Manifest::step
  uint64_t checksum = 0;  // XXH3-64 of its manifest.json
};
// That of the checkpoint in this folder. Errors: as ReadCheckpointIdentity.
absl::StatusOr<ParentCheckpoint> AsParent(const std::string& checkpoint);

// The table of contents of a checkpoint, manifest.json (docs/checkpoint_format.md). All values are
// float32.
struct Manifest {
  int64_t step = 0;     // optimizer steps done
  bool finite = false;  // every value was examined when it was written; not in older manifests
  SavedRun run;
  std::optional<ParentCheckpoint> parent;  // nothing when the training began without one
  std::string plan_hash;
  proto::Job job;                               // resolved, of the run that saved
  Mesh mesh;                                    // of the run that saved
  std::map<std::string, std::string> versions;  // of the program that saved and its libraries
  // What the run computed with, and the class of bits that it gives bf16
  // (kernels/instruction_set.h). Both empty where nothing was computed, as in an import, and in
  // manifests of before.
  std::string instruction_set;
  std::string bits;
  // Nothing where nothing was trained, as in an import, and in manifests of before.
  std::optional<SavedData> data;
  std::map<std::string, SavedFile> files;            // by name
  std::map<std::string, SavedParameter> parameters;  // by full name
};

absl::StatusOr<std::string> ManifestText(const Manifest& manifest);
// Errors: DataLoss for text that is not a whole manifest, as it was written; FailedPrecondition for
// one of another format version.
absl::StatusOr<Manifest> ParseManifest(const std::string& text);
// Reads `checkpoint`/manifest.json. Errors: NotFound when there is none; Internal when the system
// does not let it be seen (readable.h); else as ParseManifest, naming the file.
absl::StatusOr<Manifest> ReadManifest(const std::string& checkpoint);

// Whose checkpoint it is and of which step.
struct CheckpointIdentity {
  SavedRun run;
  int64_t step = 0;
};
// Reads them from `checkpoint`/manifest.json without its tables, whose size grows with the model,
// and without comparing the checksum. Errors: DataLoss; Internal as ReadManifest.
absl::StatusOr<CheckpointIdentity> ReadCheckpointIdentity(const std::string& checkpoint);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_MANIFEST_H_
