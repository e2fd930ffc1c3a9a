#include "compiler/diagnostics/render_json.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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

Json SarifLocation(const Span& span, const std::string& label) {
  Json physical{{"artifactLocation", {{"uri", span.file}}}};
  if (span.line > 0) {
    physical["region"] = {{"startLine", span.line},
                          {"startColumn", std::max(span.column, 1)},
                          {"endColumn", std::max(span.column, 1) + std::max(span.length, 1)}};
  }
  Json location{{"physicalLocation", physical}};
  if (!label.empty()) location["message"] = {{"text", label}};
  return location;
}

Json SarifResult(const Diagnostic& diagnostic) {
  std::string text = diagnostic.message;
  for (const std::string& note : diagnostic.notes) absl::StrAppend(&text, "\nnote: ", note);
  if (!diagnostic.fix.empty()) absl::StrAppend(&text, "\nhelp: ", diagnostic.fix);
  Json result{{"ruleId", InfoOf(diagnostic.code).id},
              {"level", SeverityText(diagnostic.severity)},
              {"message", {{"text", text}}},
              {"locations", Json::array({SarifLocation(diagnostic.span, "")})}};
  for (const LabeledSpan& mark : diagnostic.secondary) {
    if (!mark.span.file.empty()) {
      result["relatedLocations"].push_back(SarifLocation(mark.span, mark.label));
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

std::string RenderSarif(const DiagnosticList& list) {
  Json rules = Json::array();
  Json results = Json::array();
  std::set<DiagnosticCode> seen;
  for (const Diagnostic& diagnostic : list.entries()) {
    results.push_back(SarifResult(diagnostic));
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
  run["results"] = results;
  return Dump(Json{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                   {"version", "2.1.0"},
                   {"runs", Json::array({run})}});
}

std::string RenderGithub(const DiagnosticList& list) {
  std::string text;
  for (const Diagnostic& diagnostic : list.entries()) {
    const Span& span = diagnostic.span;
    absl::StrAppend(&text, "::", SeverityText(diagnostic.severity),
                    " file=", EscapeGithub(span.file, true));
    if (span.line > 0) {
      absl::StrAppend(&text, ",line=", span.line, ",col=", span.column,
                      ",endColumn=", span.column + std::max(span.length, 1));
    }
    std::string message = diagnostic.message;
    if (!diagnostic.fix.empty()) absl::StrAppend(&message, "\nhelp: ", diagnostic.fix);
    absl::StrAppend(&text, ",title=", InfoOf(diagnostic.code).id,
                    "::", EscapeGithub(message, false), "\n");
  }
  return text;
}

}  // namespace planc
