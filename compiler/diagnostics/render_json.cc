#include "compiler/diagnostics/render_json.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "compiler/diagnostics/columns.h"
#include "compiler/diagnostics/render_text.h"
#include "nlohmann/json.hpp"

namespace planc {
namespace {

// Keys keep the order in which they are written.
using Json = nlohmann::ordered_json;

Json PlaceJson(const Span& span) {
  return Json{
      {"file", span.file}, {"line", span.line}, {"column", span.column}, {"length", span.length}};
}

// Job files may hold any bytes; what is not UTF-8 is replaced.
std::string Dump(const Json& json) {
  return json.dump(/*indent=*/2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) +
         "\n";
}

// A path as a URI reference: every byte that RFC 3986 reserves or excludes is escaped.
std::string UriOf(const std::string& path) {
  std::string uri = absl::StartsWith(path, "/") ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || absl::StrContains("-._~/", c)) {
      uri += c;
    } else {
      absl::StrAppend(&uri, absl::StrFormat("%%%02X", byte));
    }
  }
  return uri;
}

// UTF-16 units of the characters of `line` before the one at `column` (from 1); characters beyond
// the end count one.
int Utf16Units(const std::string& line, int column) {
  const std::vector<Character> characters = CharactersOf(line);
  int units = 0;
  for (int i = 0; i < column - 1; ++i) {
    const auto at = static_cast<size_t>(i);
    units += at < characters.size() ? characters[at].utf16_units : 1;
  }
  return units;
}

// "--set mesh.tp=4", as far as the argument is known.
std::string OverrideText(const Span& span, const SourceTexts& sources) {
  const std::optional<std::string> argument = SourceLine(sources, kSetFile, span.line);
  return argument.has_value() ? absl::StrCat("--set ", *argument) : std::string("--set");
}

Json SarifLocation(const Span& span, const std::string& label, const SourceTexts& sources) {
  Json location;
  if (span.file == kSetFile) {
    location["logicalLocations"] =
        Json::array({{{"name", "--set"}, {"fullyQualifiedName", OverrideText(span, sources)}}});
  } else {
    Json physical{{"artifactLocation", {{"uri", UriOf(span.file)}}}};
    if (span.line > 0) {
      const std::string line = SourceLine(sources, span.file, span.line).value_or("");
      const int begin = std::max(span.column, 1);
      physical["region"] = {{"startLine", span.line},
                            {"startColumn", Utf16Units(line, begin) + 1},
                            {"endColumn", Utf16Units(line, begin + std::max(span.length, 1)) + 1}};
    }
    location["physicalLocation"] = physical;
  }
  if (!label.empty()) location["message"] = {{"text", label}};
  return location;
}

Json SarifResult(const Diagnostic& diagnostic, const SourceTexts& sources) {
  std::string text = diagnostic.message;
  for (const std::string& note : diagnostic.notes) absl::StrAppend(&text, "\nnote: ", note);
  if (!diagnostic.fix.empty()) absl::StrAppend(&text, "\nhelp: ", diagnostic.fix);
  Json result{{"ruleId", InfoOf(diagnostic.code).id},
              {"level", SeverityText(diagnostic.severity)},
              {"message", {{"text", text}}},
              {"locations", Json::array()}};
  if (!diagnostic.span.file.empty()) {
    result["locations"].push_back(SarifLocation(diagnostic.span, "", sources));
  }
  for (const LabeledSpan& mark : diagnostic.secondary) {
    if (!mark.span.file.empty()) {
      result["relatedLocations"].push_back(SarifLocation(mark.span, mark.label, sources));
    }
  }
  return result;
}

// Workflow commands end at a line break; properties also at commas and colons.
std::string EscapeGithub(const std::string& text, bool is_property) {
  std::string result = absl::StrReplaceAll(text, {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}});
  if (is_property) result = absl::StrReplaceAll(result, {{":", "%3A"}, {",", "%2C"}});
  return result;
}

}  // namespace

std::string RenderJson(const DiagnosticList& list) {
  Json all = Json::array();
  for (const Diagnostic& diagnostic : list.entries()) {
    Json entry{{"code", InfoOf(diagnostic.code).id},
               {"severity", SeverityText(diagnostic.severity)},
               {"message", diagnostic.message}};
    entry.update(PlaceJson(diagnostic.span));
    entry["label"] = diagnostic.label;
    entry["secondary"] = Json::array();
    for (const LabeledSpan& mark : diagnostic.secondary) {
      Json place = PlaceJson(mark.span);
      place["label"] = mark.label;
      entry["secondary"].push_back(place);
    }
    entry["notes"] = diagnostic.notes;
    entry["fix"] = diagnostic.fix;
    all.push_back(entry);
  }
  return Dump(Json{{"version", 1},
                   {"errors", list.ErrorCount()},
                   {"warnings", list.WarningCount()},
                   {"diagnostics", all}});
}

std::string RenderSarif(const DiagnosticList& list, const SourceTexts& sources) {
  Json rules = Json::array();
  Json results = Json::array();
  std::set<DiagnosticCode> seen;
  for (const Diagnostic& diagnostic : list.entries()) {
    results.push_back(SarifResult(diagnostic, sources));
    if (!seen.insert(diagnostic.code).second) continue;
    const DiagnosticInfo& info = InfoOf(diagnostic.code);
    rules.push_back({{"id", info.id},
                     {"shortDescription", {{"text", info.title}}},
                     {"fullDescription", {{"text", absl::StrCat(info.rule, " ", info.why)}}},
                     {"help", {{"text", info.fix}}},
                     {"defaultConfiguration", {{"level", SeverityText(info.severity)}}}});
  }
  Json run;
  run["tool"]["driver"] = {{"name", "planc"}, {"rules", rules}};
  run["columnKind"] = "utf16CodeUnits";
  run["results"] = results;
  return Dump(Json{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                   {"version", "2.1.0"},
                   {"runs", Json::array({run})}});
}

std::string RenderGithub(const DiagnosticList& list, const SourceTexts& sources) {
  std::string text;
  for (const Diagnostic& diagnostic : list.entries()) {
    const Span& span = diagnostic.span;
    std::string message = diagnostic.message;
    absl::StrAppend(&text, "::", SeverityText(diagnostic.severity), " ");
    if (span.file == kSetFile) {
      message = absl::StrCat(OverrideText(span, sources), ": ", message);
    } else if (!span.file.empty()) {
      absl::StrAppend(&text, "file=", EscapeGithub(span.file, true), ",");
    }
    if (span.line > 0 && span.file != kSetFile) {
      absl::StrAppend(&text, "line=", span.line, ",col=", span.column,
                      ",endColumn=", span.column + std::max(span.length, 1), ",");
    }
    if (!diagnostic.fix.empty()) absl::StrAppend(&message, "\nhelp: ", diagnostic.fix);
    absl::StrAppend(&text, "title=", InfoOf(diagnostic.code).id, "::", EscapeGithub(message, false),
                    "\n");
  }
  return text;
}

}  // namespace planc
