#ifndef PLANC_SCHEMAS_JOB_SPEC_H_
#define PLANC_SCHEMAS_JOB_SPEC_H_

#include <cstdint>
#include <map>
#include <string>

#include "schemas/job.pb.h"

namespace planc {

// Where the value of one job key came from.
struct Origin {
  enum class Kind { kFile, kSet, kPreset, kDefault, kDerived };
  Kind kind = Kind::kDefault;
  std::string file;  // kFile: path as the user wrote it; kSet: "--set"; kPreset: preset name
  int line = 0;      // 1-based; 0 when there is no position
  int column = 0;    // 1-based, of the value
  int length = 0;    // characters of the value, for carets
  std::string text;  // the value as written
};

// What was asked, fully resolved: every key of job.proto that has a default, a preset value or a
// derivation is set, `include` and `--set` are applied, no mesh axis is `auto`, and paths are
// absolute or relative to the folder of the job file. Built once, by LoadJob in compiler/spec.
struct JobSpec {
  proto::Job job;
  std::map<std::string, Origin> origins;  // "mesh.tp" -> where its value came from
};

}  // namespace planc

#endif  // PLANC_SCHEMAS_JOB_SPEC_H_
