#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/catalog/devices.h"
#include "compiler/catalog/models.h"
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

// The values that run in this version.
Json RunningNumbers(const JobKey& key) {
  Json values = Json::array();
  for (const absl::string_view text : absl::StrSplit(key.key->runs(), ' ')) {
    int64_t value = 0;
    if (absl::SimpleAtoi(text, &value)) values.push_back(value);
  }
  return Json{{"enum", values}};
}

Json WholeType(const JobKey& key) {
  if (key.key->has_runs()) return RunningNumbers(key);
  const Json number = NumberType(key, "integer");
  const std::string pattern = SuffixPattern(key.key->unit());
  if (pattern.empty() && !key.key->auto_ok()) return number;
  Json forms = Json::array({number});
  if (!pattern.empty()) forms.push_back({{"type", "string"}, {"pattern", pattern}});
  if (key.key->auto_ok()) forms.push_back({{"const", "auto"}});
  return Json{{"anyOf", forms}};
}

Json TextType(const JobKey& key) {
  if (key.path == "model.preset") {
    Json names = Json::array();
    for (const ModelPreset& preset : ModelPresets()) names.push_back(preset.name);
    return Json{{"enum", names}};
  }
  if (key.path == "cluster.device") {
    Json names = Json::array();
    for (const DeviceSpec& device : Devices()) names.push_back(device.name);
    return Json{{"enum", names}};
  }
  Json schema{{"type", "string"}, {"minLength", 1}};
  if (key.path == "job") {
    schema["maxLength"] = 128;
    schema["pattern"] = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
  } else if (key.key->unit() == proto::UNIT_PATH || key.path == "checkpoint.resume") {
    schema["not"] = {{"pattern", "://|[*?\\x00-\\x1f]|\\$.|^~|\\{\\{"}};
  } else if (key.path == "checkpoint.allow_changes") {
    Json names = Json::array();
    for (const JobSection& section : AllJobSections()) {
      if (!section.path.empty()) names.push_back(section.path);
    }
    for (const JobKey& other : AllJobKeys()) names.push_back(other.path);
    return Json{{"enum", names}};
  }
  return schema;
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
      return Json{{"enum", ChoicesThatRun(key)}};
    default:
      return TextType(key);
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
    // Numbers with a default are as many as the default: two betas.
    if (key.field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE && key.key->has_default_()) {
      schema["minItems"] = schema["maxItems"] = DefaultOf(key).size();
    }
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
    if (!IsSection(field)) {
      properties[field.name()] = KeySchema(*FindJobKey(path));
      continue;
    }
    const JobSection& inner = *FindJobSection(path);
    properties[field.name()] = SectionSchema(inner);
    // The sections of families that do not run in this version.
    if (inner.optional) properties[field.name()]["not"] = Json::object();
  }
  return Json{{"type", "object"},
              {"description", section.doc},
              {"additionalProperties", false},
              {"properties", properties}};
}

// Rules between keys of one section, for any file.
Json PairOfAutoAxes() {
  Json pairs = Json::array();
  const std::vector<std::string> axes = {"pp", "dp_replicate", "dp_shard", "tp"};
  for (size_t a = 0; a < axes.size(); ++a) {
    for (size_t b = a + 1; b < axes.size(); ++b) {
      Json both{{"required", {axes[a], axes[b]}}};
      both["properties"][axes[a]] = {{"const", "auto"}};
      both["properties"][axes[b]] = {{"const", "auto"}};
      pairs.push_back(both);
    }
  }
  return Json{{"anyOf", pairs}};
}

// The required keys of a file that includes none.
Json RequiredKeys() {
  Json required;
  Json sizes = Json::array();
  for (const JobKey& key : AllJobKeys()) {
    if (key.in_optional || key.key->has_default_()) continue;
    const bool size = key.key->derived() == "from the preset";
    if (size) sizes.push_back(key.field->name());
    if (size || key.key->has_derived()) continue;
    if (key.section.empty()) {
      required["required"].push_back(key.path);
    } else {
      Json& section = required["properties"][key.section];
      section["required"].push_back(key.field->name());
    }
  }
  for (const auto& [section, keys] : required["properties"].items()) {
    required["required"].push_back(section);
  }
  required["required"].push_back("model");
  required["properties"]["model"]["anyOf"] =
      Json::array({Json{{"required", {"preset"}}}, Json{{"required", sizes}}});
  return required;
}

