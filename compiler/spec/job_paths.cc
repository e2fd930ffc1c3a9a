#include "compiler/spec/job_paths.h"

#include <filesystem>
#include <system_error>

namespace planc {
namespace {

namespace fs = std::filesystem;

// The value of key `key`, relative to the folder of the job file.
std::string Related(const fs::path& folder, const std::map<std::string, Origin>& origins,
                    const std::string& key, const std::string& value) {
  const auto origin = origins.find(key);
  // A path that stands in the text as it is now was given as an absolute one, or needs no change.
  const bool verbatim =
      origin != origins.end() && origin->second.text.find(value) != std::string::npos;
  const fs::path path(value);
  if (path.is_absolute() && (verbatim || folder.is_relative())) return value;
  fs::path related;
  if (path.is_absolute() == folder.is_absolute()) related = path.lexically_relative(folder);
  std::error_code error;
  if (related.empty()) {
    related = fs::absolute(path, error).lexically_relative(fs::absolute(folder, error));
  }
  return error || related.empty() ? value : related.string();
}

}  // namespace

void RelateToJobFile(const std::string& job_path, const std::map<std::string, Origin>& origins,
                     proto::Job& job) {
  fs::path folder = fs::path(job_path).parent_path();
  if (folder.empty()) folder = ".";
  const auto relate = [&](const std::string& key, std::string* value) {
    *value = Related(folder, origins, key, *value);
  };
  for (std::string& file : *job.mutable_data()->mutable_train()) relate("data.train", &file);
  for (std::string& file : *job.mutable_data()->mutable_validation()) {
    relate("data.validation", &file);
  }
  const auto derived = [&](const std::string& key) {
    const auto origin = origins.find(key);
    return origin != origins.end() && origin->second.kind == Origin::Kind::kDerived;
  };
  // Derived folders are named relative to the job file from the start.
  if (!derived("run.directory")) relate("run.directory", job.mutable_run()->mutable_directory());
  if (derived("checkpoint.directory")) {
    job.mutable_checkpoint()->set_directory(job.run().directory() + "/checkpoints");
  } else {
    relate("checkpoint.directory", job.mutable_checkpoint()->mutable_directory());
  }
  if (job.checkpoint().initial() != "none") {
    relate("checkpoint.initial", job.mutable_checkpoint()->mutable_initial());
  }
  const std::string& resume = job.checkpoint().resume();
  if (resume != "auto" && resume != "never") {
    relate("checkpoint.resume", job.mutable_checkpoint()->mutable_resume());
  }
}

}  // namespace planc
