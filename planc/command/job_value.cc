#include "planc/command/job_value.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "schemas/job_value.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The message that holds the key, or nullptr when a section on the way to it is not given.
const Message* HolderOf(const proto::Job& job, const std::string& section) {
  const Message* message = &job;
  if (section.empty()) return message;
  const std::vector<std::string> names = absl::StrSplit(section, '.');
  for (const std::string& name : names) {
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || !message->GetReflection()->HasField(*message, field)) return nullptr;
    message = &message->GetReflection()->GetMessage(*message, field);
  }
  return message;
}

}  // namespace

std::string ValueText(const proto::Job& job, const JobKey& key) {
  const Message* holder = HolderOf(job, key.section);
  return holder == nullptr ? "unset" : FieldText(*holder, *key.field);
}

std::string OriginText(const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::kFile:
      return origin.line > 0 ? absl::StrCat(origin.file, ":", origin.line) : origin.file;
    case Origin::Kind::kSet:
      return "--set";
    case Origin::Kind::kPreset:
      return absl::StrCat("preset ", origin.file);
    case Origin::Kind::kDefault:
      return "default";
    case Origin::Kind::kDerived:
      return "derived";
  }
  return "?";
}

}  // namespace planc
