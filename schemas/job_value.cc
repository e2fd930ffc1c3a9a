#include "schemas/job_value.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schemas/options.pb.h"
#include "schemas/plan_text.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

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
      return reflection.GetEnum(message, &field)->options().GetExtension(proto::text);
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

std::string FieldText(const Message& section, const FieldDescriptor& field) {
  const Reflection& reflection = *section.GetReflection();
  if (!field.is_repeated()) {
    return reflection.HasField(section, &field) ? Single(section, field) : "unset";
  }
  std::vector<std::string> elements;
  for (int i = 0; i < reflection.FieldSize(section, &field); ++i) {
    elements.push_back(Element(section, field, i));
  }
  return absl::StrCat("[", absl::StrJoin(elements, ", "), "]");
}

}  // namespace planc
