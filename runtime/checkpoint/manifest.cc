#include "runtime/checkpoint/manifest.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/checkpoint/data_json.h"
#include "runtime/checkpoint/job_json.h"
#include "runtime/checkpoint/json_fields.h"
#include "runtime/checkpoint/readable.h"
#include "runtime/checkpoint/safetensors.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr char kFormat[] = "planc-checkpoint";

std::string TextOf(const Json& json) { return absl::StrCat(json.dump(1), "\n"); }

absl::Status Damaged(const std::string& what) { return absl::DataLossError(what); }

Json TensorJson(const SavedTensor& tensor) {
  return {{"file", tensor.file},
          {"key", tensor.key},
          {"offset", tensor.box.offset},
          {"shape", tensor.box.shape},
          {"xxh3_64", HexText(tensor.checksum)}};
}

Json ParameterJson(const SavedParameter& parameter) {
  Json json = {{"shape", parameter.shape}, {"dtype", "f32"}, {"transposed", parameter.transposed}};
  for (const StateKind kind : kAllStateKinds) {
    Json& tensors = json[StateKindName(kind)] = Json::array();
    for (const SavedTensor& tensor : parameter.state[static_cast<int>(kind)]) {
      tensors.push_back(TensorJson(tensor));
    }
  }
  return json;
}

bool ReadTensor(const Json& json, size_t dims, SavedTensor* tensor) {
  return ReadField(json, "file", &tensor->file) && ReadField(json, "key", &tensor->key) &&
         ReadField(json, "offset", &tensor->box.offset) &&
         ReadField(json, "shape", &tensor->box.shape) &&
         ReadHexField(json, "xxh3_64", &tensor->checksum) && tensor->box.offset.size() == dims &&
         tensor->box.shape.size() == dims;
}

bool ReadParameter(const Json& json, SavedParameter* parameter) {
  std::string dtype;
  if (!ReadField(json, "shape", &parameter->shape) || !ReadField(json, "dtype", &dtype) ||
      !ReadField(json, "transposed", &parameter->transposed) || dtype != "f32") {
    return false;
  }
  for (const StateKind kind : kAllStateKinds) {
    const Json* const tensors = FindField(json, StateKindName(kind));
    if (tensors == nullptr || !tensors->is_array()) return false;
    for (const Json& element : *tensors) {
      SavedTensor tensor;
      if (!ReadTensor(element, parameter->shape.size(), &tensor)) return false;
      parameter->state[static_cast<int>(kind)].push_back(std::move(tensor));
    }
  }
  return true;
}

Json MeshJson(const Mesh& mesh) {
  Json json = Json::object();
  for (const Axis axis : kAllAxes) json[AxisName(axis)] = mesh[axis];
  return json;
}

bool ReadMesh(const Json& contents, Mesh* mesh) {
  const Json* const json = FindField(contents, "mesh");
  if (json == nullptr) return false;
  for (const Axis axis : kAllAxes) {
    if (!ReadField(*json, AxisName(axis), &mesh->size[static_cast<int>(axis)])) return false;
  }
  return true;
}

bool ReadVersions(const Json& contents, std::map<std::string, std::string>* versions) {
  const Json* const json = FindField(contents, "versions");
  if (json == nullptr || !json->is_object()) return false;
  for (const auto& [name, version] : json->items()) {
    if (!version.is_string()) return false;
    (*versions)[name] = version.get<std::string>();
  }
  return true;
}

// Optional: neither older manifests nor those of imports have it.
bool ReadInstructionSet(const Json& contents, Manifest* manifest) {
  const Json* const json = FindField(contents, "instruction_set");
  if (json == nullptr) return true;
  return ReadField(*json, "name", &manifest->instruction_set) &&
         ReadField(*json, "bits", &manifest->bits);
}

// Manifests of before have neither branch nor parent.
bool ReadRun(const Json& json, SavedRun* run) {
  if (!ReadField(json, "id", &run->id)) return false;
  return FindField(json, "branch") == nullptr ||
         (ReadField(json, "branch", &run->branch) && run->branch >= 0);
}

