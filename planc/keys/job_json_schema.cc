#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/spec/job_schema.h"
#include "compiler/spec/parse_job.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"
#include "planc/keys/job_reference.h"
#include "planc/keys/key_text.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using Json = nlohmann::ordered_json;

// Text forms of a whole number, which YAML reads as a string.
std::string SuffixPattern(proto::Unit unit) {
  switch (unit) {
    case proto::UNIT_BYTES:
      return "^[0-9]+(\\.[0-9]+)?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$";
    case proto::UNIT_SECONDS:
      return "^[0-9]+(\\.[0-9]+)?[smhd]$";
    case proto::UNIT_NONE:
    case proto::UNIT_PATH:
      return "";
    default:
      return "^[0-9]+(\\.[0-9]+)?(k|M|G|Ki|Mi|Gi)$";
  }
}

// A bound as a whole number where it is one.
Json Bound(double value) {
  const auto whole = static_cast<int64_t>(value);
  if (static_cast<double>(whole) == value) return whole;
  return value;
}

Json NumberType(const JobKey& key, const char* type) {
  Json schema{{"type", type}};
  if (key.key->has_min()) {
    schema[key.key->above_min() ? "exclusiveMinimum" : "minimum"] = Bound(key.key->min());
  }
  if (key.key->has_max()) {
    schema[key.key->below_max() ? "exclusiveMaximum" : "maximum"] = Bound(key.key->max());
  }
  return schema;
}

Json WholeType(const JobKey& key) {
  const Json number = NumberType(key, "integer");
  const std::string pattern = SuffixPattern(key.key->unit());
  if (pattern.empty() && !key.key->auto_ok()) return number;
  Json forms = Json::array({number});
  if (!pattern.empty()) forms.push_back({{"type", "string"}, {"pattern", pattern}});
  if (key.key->auto_ok()) forms.push_back({{"const", "auto"}});
  return Json{{"anyOf", forms}};
}

Json ScalarType(const JobKey& key) {
  switch (key.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return WholeType(key);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberType(key, "number");
    case FieldDescriptor::CPPTYPE_BOOL:
      return Json{{"type", "boolean"}};
    case FieldDescriptor::CPPTYPE_ENUM:
      return Json{{"enum", EnumTexts(*key.field->enum_type())}};
    default:
      return Json{{"type", "string"}, {"minLength", 1}};
  }
}

// One value of a field; `index` is -1 for a field that is no list.
Json ValueOf(const Message& message, const FieldDescriptor* field, int index) {
  const auto* access = message.GetReflection();
  const bool list = index >= 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return list ? access->GetRepeatedInt64(message, field, index)
                  : access->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return list ? access->GetRepeatedDouble(message, field, index)
                  : access->GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return access->GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(*access->GetEnum(message, field));
    default:
      return list ? access->GetRepeatedString(message, field, index)
                  : access->GetString(message, field);
  }
}

// The default of a key as JSON, read as a job file's value is.
Json DefaultOf(const JobKey& key) {
  const std::unique_ptr<Message> section(
      MessageFactory::generated_factory()->GetPrototype(key.field->containing_type())->New());
  if (!SetFromDefault(key, *section)) return Json();
  if (!key.field->is_repeated()) return ValueOf(*section, key.field, -1);
  Json values = Json::array();
  for (int index = 0; index < section->GetReflection()->FieldSize(*section, key.field); ++index) {
    values.push_back(ValueOf(*section, key.field, index));
  }
  return values;
}

Json KeySchema(const JobKey& key) {
  Json schema = ScalarType(key);
  if (key.field->is_repeated()) {
    schema = Json{{"type", "array"}, {"items", schema}};
    if (!key.key->has_default_() && !key.key->has_derived()) schema["minItems"] = 1;
  }
  schema["description"] = key.key->doc();
  if (key.key->has_default_()) {
    schema["default"] = DefaultOf(key);
  } else {
    absl::StrAppend(schema["description"].get_ptr<std::string*>(), " Unset: ", UnsetText(key), ".");
  }
  return schema;
}

Json SectionSchema(const JobSection& section) {
  Json properties = Json::object();
  for (int index = 0; index < section.descriptor->field_count(); ++index) {
    const FieldDescriptor& field = *section.descriptor->field(index);
    const std::string path = JoinPath(section.path, field.name());
    properties[field.name()] =
        IsSection(field) ? SectionSchema(*FindJobSection(path)) : KeySchema(*FindJobKey(path));
  }
  return Json{{"type", "object"},
              {"description", section.doc},
              {"additionalProperties", false},
              {"properties", properties}};
}

}  // namespace

std::string JobJsonSchema() {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "planc job file"},
              {"$comment",
               "Required keys may come from an included file, so that only `planc check` can tell "
               "which are missing."}};
  schema.update(SectionSchema(*FindJobSection("")));
  schema["properties"]["include"] = {
      {"description",
       "A file, or several, whose keys come before those of this one: maps merge, lists and values "
       "are replaced."},
      {"anyOf",
       Json::array({Json{{"type", "string"}},
                    Json{{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}}})}};
  return schema.dump(2) + "\n";
}

}  // namespace planc
