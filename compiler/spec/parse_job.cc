#include "compiler/spec/parse_job.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/spec/parse_value.h"
#include "compiler/spec/suggest.h"
#include "compiler/spec/yaml_reader.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

Origin OriginOf(const Node& node) {
  Origin origin;
  origin.kind = node.span.file == kSetFile ? Origin::Kind::kSet : Origin::Kind::kFile;
  origin.file = node.span.file;
  origin.line = node.span.line;
  origin.column = node.span.column;
  origin.length = node.span.length;
  if (node.kind == Node::Kind::kScalar) {
    origin.text = node.text;
  } else {
    std::vector<std::string> texts;
    for (const Node& item : node.items) texts.push_back(item.text);
    origin.text = absl::StrCat("[", absl::StrJoin(texts, ", "), "]");
  }
  return origin;
}

class Parser {
 public:
  Parser(ParsedJob& parsed, DiagnosticList& diagnostics)
      : parsed_(parsed), diagnostics_(diagnostics) {}

  void Section(const Node& node, const std::string& path, Message& message) {
    for (const Node::Entry& entry : node.entries) {
      const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(entry.key);
      if (field == nullptr) {
        UnknownKey(path, entry);
      } else if (IsSection(*field)) {
        Message* child = message.GetReflection()->MutableMessage(&message, field);
        SubSection(entry, JoinPath(path, entry.key), *child);
      } else {
        Leaf(entry, *FindJobKey(JoinPath(path, entry.key)), message);
      }
    }
  }

 private:
  void SubSection(const Node::Entry& entry, const std::string& path, Message& message) {
    parsed_.sections[path] = entry.key_span;
    if (entry.value.kind != Node::Kind::kMap) Excuse(path);
    if (entry.value.kind == Node::Kind::kNull) {
      Diagnostic& diagnostic = diagnostics_.Add(DiagnosticCode::kEmptyValue, entry.key_span,
                                                absl::StrCat("the section ", path, " is empty"));
      diagnostic.fix = "indent its keys below it, or remove the line";
      return;
    }
    if (entry.value.kind != Node::Kind::kMap) {
      Diagnostic& diagnostic =
          diagnostics_.Add(DiagnosticCode::kWrongType, entry.value.span,
                           absl::StrCat(path, " is a section with keys, but ",
                                        KindName(entry.value.kind), " is given"));
      const std::string with_colon =
          entry.value.kind == Node::Kind::kScalar ? WithColon(path, entry.value.text) : "";
      diagnostic.fix = with_colon.empty()
                           ? absl::StrCat("its keys stand below it, indented; `planc explain ",
                                          path, "` lists them")
                           : absl::StrCat("a colon is missing: write `", with_colon, "`");
      return;
    }
    Section(entry.value, path, message);
  }

  // The key or the keys of the section `path` are not reported as missing too.
  void Excuse(const std::string& path) {
    parsed_.excused.insert(path);
    for (const JobKey& key : AllJobKeys()) {
      if (absl::StartsWith(key.path, absl::StrCat(path, "."))) parsed_.excused.insert(key.path);
    }
  }

  void Leaf(const Node::Entry& entry, const JobKey& key, Message& message) {
    // A key with an error was given, so it is not reported as missing too.
    if (entry.value.kind == Node::Kind::kNull) {
      parsed_.excused.insert(key.path);
      return NoValue(entry, key);
    }
    const size_t errors_before = diagnostics_.ErrorCount();
    SetFromNode(key, entry.value, message, diagnostics_);
    if (diagnostics_.ErrorCount() == errors_before) {
      parsed_.origins[key.path] = OriginOf(entry.value);
    } else {
      parsed_.excused.insert(key.path);
    }
  }

  void NoValue(const Node::Entry& entry, const JobKey& key) {
    const std::string& word = entry.value.text;
    Diagnostic& diagnostic = diagnostics_.Add(
        DiagnosticCode::kEmptyValue, word.empty() ? entry.key_span : entry.value.span,
        absl::StrCat("the key ", key.path, " has no value",
                     word.empty() ? "" : absl::StrCat(": `", word, "` means none in YAML")));
    if (key.key->has_default_()) {
      diagnostic.fix = absl::StrCat("remove the line for the default, ", key.key->default_());
      if (key.key->has_example()) absl::StrAppend(&diagnostic.fix, ", or ", ExampleOf(key));
      return;
    }
    if (key.key->has_derived()) {
      diagnostic.fix = absl::StrCat("remove the line (unset: ", key.key->derived(), "), or ");
    }
    absl::StrAppend(&diagnostic.fix, ExampleOf(key));
  }

