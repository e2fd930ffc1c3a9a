#include "compiler/spec/parse_value.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/spec/include.h"
#include "compiler/spec/scalar.h"
#include "compiler/spec/suggest.h"

namespace planc {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Reads single values of one key into one field.
class ValueReader {
 public:
  ValueReader(const JobKey& key, Message& section, DiagnosticList& diagnostics)
      : key_(key), section_(section), diagnostics_(diagnostics) {}

  void Read(const Node& node) {
    if (!key_.field->is_repeated()) return One(node);
    if (node.kind != Node::Kind::kSequence) return WrongType(node);
    // A list that may be left out may also be empty.
    const bool may_be_empty = key_.key->has_default_() || key_.key->has_derived();
    if (node.items.empty() && !may_be_empty) {
      Diagnostic& diagnostic = Add(DiagnosticCode::kEmptyList, node, "is an empty list");
      diagnostic.fix = ExampleOf(key_);
      return;
    }
    for (const Node& item : node.items) One(item);
  }

 private:
  void One(const Node& node) {
    if (node.kind != Node::Kind::kScalar) return WrongType(node);
    switch (key_.field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return Whole(node);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return Real(node);
      case FieldDescriptor::CPPTYPE_BOOL:
        return Boolean(node);
      case FieldDescriptor::CPPTYPE_ENUM:
        return Word(node);
      default:
        return Text(node);
    }
  }

  void Whole(const Node& node) {
    int64_t value = 0;
    if (key_.key->auto_ok() && node.text == "auto") return StoreWhole(0);
    if (node.quoted) return WrongType(node);
    if (auto error = ParseWhole(node.text, key_.key->unit(), value)) return Refuse(node, *error);
    if (!InRange(static_cast<double>(value))) return OutOfRange(node);
    StoreWhole(value);
  }

  void Real(const Node& node) {
    double value = 0;
    if (node.quoted) return WrongType(node);
    if (auto error = ParseReal(node.text, value)) return Refuse(node, *error);
    if (!InRange(value)) return OutOfRange(node);
    if (key_.field->is_repeated()) {
      section_.GetReflection()->AddDouble(&section_, key_.field, value);
    } else {
      section_.GetReflection()->SetDouble(&section_, key_.field, value);
    }
  }

  void Boolean(const Node& node) {
    if (node.quoted || (node.text != "true" && node.text != "false")) return WrongType(node);
    section_.GetReflection()->SetBool(&section_, key_.field, node.text == "true");
  }

  void Word(const Node& node) {
    const EnumValueDescriptor* value = FindEnumValue(*key_.field->enum_type(), node.text);
    if (value != nullptr) return section_.GetReflection()->SetEnum(&section_, key_.field, value);
    const std::vector<std::string> words = EnumTexts(*key_.field->enum_type());
    Diagnostic& diagnostic =
        Add(DiagnosticCode::kUnknownChoice, node, absl::StrCat("cannot be ", Quote(node.text)));
    const std::string nearest = Nearest(node.text, words);
    if (!nearest.empty()) diagnostic.fix = absl::StrCat("did you mean ", nearest, "?");
    diagnostic.notes.push_back(absl::StrCat(key_.path, " is one of ", absl::StrJoin(words, " ")));
  }

  void Text(const Node& node) {
    const bool control = std::any_of(node.text.begin(), node.text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (node.text.empty() || control) {
      Add(DiagnosticCode::kBadText, node, control ? "has control characters" : "is an empty text");
      return;
    }
    std::string value = node.text;
    if (key_.key->unit() == proto::UNIT_PATH) value = PathFrom(node.span.file, value);
    if (key_.field->is_repeated()) {
      section_.GetReflection()->AddString(&section_, key_.field, std::move(value));
    } else {
      section_.GetReflection()->SetString(&section_, key_.field, std::move(value));
    }
  }

  void StoreWhole(int64_t value) {
    if (key_.field->is_repeated()) {
      section_.GetReflection()->AddInt64(&section_, key_.field, value);
    } else {
      section_.GetReflection()->SetInt64(&section_, key_.field, value);
    }
  }

  bool InRange(double value) const {
    const proto::Key& key = *key_.key;
    if (key.has_min() && (key.above_min() ? value <= key.min() : value < key.min())) return false;
    if (key.has_max() && (key.below_max() ? value >= key.max() : value > key.max())) return false;
    return true;
  }

  // "KEY WHAT" at the value.
  Diagnostic& Add(DiagnosticCode code, const Node& node, const std::string& what) {
    return diagnostics_.Add(code, node.span, absl::StrCat(key_.path, " ", what));
  }

  void OutOfRange(const Node& node) {
    Add(DiagnosticCode::kOutOfRange, node,
        absl::StrCat("must be ", RangeOf(key_), ", but is ", node.text));
  }

  void Refuse(const Node& node, const ScalarError& error) {
    Add(error.code, node, error.message).fix = error.fix;
  }

  void WrongType(const Node& node) {
    std::string given = KindName(node.kind);
    if (node.kind == Node::Kind::kScalar) given = Quote(node.text);
    Diagnostic& diagnostic = Add(DiagnosticCode::kWrongType, node,
                                 absl::StrCat("is ", TypeName(key_), ", but ", given, " is given"));
    diagnostic.fix = ExampleOf(key_);
  }

  // A quoted and bounded copy of what was written.
  static std::string Quote(const std::string& text) {
    constexpr size_t kLongest = 60;
    std::string clean = text.substr(0, kLongest);
    std::replace_if(
        clean.begin(), clean.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    return absl::StrCat("\"", clean, text.size() > kLongest ? "..." : "", "\"");
  }

  const JobKey& key_;
  Message& section_;
  DiagnosticList& diagnostics_;
};

}  // namespace

void SetFromNode(const JobKey& key, const Node& node, Message& section,
                 DiagnosticList& diagnostics) {
  section.GetReflection()->ClearField(&section, key.field);
  ValueReader(key, section, diagnostics).Read(node);
}

std::string ExampleOf(const JobKey& key) {
  std::string text = key.key->has_example() ? key.key->example() : key.key->default_();
  if (text.empty() && key.field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    text = EnumTexts(*key.field->enum_type()).front();
  }
  if (text.empty()) return "";
  return absl::StrCat("write for example `", key.field->name(), ": ", text, "`");
}

std::string RangeOf(const JobKey& key) {
  const bool whole = key.field->cpp_type() == FieldDescriptor::CPPTYPE_INT64;
  const auto format = [whole](double bound) {
    return whole ? absl::StrCat(static_cast<int64_t>(bound)) : FormatReal(bound);
  };
  std::vector<std::string> parts;
  if (key.key->has_min()) {
    parts.push_back(absl::StrCat(key.key->above_min() ? "> " : ">= ", format(key.key->min())));
  }
  if (key.key->has_max()) {
    parts.push_back(absl::StrCat(key.key->below_max() ? "< " : "<= ", format(key.key->max())));
  }
  return absl::StrJoin(parts, " and ");
}

}  // namespace planc
