#ifndef PLANC_COMPILER_SPEC_JOB_SCHEMA_H_
#define PLANC_COMPILER_SPEC_JOB_SCHEMA_H_

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "schemas/options.pb.h"

namespace planc {

// One key of the job file, as job.proto describes it.
struct JobKey {
  std::string path;          // "mesh.tp"
  std::string section;       // "mesh"; "" for keys at the top
  bool in_optional = false;  // inside a section that may be left out (model.moe)
  const google::protobuf::FieldDescriptor* field = nullptr;
  const proto::Key* key = nullptr;
};

// One section of the job file.
struct JobSection {
  std::string path;  // "parallelism.pipeline"; "" for the top
  std::string doc;
  bool optional = false;
  const google::protobuf::Descriptor* descriptor = nullptr;
};

// All keys that hold values, in the order of job.proto.
const std::vector<JobKey>& AllJobKeys();

// All sections, the top first, in the order of job.proto.
const std::vector<JobSection>& AllJobSections();

// The key or section at `path`, or nullptr.
const JobKey* FindJobKey(const std::string& path);
const JobSection* FindJobSection(const std::string& path);

// "a" joined to "b" by a dot, or "b" alone at the top.
std::string JoinPath(const std::string& section, const std::string& name);

inline bool IsSection(const google::protobuf::FieldDescriptor& field) {
  return field.type() == google::protobuf::FieldDescriptor::TYPE_MESSAGE;
}

// How an enum value is spelled in a job file; "" for values that cannot be written.
std::string EnumText(const google::protobuf::EnumValueDescriptor& value);

// All spellings of an enum, in the order of job.proto.
std::vector<std::string> EnumTexts(const google::protobuf::EnumDescriptor& type);

// The value spelled `text`, or nullptr.
const google::protobuf::EnumValueDescriptor* FindEnumValue(
    const google::protobuf::EnumDescriptor& type, const std::string& text);

// The choices of an enum key that run in this version, in the order of job.proto.
std::vector<std::string> ChoicesThatRun(const JobKey& key);

// The choice of `key` that other programs call `text` ("float32" for fp32); "" for none.
std::string ChoiceCalled(const JobKey& key, const std::string& text);

// What a key accepts, in words: "a whole number", "true or false", "a list of paths", ...
std::string TypeName(const JobKey& key);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_JOB_SCHEMA_H_