// Rules between keys that a schema can say; they hold in a file that includes none, because what
// an included file gives is not known to an editor.
Json RulesBetweenKeys() {
  return Json::parse(R"json([
    {"if": {"required": ["run"], "properties": {"run": {
         "required": ["eval_every_steps"],
         "properties": {"eval_every_steps": {"type": "integer", "minimum": 1}}}}},
     "then": {"required": ["data"],
         "properties": {"data": {"required": ["validation"],
                                 "properties": {"validation": {"minItems": 1}}}}}},
    {"if": {"required": ["data", "model"], "properties": {
         "data": {"required": ["format"], "properties": {"format": {"const": "bytes"}}},
         "model": {"required": ["vocab"]}}},
     "then": {"properties": {"model": {"properties": {
         "vocab": {"not": {"type": "integer", "maximum": 255}}}}}}},
    {"if": {"required": ["model"], "properties": {"model": {
         "required": ["family"],
         "properties": {"family": {"enum": ["llama", "qwen2", "qwen3"]}}}}},
     "then": {"properties": {"model": {"properties": {
         "head_dim": {"not": {"type": "integer", "not": {"multipleOf": 2}}}}}}}},
    {"if": {"required": ["parallelism"], "properties": {"parallelism": {
         "required": ["sequence_parallel"], "properties": {"sequence_parallel": {"const": true}}}}},
     "then": {"required": ["mesh"], "properties": {"mesh": {
         "required": ["tp"], "properties": {"tp": {"not": {"const": 1}}}}}}},
    {"if": {"required": ["precision"], "properties": {"precision": {
         "required": ["gradient_reduce", "compute"],
         "properties": {"compute": {"const": "fp32"}}}}},
     "then": {"properties": {"precision": {"properties": {
         "gradient_reduce": {"const": "fp32"}}}}}},
    {"if": {"required": ["parallelism"], "properties": {"parallelism": {
         "required": ["pipeline"], "properties": {"pipeline": {
             "required": ["schedule"],
             "properties": {"schedule": {"const": "interleaved_1f1b"}}}}}}},
     "then": {"required": ["mesh"], "properties": {
         "mesh": {"required": ["pp"], "properties": {"pp": {"not": {"const": 1}}}},
         "parallelism": {"properties": {"pipeline": {
             "required": ["virtual_stages"],
             "properties": {"virtual_stages": {"not": {"const": 1}}}}}}}},
     "else": {"properties": {"parallelism": {"properties": {"pipeline": {"properties": {
         "virtual_stages": {"const": 1}}}}}}}}
  ])json");
}

}  // namespace

std::string JobJsonSchema() {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "planc job file"},
              {"$comment",
               "Equations between keys, files that include others, and fragments are what only "
               "`planc check` can tell."}};
  schema.update(SectionSchema(*FindJobSection("")));
  schema["properties"]["include"] = {
      {"description",
       "A file, or several, whose keys come before those of this one: maps merge, lists and values "
       "are replaced."},
      {"anyOf", Json::array({Json{{"type", "string"}, {"minLength", 1}},
                             Json{{"type", "array"},
                                  {"items", {{"type", "string"}, {"minLength", 1}}},
                                  {"minItems", 1}}})}};
  schema["properties"]["mesh"]["not"] = PairOfAutoAxes();
  // Neither a file that includes others nor a fragment has to be a whole job.
  schema["if"] = Json::parse(R"json({"not": {"anyOf": [
    {"required": ["include"]},
    {"required": ["partial"], "properties": {"partial": {"const": true}}}]}})json");
  schema["then"] = RequiredKeys();
  schema["then"]["allOf"] = RulesBetweenKeys();
  return schema.dump(2) + "\n";
}

}  // namespace planc
