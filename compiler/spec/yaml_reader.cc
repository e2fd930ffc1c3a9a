#include "compiler/spec/yaml_reader.h"

#include <algorithm>
#include <istream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/diagnostics/columns.h"
#include "compiler/spec/yaml_syntax.h"
#include "schemas/counted.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace planc {
namespace {

// Thrown by the handler to leave the parser; never leaves this file.
struct StopReading {};

// Builds the node tree from parser events. Containers under construction are on a stack.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, const std::string& text, int line_offset,
              DiagnosticList& diagnostics)
      : file_(std::move(file)),
        lines_(absl::StrSplit(text, '\n')),
        line_offset_(line_offset),
        diagnostics_(diagnostics) {}

  void OnDocumentStart(const YAML::Mark& mark) override { document_start_ = mark; }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    Node node;
    node.text = WordAt(mark);
    node.span = SpanAt(mark, std::max(1, static_cast<int>(node.text.size())));
    Finish(std::move(node), /*is_null=*/true);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Report(DiagnosticCode::kAnchorOrAlias, SpanAt(mark, 1),
           "YAML aliases are not used in job files");
    Node node;
    node.kind = Node::Kind::kScalar;
    node.span = SpanAt(mark, 1);
    Finish(std::move(node), /*is_null=*/false);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    Node node;
    node.kind = Node::Kind::kScalar;
    node.text = value;
    // yaml-cpp gives plain scalars the tag "?" and quoted or block scalars "!".
    node.quoted = tag == "!";
    node.span =
        SpanAt(mark, CharacterCount(value.substr(0, value.find('\n'))) + (node.quoted ? 2 : 0));
    Finish(std::move(node), /*is_null=*/false);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Node::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(Node::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

  Span SpanAt(const YAML::Mark& mark, int length) const {
    Span span;
    span.file = file_;
    span.line = mark.line + 1 + line_offset_;
    // yaml-cpp counts bytes.
    const std::string line = LineAt(mark);
    span.column = CharacterCount(line.substr(
                      0, std::min(static_cast<size_t>(std::max(mark.column, 0)), line.size()))) +
                  1;
    span.length = std::max(length, 1);
    return span;
  }

  void Report(DiagnosticCode code, Span span, std::string message) {
    diagnostics_.Add(code, std::move(span), std::move(message));
  }

  const YAML::Mark& document_start() const { return document_start_; }
  Node TakeRoot() { return std::move(root_); }

 private:
  std::string LineAt(const YAML::Mark& mark) const {
    const auto line = static_cast<size_t>(std::max(mark.line, 0));
    return line < lines_.size() ? lines_[line] : std::string();
  }

  // `~` or `null` as it is written at a place where YAML finds no value.
  std::string WordAt(const YAML::Mark& mark) const {
    const std::string line = LineAt(mark);
    const auto begin = static_cast<size_t>(std::max(mark.column, 0));
    if (begin >= line.size()) return "";
    const std::string word = line.substr(begin, line.find_first_of(" \t\r,]}#", begin) - begin);
    const bool null = word == "~" || absl::EqualsIgnoreCase(word, "null");
    return null ? word : "";
  }

  // A container whose end was not seen yet.
  struct Frame {
    Node node;
    bool has_key = false;  // a map's key was read, its value was not
    bool drop = false;     // the pending key was refused: its value is dropped
    std::string key;
    Span key_span;
  };

  void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == 0) return;
    Report(DiagnosticCode::kAnchorOrAlias, SpanAt(mark, 1),
           "YAML anchors are not used in job files");
  }

  void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    Report(DiagnosticCode::kTag, SpanAt(mark, 1),
           absl::StrCat("YAML tags are not used in job files, found ", tag));
  }

  void Open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    if (stack_.size() >= static_cast<size_t>(kMaxNesting)) {
      Report(DiagnosticCode::kTooDeep, SpanAt(mark, 1),
             absl::StrCat("values are nested more than ", kMaxNesting, " levels deep"));
      throw StopReading();
    }
    Frame frame;
    frame.node.kind = kind;
    frame.node.span = SpanAt(mark, 1);
    stack_.push_back(std::move(frame));
  }

  void Close() {
    Node node = std::move(stack_.back().node);
    stack_.pop_back();
    Finish(std::move(node), /*is_null=*/false);
  }

  // Hands a complete value to the container it is in.
  void Finish(Node node, bool is_null) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.node.kind == Node::Kind::kSequence) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.has_key) {
      TakeKey(frame, node);
    } else {
      frame.has_key = false;
      if (frame.drop) return;
      // An empty value has no place of its own.
      if (is_null && node.text.empty()) node.span = frame.key_span;
      frame.node.entries.push_back({std::move(frame.key), frame.key_span, std::move(node)});
    }
  }

  void TakeKey(Frame& frame, const Node& node) {
    frame.has_key = true;
    frame.drop = true;
    if (node.kind != Node::Kind::kScalar || node.text.empty()) {
      Report(DiagnosticCode::kBadKey, node.span,
             absl::StrCat("a key must be plain text, but this one is ", KindName(node.kind)));
      return;
    }
    if (node.text == "<<" && !node.quoted) {
      Report(DiagnosticCode::kMergeKey, node.span, "the merge key << is not used in job files");
      return;
    }
    for (const Node::Entry& entry : frame.node.entries) {
      if (entry.key != node.text) continue;
      Diagnostic& diagnostic =
          diagnostics_.Add(DiagnosticCode::kDuplicateKey, node.span,
                           absl::StrCat("the key ", node.text, " is given twice in this section"));
      diagnostic.secondary.push_back({entry.key_span, "first given here"});
      return;
    }
    frame.drop = false;
    frame.key = node.text;
    frame.key_span = node.span;
  }

  const std::string file_;
  const std::vector<std::string> lines_;
  const int line_offset_;
  DiagnosticList& diagnostics_;
  YAML::Mark document_start_;
  std::vector<Frame> stack_;
  Node root_;
};