bool ReadParent(const Json& contents, std::optional<ParentCheckpoint>* parent) {
  const Json* const json = FindField(contents, "parent");
  if (json == nullptr) return true;
  parent->emplace();
  return ReadField(*json, "run", &(*parent)->run) && ReadField(*json, "step", &(*parent)->step) &&
         ReadHexField(*json, "manifest_xxh3_64", &(*parent)->checksum);
}

bool ReadData(const Json& contents, std::optional<SavedData>* data) {
  const Json* const json = FindField(contents, "data");
  if (json == nullptr) return true;
  data->emplace();
  return ReadPosition(*json, &(*data)->position) && ReadIdentity(*json, &(*data)->identity);
}

absl::Status ReadContents(const Json& json, Manifest* manifest) {
  const Json* const job = FindField(json, "job");
  const Json* const files = FindField(json, "files");
  const Json* const parameters = FindField(json, "parameters");
  if (!ReadField(json, "step", &manifest->step) ||
      !ReadField(json, "plan_hash", &manifest->plan_hash) || !ReadMesh(json, &manifest->mesh) ||
      !ReadVersions(json, &manifest->versions) || !ReadInstructionSet(json, manifest) ||
      job == nullptr || files == nullptr || !files->is_object() || parameters == nullptr ||
      !parameters->is_object()) {
    return Damaged("a field is missing");
  }
  ReadField(json, "finite", &manifest->finite);  // optional
  if (!ReadJobJson(*job, &manifest->job)) return Damaged("the job cannot be read");
  if (const Json* const run = FindField(json, "run")) {
    if (!ReadRun(*run, &manifest->run)) return Damaged("the run cannot be read");
  }
  if (!ReadParent(json, &manifest->parent)) return Damaged("the parent cannot be read");
  if (!ReadData(json, &manifest->data)) return Damaged("the position in the data cannot be read");
  for (const auto& [name, entry] : files->items()) {
    SavedFile& file = manifest->files[name];
    if (!ReadField(entry, "bytes", &file.bytes) ||
        !ReadHexField(entry, "header_xxh3_64", &file.header_checksum)) {
      return Damaged(absl::StrCat("file ", name, ": incomplete entry"));
    }
  }
  for (const auto& [name, entry] : parameters->items()) {
    if (!ReadParameter(entry, &manifest->parameters[name])) {
      return Damaged(absl::StrCat("parameter ", name, ": incomplete entry"));
    }
  }
  return absl::OkStatus();
}

// With all its bytes in memory.
absl::StatusOr<MappedFile> OpenManifest(const std::string& path) {
  PLANC_ASSIGN_OR_RETURN(MappedFile file, OpenPart(path));
  const absl::Status fetched = file.Fetch(file.data(), file.size());
  if (!fetched.ok()) return FetchFailure(path, fetched);
  return file;
}

}  // namespace

const char* StateKindName(StateKind kind) {
  switch (kind) {
#define PLANC_STATE_KIND_NAME(name, text) \
  case StateKind::name:                   \
    return text;
    PLANC_STATE_KINDS(PLANC_STATE_KIND_NAME)
#undef PLANC_STATE_KIND_NAME
  }
  return "?";
}

