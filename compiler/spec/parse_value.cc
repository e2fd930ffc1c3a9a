#include "compiler/spec/parse_value.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/spec/include.h"
#include "compiler/spec/scalar.h"
#include "compiler/spec/suggest.h"
#include "compiler/spec/unexpanded.h"
#include "compiler/spec/value_fix.h"
#include "compiler/spec/yaml_reader.h"

namespace planc {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Reads single values of one key into one field.
class ValueReader {
 public:
  // With `look_for_fix`, problems come with what to write instead.
  ValueReader(const JobKey& key, bool look_for_fix, Message& section, DiagnosticList& diagnostics)
      : key_(key), look_for_fix_(look_for_fix), section_(section), diagnostics_(diagnostics) {}

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
    const std::vector<std::string> words = ChoicesThatRun(key_);
    Diagnostic& diagnostic =
        Add(DiagnosticCode::kUnknownChoice, node, absl::StrCat("cannot be ", Quote(node.text)));
    std::string meant = ChoiceCalled(key_, node.text);
    if (meant.empty()) meant = absl::StrJoin(NearestNames(node.text, words), " or ");
    if (!meant.empty()) diagnostic.fix = absl::StrCat("did you mean ", meant, "?");
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
    const bool is_path = key_.key->unit() == proto::UNIT_PATH;
    if (is_path || key_.path == "checkpoint.resume") {
      const std::optional<Unexpanded> problem = FindUnexpanded(value);
      if (problem.has_value()) {
        Add(DiagnosticCode::kNotExpanded, node,
            absl::StrCat("is ", Quote(value), ", but ", problem->what))
            .fix = problem->fix;
        return;
      }
    }
    if (is_path) value = PathFrom(node.span.file, value);
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
    Diagnostic& diagnostic = Add(DiagnosticCode::kOutOfRange, node,
                                 absl::StrCat("must be ", RangeOf(key_), ", but is ", node.text));
    if (key_.field->cpp_type() != FieldDescriptor::CPPTYPE_INT64 || key_.field->is_repeated()) {
      return;
    }
    // The nearest bound, where it is a choice rather than a limit against mistakes.
    constexpr double kSmall = 64;
    const bool low = absl::StartsWith(node.text, "-") || node.text == "0";
    const double bound = low ? key_.key->min() : key_.key->max();
    if (bound > kSmall || (!low && !key_.key->has_max())) return;
    diagnostic.proposals.push_back({{key_.path, absl::StrCat(static_cast<int64_t>(bound))}});
  }

  void Refuse(const Node& node, const ScalarError& error) {
    std::string fix = look_for_fix_ ? ValueFix(key_, node) : "";
    if (fix.empty()) fix = error.fix;
    Add(error.code, node, error.message).fix = fix;
  }

  void WrongType(const Node& node) {
    std::string given = KindName(node.kind);
    if (node.kind == Node::Kind::kScalar) given = Quote(node.text);
    Diagnostic& diagnostic = Add(DiagnosticCode::kWrongType, node,
                                 absl::StrCat("is ", TypeName(key_), ", but ", given, " is given"));
    if (look_for_fix_) diagnostic.fix = ValueFix(key_, node);
    if (diagnostic.fix.empty()) diagnostic.fix = ExampleOf(key_);
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
  const bool look_for_fix_;
  Message& section_;
  DiagnosticList& diagnostics_;
};

}  // namespace

void SetFromNode(const JobKey& key, const Node& node, Message& section,
                 DiagnosticList& diagnostics) {
  section.GetReflection()->ClearField(&section, key.field);
  const size_t errors_before = diagnostics.ErrorCount();
  ValueReader(key, /*look_for_fix=*/true, section, diagnostics).Read(node);
  // Of a list with one bad entry nothing is kept.
  if (diagnostics.ErrorCount() != errors_before) {
    section.GetReflection()->ClearField(&section, key.field);
  }
}

bool IsValueOf(const JobKey& key, const std::string& text) {
  DiagnosticList problems;
  const std::optional<Node> node = ReadYaml("value", text, 0, problems);
  if (!node.has_value() || node->kind == Node::Kind::kNull) return false;
  const std::unique_ptr<Message> section(google::protobuf::MessageFactory::generated_factory()
                                             ->GetPrototype(key.field->containing_type())
                                             ->New());
  ValueReader(key, /*look_for_fix=*/false, *section, problems).Read(*node);
  return !problems.HasErrors();
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
