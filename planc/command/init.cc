// planc init: a commented job file to begin with, for a published model or a Hugging Face folder.
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/catalog/models.h"
#include "compiler/spec/suggest.h"
#include "planc/commands.h"
#include "planc/exit_codes.h"
#include "planc/flags.h"
#include "planc/init_job.h"
#include "planc/load_plan.h"
#include "planc/text.h"
#include "runtime/checkpoint/huggingface/model_folder.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

absl::Status FromPreset(const std::string& name, NewJob* job) {
  const ModelPreset* const preset = FindModelPreset(name);
  if (preset == nullptr) {
    std::vector<std::string> names;
    for (const ModelPreset& known : ModelPresets()) names.push_back(known.name);
    const std::string nearest = Nearest(name, names);
    return absl::InvalidArgumentError(
        absl::StrCat("there is no model preset ", name,
                     nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?"),
                     "\nknown: ", absl::StrJoin(names, " ")));
  }
  job->name = preset->name;
  job->model.set_preset(preset->name);
  job->heading.push_back(absl::StrCat(
      "Trains ", preset->name, " (", CountText(static_cast<double>(preset->parameters)),
      " parameters) from the beginning on ", job->gpus, " x ", job->device, "."));
  return absl::OkStatus();
}

absl::Status FromFolder(const std::string& folder, NewJob* job) {
  PLANC_ASSIGN_OR_RETURN(job->model, ModelOfFolder(folder));
  std::error_code error;
  const std::string name = fs::absolute(folder, error).lexically_normal().filename().string();
  job->name = JobNameFrom(name.empty() || name == "." ? "imported" : name);
  job->resume = "start";
  job->heading = {
      absl::StrCat("Trains on from the weights of a Hugging Face folder, on ", job->gpus, " x ",
                   job->device, "."),
      "The weights become a checkpoint of step 0, beside this file, that checkpoint.resume names:",
      "  planc checkpoint import HUGGING_FACE_FOLDER start --job=FILE",
      "Once it has checkpoints of its own, set checkpoint.resume: auto to go on from the newest."};
  return absl::OkStatus();
}

absl::StatusOr<NewJob> ReadRequest(const Flags& flags) {
  if (!flags.positional.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", flags.positional[0], "` is not a flag: init takes flags only"));
  }
  if (flags.Has("--preset") == flags.Has("--from")) {
    return absl::InvalidArgumentError(
        "one of --preset=NAME and --from=HUGGING_FACE_FOLDER is needed");
  }
  NewJob job;
  job.device = flags.Get("--device");
  const std::string gpus = flags.Get("--gpus");
  if (!absl::SimpleAtoi(gpus, &job.gpus) || job.gpus < 1 || job.gpus > (int64_t{1} << 20)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--gpus `", gpus, "` is not a number from 1 to 1048576"));
  }
  const absl::Status model = flags.Has("--preset") ? FromPreset(flags.Get("--preset"), &job)
                                                   : FromFolder(flags.Get("--from"), &job);
  if (!model.ok()) return model;
  return job;
}

int CodeOf(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return kExitDoesNotFit;
  return ExitCodeOf(status);
}

}  // namespace

int RunInit(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("init", args);
  if (!flags.ok()) return UsageError("init", flags.status(), err);
  const absl::StatusOr<NewJob> request = ReadRequest(*flags);
  if (!request.ok()) return UsageError("init", request.status(), err);
  const auto fail = [&err](const absl::Status& status, int code) {
    err << Wrap(absl::StrCat("planc init: ", std::string(status.message())), 2) << "\n";
    return code;
  };
  const absl::StatusOr<std::string> text = NewJobText(*request);
  if (!text.ok()) return fail(text.status(), CodeOf(text.status()));
  const std::string file = flags->Get("--output");
  if (file.empty()) {
    out << *text;
    return kExitOk;
  }
  std::error_code error;
  if (fs::exists(file, error)) {
    return fail(absl::InvalidArgumentError(absl::StrCat(file, ": exists, and is not replaced")),
                kExitJobError);
  }
  const absl::Status written = WriteFile(file, *text);
  if (!written.ok()) return fail(written, ExitCodeOf(written));
  out << file << ": written; change the paths in it, then\n  planc check " << file << "\n";
  return kExitOk;
}

}  // namespace planc
