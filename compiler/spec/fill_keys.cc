#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/catalog/devices.h"
#include "compiler/catalog/models.h"
#include "compiler/spec/parse_value.h"
#include "compiler/spec/resolve_job.h"
#include "compiler/spec/suggest.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The message that holds the keys of `section`, created if it was not given.
Message& MutableSection(proto::Job& job, const std::string& section) {
  Message* message = &job;
  size_t begin = 0;
  while (begin < section.size()) {
    const size_t end = std::min(section.find('.', begin), section.size());
    const FieldDescriptor* field =
        message->GetDescriptor()->FindFieldByName(section.substr(begin, end - begin));
    message = message->GetReflection()->MutableMessage(message, field);
    begin = end + 1;
  }
  return *message;
}

// Sizes that have no meaning without a preset and no derivation from other keys.
bool IsRequiredSize(const JobKey& key) { return key.key->derived() == "from the preset"; }

class Filler {
 public:
  Filler(const std::string& job_file, ParsedJob& parsed, DiagnosticList& diagnostics)
      : job_file_(job_file), parsed_(parsed), diagnostics_(diagnostics) {}

  void Run() {
    CheckJobName();
    CheckDevice();
    FillFromPreset();
    for (const JobKey& key : AllJobKeys()) {
      if (parsed_.origins.count(key.path) > 0 || parsed_.excused.count(key.path) > 0) continue;
      if (key.in_optional && parsed_.sections.count(key.section) == 0) continue;
      if (key.key->has_default_()) {
        FillDefault(key);
      } else if (!key.key->has_derived() || IsRequiredSize(key)) {
        Missing(key);
      }
    }
  }

 private:
  void CheckJobName() {
    if (!parsed_.job.has_job()) return;
    const std::string& name = parsed_.job.job();
    const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
    });
    if (plain && name.size() <= 128 && absl::ascii_isalnum(static_cast<unsigned char>(name[0]))) {
      return;
    }
    Diagnostic& diagnostic =
        diagnostics_.Add(DiagnosticCode::kBadJobName, SpanOf(parsed_.origins.at("job")),
                         absl::StrCat("job must be a name of letters, digits, dots, dashes and "
                                      "underscores, but is \"",
                                      name.substr(0, 128), "\""));
    std::string usable = name.substr(0, 64);
    std::replace_if(
        usable.begin(), usable.end(),
        [](unsigned char c) { return !absl::ascii_isalnum(c) && c != '.' && c != '_'; }, '-');
    usable.erase(0, usable.find_first_not_of("-._"));
    if (!usable.empty()) diagnostic.fix = absl::StrCat("write for example `job: ", usable, "`");
  }

  void CheckDevice() {
    if (!parsed_.job.cluster().has_device()) return;
    const std::string& name = parsed_.job.cluster().device();
    if (FindDevice(name) != nullptr) return;
    std::vector<std::string> names;
    for (const DeviceSpec& device : Devices()) names.push_back(device.name);
    UnknownName(DiagnosticCode::kUnknownDevice, "cluster.device", "device", DevicesCalled(name),
                names);
  }

  void FillFromPreset() {
    if (!parsed_.job.model().has_preset()) {
      if (parsed_.excused.count("model.preset") > 0) ExcuseSizes();
      return;
    }
    const std::string& name = parsed_.job.model().preset();
    const ModelPreset* preset = FindModelPreset(name);
    if (preset == nullptr) {
      std::vector<std::string> names;
      for (const ModelPreset& known : ModelPresets()) names.push_back(known.name);
      UnknownName(DiagnosticCode::kUnknownPreset, "model.preset", "model preset",
                  ModelPresetsCalled(name), names);
      return ExcuseSizes();
    }
    proto::Model merged = preset->model;
    merged.MergeFrom(parsed_.job.model());
    *parsed_.job.mutable_model() = merged;
    for (const JobKey& key : AllJobKeys()) {
      if (key.section != "model" || parsed_.origins.count(key.path) > 0) continue;
      if (!preset->model.GetReflection()->HasField(preset->model, key.field)) continue;
      Origin origin;
      origin.kind = Origin::Kind::kPreset;
      origin.file = name;
      parsed_.origins[key.path] = origin;
    }
  }

  // What an unknown preset would have given: neither reported as missing nor derived.
  void ExcuseSizes() {
    for (const JobKey& key : AllJobKeys()) {
      const bool size =
          key.section == "model" && absl::StartsWith(key.key->derived(), "from the preset");
      if (size && parsed_.origins.count(key.path) == 0) parsed_.excused.insert(key.path);
    }
  }

  // Reports the value of `path`, which is none of `names`. `synonyms` are those that it is another
  // name of. Afterwards the key has no usable value.
  void UnknownName(DiagnosticCode code, const std::string& path, const std::string& what,
                   const std::vector<std::string>& synonyms,
                   const std::vector<std::string>& names) {
    const Origin& origin = parsed_.origins.at(path);
    Diagnostic& diagnostic = diagnostics_.Add(code, SpanOf(origin),
                                              absl::StrCat("there is no ", what, " ", origin.text));
    std::vector<std::string> meant = synonyms;
    if (meant.empty()) meant = NearestNames(origin.text, names);
    if (!meant.empty()) {
      diagnostic.fix = absl::StrCat("did you mean ", absl::StrJoin(meant, " or "), "?");
    }
    diagnostic.notes.push_back(absl::StrCat("known: ", absl::StrJoin(names, " ")));
    parsed_.origins.erase(path);
    parsed_.excused.insert(path);
  }

  void FillDefault(const JobKey& key) {
    // A default of job.proto that cannot be read would be a missing key here, and fails a test.
    if (!SetFromDefault(key, MutableSection(parsed_.job, key.section))) return Missing(key);
    Origin origin;
    origin.kind = Origin::Kind::kDefault;
    origin.text = key.key->default_();
    parsed_.origins[key.path] = origin;
  }

  void Missing(const JobKey& key) {
    Span span{job_file_, 1, 1, 1};
    const auto section = parsed_.sections.find(key.section);
    if (section != parsed_.sections.end()) span = section->second;
    Diagnostic& diagnostic =
        diagnostics_.Add(DiagnosticCode::kMissingKey, span,
                         absl::StrCat("the required key ", key.path, " is missing"));
    diagnostic.notes.push_back(absl::StrCat(key.path, ": ", key.key->doc()));
    diagnostic.fix = ExampleOf(key);
    if (IsRequiredSize(key)) absl::StrAppend(&diagnostic.fix, ", or name a model.preset");
  }

  const std::string& job_file_;
  ParsedJob& parsed_;
  DiagnosticList& diagnostics_;
};

}  // namespace

void FillKeys(const std::string& job_file, ParsedJob& parsed, DiagnosticList& diagnostics) {
  Filler(job_file, parsed, diagnostics).Run();
}

}  // namespace planc
