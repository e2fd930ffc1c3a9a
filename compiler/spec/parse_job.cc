#include "compiler/spec/parse_job.h"

#include <algorithm>
#include <utility>
#include <vector>

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
    if (entry.value.kind != Node::Kind::kMap) ExcuseKeysOf(path);
    if (entry.value.kind == Node::Kind::kNull) {
      Diagnostic& diagnostic = diagnostics_.Add(DiagnosticCode::kEmptyValue, entry.key_span,
                                                absl::StrCat("the section ", path, " is empty"));
      diagnostic.fix = "indent its keys below it, or remove the line";
      return;
    }
    if (entry.value.kind != Node::Kind::kMap) {
      diagnostics_.Add(DiagnosticCode::kWrongType, entry.value.span,
                       absl::StrCat(path, " is a section with keys, but ",
                                    KindName(entry.value.kind), " is given"));
      return;
    }
    Section(entry.value, path, message);
  }

  // The keys of a section that is no map are not reported as missing too.
  void ExcuseKeysOf(const std::string& section) {
    for (const JobKey& key : AllJobKeys()) {
      if (key.path.compare(0, section.size() + 1, section + ".") == 0) {
        parsed_.excused.insert(key.path);
      }
    }
  }

  void Leaf(const Node::Entry& entry, const JobKey& key, Message& message) {
    if (entry.value.kind == Node::Kind::kNull) {
      Diagnostic& diagnostic =
          diagnostics_.Add(DiagnosticCode::kEmptyValue, entry.key_span,
                           absl::StrCat("the key ", key.path, " has no value"));
      diagnostic.fix = ExampleOf(key);
      // It was given, so it is not reported as missing too.
      parsed_.excused.insert(key.path);
      return;
    }
    const size_t errors_before = diagnostics_.ErrorCount();
    SetFromNode(key, entry.value, message, diagnostics_);
    parsed_.origins[key.path] = OriginOf(entry.value);
    if (diagnostics_.ErrorCount() != errors_before) parsed_.excused.insert(key.path);
  }

  void UnknownKey(const std::string& section, const Node::Entry& entry) {
    const std::string path = JoinPath(section, entry.key);
    Diagnostic& diagnostic = diagnostics_.Add(DiagnosticCode::kUnknownKey, entry.key_span,
                                              absl::StrCat("there is no key ", path));
    const std::vector<std::string> suggestions = SuggestKeys(section, entry.key);
    if (!suggestions.empty()) {
      diagnostic.fix = absl::StrCat("did you mean ", absl::StrJoin(suggestions, " or "), "?");
      parsed_.excused.insert(suggestions.front());
      return;
    }
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