// Runs the parser; the only place where exceptions occur. Returns where and why it stopped.
std::optional<YAML::Exception> Parse(const std::string& text, TreeBuilder& builder) {
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return std::nullopt;
    // A second document is reported, not read.
    DiagnosticList ignored;
    TreeBuilder second("", text, 0, ignored);
    if (parser.HandleNextDocument(second)) {
      builder.Report(DiagnosticCode::kMultipleDocuments, builder.SpanAt(second.document_start(), 1),
                     "the file holds more than one YAML document");
    }
  } catch (const StopReading&) {
  } catch (const YAML::Exception& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Node> ReadYaml(const std::string& file, const std::string& text, int line_offset,
                             DiagnosticList& diagnostics) {
  const size_t errors_before = diagnostics.ErrorCount();
  // Of a file that is too large, whole lines: a token file is better called that than large.
  const bool too_large = text.size() > kMaxFileBytes;
  CheckIsText(file, too_large ? text.substr(0, text.rfind('\n', kMaxFileBytes)) : text,
              diagnostics);
  if (diagnostics.ErrorCount() != errors_before) return std::nullopt;
  if (too_large) {
    diagnostics.Add(DiagnosticCode::kFileTooLarge, Span{file, 0, 0, 0},
                    absl::StrCat("the file has ", Counted(text.size(), "byte"),
                                 "; a job file has at most ", kMaxFileBytes));
    return std::nullopt;
  }
  CheckYamlText(file, text, line_offset, diagnostics);
  if (diagnostics.ErrorCount() != errors_before) return std::nullopt;
  TreeBuilder builder(file, text, line_offset, diagnostics);
  const std::optional<YAML::Exception> stopped = Parse(text, builder);
  // What was found before the reader stopped is often its consequence.
  if (stopped.has_value() && diagnostics.ErrorCount() == errors_before) {
    ReportSyntaxError(file, text, line_offset, stopped->mark.line, stopped->mark.column,
                      stopped->msg, diagnostics);
  }
  if (diagnostics.ErrorCount() != errors_before) return std::nullopt;
  return builder.TakeRoot();
}

}  // namespace planc
