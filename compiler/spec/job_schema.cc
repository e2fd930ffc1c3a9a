#include "compiler/spec/job_schema.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "schemas/job.pb.h"

namespace planc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

struct Tables {
  std::vector<JobKey> keys;
  std::vector<JobSection> sections;
};

void Collect(const Descriptor& type, const std::string& path, bool in_optional, Tables& tables) {
  JobSection section;
  section.path = path;
  section.doc = type.options().GetExtension(proto::section_doc);
  section.optional = type.options().GetExtension(proto::optional_section);
  section.descriptor = &type;
  in_optional = in_optional || section.optional;
  tables.sections.push_back(section);
  for (int index = 0; index < type.field_count(); ++index) {
    const FieldDescriptor& field = *type.field(index);
    const std::string field_path = JoinPath(path, field.name());
    if (IsSection(field)) {
      Collect(*field.message_type(), field_path, in_optional, tables);
      continue;
    }
    JobKey key;
    key.path = field_path;
    key.section = path;
    key.in_optional = in_optional;
    key.field = &field;
    key.key = &field.options().GetExtension(proto::key);
    tables.keys.push_back(key);
  }
}

const Tables& AllTables() {
  static const Tables* const kTables = [] {
    auto* tables = new Tables();
    Collect(*proto::Job::descriptor(), "", /*in_optional=*/false, *tables);
    return tables;
  }();
  return *kTables;
}

std::string ScalarTypeName(const JobKey& key) {
  switch (key.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "one word";
    case FieldDescriptor::CPPTYPE_STRING:
      return key.key->unit() == proto::UNIT_PATH ? "a path" : "a text";
    default:
      break;
  }
  switch (key.key->unit()) {
    case proto::UNIT_BYTES:
      return "a size";
    case proto::UNIT_SECONDS:
      return "a duration";
    default:
      return "a whole number";
  }
}

}  // namespace

const std::vector<JobKey>& AllJobKeys() { return AllTables().keys; }

const std::vector<JobSection>& AllJobSections() { return AllTables().sections; }

const JobKey* FindJobKey(const std::string& path) {
  for (const JobKey& key : AllJobKeys()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

const JobSection* FindJobSection(const std::string& path) {
  for (const JobSection& section : AllJobSections()) {
    if (section.path == path) return &section;
  }
  return nullptr;
}

std::string JoinPath(const std::string& section, const std::string& name) {
  return section.empty() ? name : absl::StrCat(section, ".", name);
}

std::string EnumText(const EnumValueDescriptor& value) {
  return value.options().GetExtension(proto::text);
}

std::vector<std::string> EnumTexts(const EnumDescriptor& type) {
  std::vector<std::string> texts;
  for (int index = 0; index < type.value_count(); ++index) {
    const std::string text = EnumText(*type.value(index));
    if (!text.empty()) texts.push_back(text);
  }
  return texts;
}

const EnumValueDescriptor* FindEnumValue(const EnumDescriptor& type, const std::string& text) {
  if (text.empty()) return nullptr;
  for (int index = 0; index < type.value_count(); ++index) {
    if (EnumText(*type.value(index)) == text) return type.value(index);
  }
  return nullptr;
}

std::vector<std::string> ChoicesThatRun(const JobKey& key) {
  const std::vector<std::string> all = EnumTexts(*key.field->enum_type());
  if (!key.key->has_runs()) return all;
  const std::vector<std::string> runs = absl::StrSplit(key.key->runs(), ' ');
  std::vector<std::string> texts;
  for (const std::string& text : all) {
    if (std::find(runs.begin(), runs.end(), text) != runs.end()) texts.push_back(text);
  }
  return texts;
}

std::string ChoiceCalled(const JobKey& key, const std::string& text) {
  std::string wanted = absl::AsciiStrToLower(text);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  for (const std::string& choice : ChoicesThatRun(key)) {
    const EnumValueDescriptor* value = FindEnumValue(*key.field->enum_type(), choice);
    const std::string synonyms = value->options().GetExtension(proto::value_synonyms);
    for (const absl::string_view synonym : absl::StrSplit(synonyms, ' ', absl::SkipEmpty())) {
      if (synonym == wanted) return choice;
    }
  }
  return "";
}

std::string TypeName(const JobKey& key) {
  const std::string name = ScalarTypeName(key);
  if (!key.field->is_repeated()) return name;
  if (key.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    return key.key->unit() == proto::UNIT_PATH ? "a list of paths" : "a list of texts";
  }
  if (key.field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) return "a list of numbers";
  return "a list of whole numbers";
}

}  // namespace planc
