#include "compiler/diagnostics/diagnostic.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace planc {

const std::vector<DiagnosticInfo>& AllDiagnostics() {
  static const auto* const kAll = new std::vector<DiagnosticInfo>{
#define PLANC_DIAGNOSTIC(number, name, severity, title, rule, why, fix) \
  {DiagnosticCode::name,                                                \
   absl::StrFormat("PL%04d", number),                                   \
   #name,                                                               \
   Severity::severity,                                                  \
   title,                                                               \
   rule,                                                                \
   why,                                                                 \
   fix},
#include "compiler/diagnostics/diagnostics.def"
#undef PLANC_DIAGNOSTIC
  };
  return *kAll;
}

const DiagnosticInfo& InfoOf(DiagnosticCode code) {
  const auto& all = AllDiagnostics();
  // Every enumerator has a row: both come from the same table.
  return *std::find_if(all.begin(), all.end(),
                       [code](const DiagnosticInfo& info) { return info.code == code; });
}

const DiagnosticInfo* FindDiagnostic(const std::string& id) {
  const std::string upper = absl::AsciiStrToUpper(id);
  for (const DiagnosticInfo& info : AllDiagnostics()) {
    if (info.id == upper) return &info;
  }
  return nullptr;
}

Diagnostic& DiagnosticList::Add(DiagnosticCode code, Span span, std::string message) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.severity = InfoOf(code).severity;
  diagnostic.span = std::move(span);
  diagnostic.message = std::move(message);
  entries_.push_back(std::move(diagnostic));
  return entries_.back();
}

void DiagnosticList::Append(Diagnostic diagnostic) { entries_.push_back(std::move(diagnostic)); }

void DiagnosticList::Append(const DiagnosticList& other) {
  entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
}

void DiagnosticList::Sort() {
  std::map<std::string, size_t> file_order;
  for (const Diagnostic& entry : entries_) file_order.emplace(entry.span.file, file_order.size());
  const auto key = [&file_order](const Diagnostic& entry) {
    return std::make_tuple(file_order.at(entry.span.file), entry.span.line, entry.span.column,
                           static_cast<int>(entry.code));
  };
  std::stable_sort(entries_.begin(), entries_.end(),
                   [&key](const Diagnostic& a, const Diagnostic& b) { return key(a) < key(b); });
  const auto same = [&key](const Diagnostic& a, const Diagnostic& b) {
    return key(a) == key(b) && a.message == b.message;
  };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
}

size_t DiagnosticList::ErrorCount() const {
  return static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(),
                    [](const Diagnostic& entry) { return entry.severity == Severity::kError; }));
}

size_t DiagnosticList::WarningCount() const { return entries_.size() - ErrorCount(); }

std::optional<std::string> SourceLine(const SourceTexts& sources, const std::string& file,
                                      int line) {
  const auto found = sources.find(file);
  if (found == sources.end() || line < 1) return std::nullopt;
  const std::string& text = found->second;
  size_t begin = 0;
  for (int current = 1; current < line; ++current) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) return std::nullopt;
    ++begin;
  }
  const size_t end = text.find('\n', begin);
  std::string result =
      text.substr(begin, end == std::string::npos ? std::string::npos : end - begin);
  if (!result.empty() && result.back() == '\r') result.pop_back();
  return result;
}

std::string PlaceOf(const Span& span) {
  if (span.line == 0) return span.file;
  if (span.file == kSetFile) {
    return absl::StrCat("command line, --set number ", span.line, ", column ", span.column);
  }
  return absl::StrCat(span.file, ":", span.line, ":", span.column);
}

}  // namespace planc
