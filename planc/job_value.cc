#include "planc/job_value.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "schemas/plan_text.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

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

std::string Single(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return RealText(reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(*reflection.GetEnum(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    default:
      return "?";
  }
}

std::string Element(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(reflection.GetRepeatedInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return RealText(reflection.GetRepeatedDouble(message, &field, index));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetRepeatedString(message, &field, index);
    default:
      return "?";
  }
}

}  // namespace

std::string ValueText(const proto::Job& job, const JobKey& key) {
  const Message* holder = HolderOf(job, key.section);
  if (holder == nullptr) return "unset";
  if (!key.field->is_repeated()) {
    return holder->GetReflection()->HasField(*holder, key.field) ? Single(*holder, *key.field)
                                                                 : "unset";
  }
  std::vector<std::string> elements;
  for (int i = 0; i < holder->GetReflection()->FieldSize(*holder, key.field); ++i) {
    elements.push_back(Element(*holder, *key.field, i));
  }
  return absl::StrCat("[", absl::StrJoin(elements, ", "), "]");
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
