#include "planc/keys/key_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/spec/parse_value.h"

namespace planc {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

std::string SuffixText(proto::Unit unit) {
  switch (unit) {
    case proto::UNIT_COUNT:
      return "count";
    case proto::UNIT_TOKENS:
      return "tokens";
    case proto::UNIT_SEQUENCES:
      return "sequences";
    case proto::UNIT_STEPS:
      return "steps";
    case proto::UNIT_BYTES:
      return "bytes (KiB MiB GiB TiB kB MB GB TB)";
    case proto::UNIT_SECONDS:
      return "duration (s m h d)";
    default:
      return "whole number";
  }
}

}  // namespace

std::string TypeText(const JobKey& key) {
  std::string text = TypeName(key);
  if (key.field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    text = absl::StrJoin(EnumTexts(*key.field->enum_type()), ", ");
  } else if (key.field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 && !key.field->is_repeated()) {
    text = SuffixText(key.key->unit());
  }
  if (key.key->auto_ok()) absl::StrAppend(&text, " or auto");
  return text;
}

std::string RangeText(const JobKey& key) { return RangeOf(key); }

std::string UnsetText(const JobKey& key) {
  if (key.key->has_default_()) return absl::StrCat(key.key->default_(), " (default)");
  if (key.key->has_derived()) return key.key->derived();
  return "required";
}

std::vector<std::pair<std::string, std::string>> ChoiceDocs(const EnumDescriptor& type) {
  std::vector<std::pair<std::string, std::string>> docs;
  for (int index = 0; index < type.value_count(); ++index) {
    const std::string word = EnumText(*type.value(index));
    if (word.empty()) continue;
    docs.emplace_back(word, type.value(index)->options().GetExtension(proto::value_doc));
  }
  return docs;
}

}  // namespace planc