std::map<std::string, SavedParameter> ParametersOf(const Plan& plan) {
  std::map<std::string, SavedParameter> parameters;
  ForEachTensor(plan, [&](const std::string& name, const Parameter& parameter) {
    SavedParameter& saved = parameters[name];
    saved.shape = parameter.shape;
    saved.transposed = parameter.transposed;
  });
  return parameters;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<std::string> ManifestText(const Manifest& manifest) {
  Json contents = {{"step", manifest.step}, {"plan_hash", manifest.plan_hash}};
  if (manifest.finite) contents["finite"] = true;
  contents["mesh"] = MeshJson(manifest.mesh);
  contents["versions"] = manifest.versions;
  if (!manifest.instruction_set.empty()) {
    contents["instruction_set"] = {{"name", manifest.instruction_set}, {"bits", manifest.bits}};
  }
  if (!manifest.run.id.empty()) {
    contents["run"] = {{"id", manifest.run.id}, {"branch", manifest.run.branch}};
  }
  if (manifest.parent.has_value()) {
    contents["parent"] = {{"run", manifest.parent->run},
                          {"step", manifest.parent->step},
                          {"manifest_xxh3_64", HexText(manifest.parent->checksum)}};
  }
  if (manifest.data.has_value()) {
    contents["data"] = PositionJson(manifest.data->position);
    AddIdentity(manifest.data->identity, &contents["data"]);
  }
  PLANC_ASSIGN_OR_RETURN(contents["job"], JobJson(manifest.job));
  Json& files = contents["files"] = Json::object();
  for (const auto& [name, file] : manifest.files) {
    files[name] = {{"bytes", file.bytes}, {"header_xxh3_64", HexText(file.header_checksum)}};
  }
  Json& parameters = contents["parameters"] = Json::object();
  for (const auto& [name, parameter] : manifest.parameters) {
    parameters[name] = ParameterJson(parameter);
  }
  const std::string dump = contents.dump();
  return TextOf({{"format", kFormat},
                 {"version", kCheckpointFormatVersion},
                 {"contents_xxh3_64", HexText(Checksum(dump.data(), dump.size()))},
                 {"contents", std::move(contents)}});
}

absl::StatusOr<Manifest> ParseManifest(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::string format;
  int64_t version = 0;
  uint64_t checksum = 0;
  const Json* const contents = FindField(json, "contents");
  if (!ReadField(json, "format", &format) || format != kFormat ||
      !ReadField(json, "version", &version)) {
    return Damaged("not a checkpoint manifest");
  }
  if (version != kCheckpointFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "format version ", version, "; this planc reads version ", kCheckpointFormatVersion));
  }
  if (contents == nullptr || !ReadHexField(json, "contents_xxh3_64", &checksum)) {
    return Damaged("not a whole checkpoint manifest");
  }
  const std::string dump = contents->dump();
  if (Checksum(dump.data(), static_cast<int64_t>(dump.size())) != checksum) {
    return Damaged("the contents do not have the checksum they were written with");
  }
  // What the checksum does not cover: white space, and the fields around the contents.
  if (TextOf(json) != text) return Damaged("is not as it was written");
  Manifest manifest;
  PLANC_RETURN_IF_ERROR(ReadContents(*contents, &manifest));
  return manifest;
}

absl::StatusOr<Manifest> ReadManifest(const std::string& checkpoint) {
  const std::string path = absl::StrCat(checkpoint, "/", kManifestName);
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 && IsAbsence(errno)) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no complete checkpoint here"));
  }
  PLANC_ASSIGN_OR_RETURN(const MappedFile file, OpenManifest(path));
  absl::StatusOr<Manifest> manifest =
      ParseManifest(std::string(file.data(), static_cast<size_t>(file.size())));
  if (!manifest.ok()) return WithContext(manifest.status(), path);
  return manifest;
}

absl::StatusOr<CheckpointIdentity> ReadCheckpointIdentity(const std::string& checkpoint) {
  const std::string path = absl::StrCat(checkpoint, "/", kManifestName);
  PLANC_ASSIGN_OR_RETURN(const MappedFile file, OpenManifest(path));
  // Lists that grow with model and ranks are read, but not kept.
  const auto keep = [](int, Json::parse_event_t event, Json& value) {
    return event != Json::parse_event_t::key ||
           (value != "parameters" && value != "files" && value != "job" && value != "data");
  };
  const Json json = Json::parse(file.data(), file.data() + file.size(), keep,
                                /*allow_exceptions=*/false);
  const Json* const contents = FindField(json, "contents");
  CheckpointIdentity identity;
  if (contents == nullptr || !ReadField(*contents, "step", &identity.step)) {
    return absl::DataLossError(absl::StrCat(path, ": not a checkpoint manifest"));
  }
  if (const Json* const run = FindField(*contents, "run")) {
    if (!ReadRun(*run, &identity.run)) {
      return absl::DataLossError(absl::StrCat(path, ": the run cannot be read"));
    }
  }
  return identity;
}

absl::StatusOr<ParentCheckpoint> AsParent(const std::string& checkpoint) {
  PLANC_ASSIGN_OR_RETURN(const CheckpointIdentity identity, ReadCheckpointIdentity(checkpoint));
  PLANC_ASSIGN_OR_RETURN(const MappedFile file,
                         OpenManifest(absl::StrCat(checkpoint, "/", kManifestName)));
  return ParentCheckpoint{identity.run.id, identity.step, Checksum(file.data(), file.size())};
}

}  // namespace planc