  // "steps 100" and "dp_shard=2", where a colon was forgotten, as "steps: 100"; "" for other texts.
  static std::string WithColon(const std::string& section, const std::string& text) {
    const size_t end = text.find_first_of("= ");
    if (end == std::string::npos) return "";
    const std::string name = text.substr(0, end);
    const size_t value = text.find_first_not_of("= ", end);
    const bool known = FindJobKey(JoinPath(section, name)) != nullptr;
    return known && value != std::string::npos ? absl::StrCat(name, ": ", text.substr(value)) : "";
  }

  // What an unknown key stands for and what to write instead; "" if nothing is known. The keys that
  // it stands for are excused.
  std::string Meaning(const std::string& section, const Node::Entry& entry) {
    const std::string with_colon = WithColon(section, entry.key);
    if (!with_colon.empty()) {
      Excuse(JoinPath(section, with_colon.substr(0, with_colon.find(':'))));
      return absl::StrCat("write `", with_colon, "`");
    }
    const std::vector<std::string> suggestions = SuggestKeys(section, entry.key);
    for (const std::string& path : suggestions) Excuse(path);
    const OtherName* other = FindOtherName(section, entry.key);
    if (other == nullptr) {
      if (suggestions.empty()) return "";
      return absl::StrCat("did you mean ", absl::StrJoin(suggestions, " or "), "?");
    }
    if (other->key.empty()) return other->note;
    const bool dotted = absl::StrContains(other->name, ".");
    const std::string called = absl::StrCat("`", dotted ? JoinPath(section, entry.key) : entry.key,
                                            "` is ", other->key, " here");
    if (!other->note.empty()) return absl::StrCat(called, ": ", other->note);
    const JobKey& key = *FindJobKey(other->key);
    const bool usable = entry.value.kind == Node::Kind::kScalar && IsValueOf(key, entry.value.text);
    if (!usable) return called;
    const std::string line =
        absl::StrCat(called, ": write `", key.field->name(), ": ", entry.value.text, "`");
    if (key.section == section) return line;
    return absl::StrCat(line, key.section.empty() ? " at the top of the file"
                                                  : absl::StrCat(" in section ", key.section));
  }

  void UnknownKey(const std::string& section, const Node::Entry& entry) {
    const std::string path = JoinPath(section, entry.key);
    Diagnostic& diagnostic = diagnostics_.Add(DiagnosticCode::kUnknownKey, entry.key_span,
                                              absl::StrCat("there is no key ", path));
    diagnostic.fix = Meaning(section, entry);
    const std::vector<std::string> meant = SuggestKeys(section, entry.key);
    const bool is_section = !meant.empty() && FindJobSection(meant.front()) != nullptr;
    if (is_section || (!diagnostic.fix.empty() && entry.value.entries.empty())) return;
    // A section of another program: its keys may be known.
    std::vector<std::string> meanings;
    for (const Node::Entry& inner : entry.value.entries) {
      const std::string meaning = Meaning(path, inner);
      if (meaning.empty()) continue;
      const bool named = absl::StartsWith(meaning, "`");
      meanings.push_back(named ? meaning : absl::StrCat("`", inner.key, "`: ", meaning));
    }
    if (!meanings.empty()) diagnostic.fix = absl::StrJoin(meanings, "; ");
    if (!diagnostic.fix.empty()) return;
    const JobSection* known = FindJobSection(section);
    std::vector<std::string> names;
    for (int index = 0; index < known->descriptor->field_count(); ++index) {
      names.push_back(known->descriptor->field(index)->name());
    }
    diagnostic.notes.push_back(
        absl::StrCat(section.empty() ? std::string("the job") : absl::StrCat("section ", section),
                     " has the keys ", absl::StrJoin(names, " ")));
  }

  ParsedJob& parsed_;
  DiagnosticList& diagnostics_;
};

}  // namespace

ParsedJob ParseJob(const Node& root, DiagnosticList& diagnostics) {
  ParsedJob parsed;
  Parser(parsed, diagnostics).Section(root, "", parsed.job);
  for (const auto& [path, origin] : parsed.origins) parsed.excused.erase(path);
  return parsed;
}

bool SetFromDefault(const JobKey& key, Message& section) {
  DiagnosticList problems;
  const std::optional<Node> node = ReadYaml("default", key.key->default_(), 0, problems);
  if (!node.has_value()) return false;
  SetFromNode(key, *node, section, problems);
  return !problems.HasErrors();
}

Span SpanOf(const Origin& origin) {
  if (origin.kind != Origin::Kind::kFile && origin.kind != Origin::Kind::kSet) return Span{};
  return Span{origin.file, origin.line, origin.column, origin.length};
}

}  // namespace planc
