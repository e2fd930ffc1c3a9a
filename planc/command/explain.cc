// planc explain: the meaning of a diagnostic code, of a key or of a section of the job file.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/spec/job_schema.h"
#include "compiler/spec/suggest.h"
#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/keys/key_text.h"

namespace planc {
namespace {

// "  name        text", with continuation lines below the text.
std::string Row(const std::string& name, const std::string& text) {
  constexpr size_t kNameColumns = 20;
  const size_t blanks = name.size() < kNameColumns ? kNameColumns - name.size() : 1;
  const std::string head = absl::StrCat("  ", name, std::string(blanks, ' '));
  return absl::StrCat(head, WrapText(text, static_cast<int>(head.size()), 2 + kNameColumns), "\n");
}

// "name: text" as the first line.
std::string Headline(const std::string& name, const std::string& text) {
  return absl::StrCat(name, ": ", WrapText(text, static_cast<int>(name.size()) + 2, 2), "\n");
}

std::string ExplainCode(const DiagnosticInfo& info) {
  return absl::StrCat(info.id, " ", SeverityText(info.severity), ": ", info.title, "\n",
                      Row("rule", info.rule), Row("why", info.why), Row("fix", info.fix));
}

std::string ExplainKey(const JobKey& key) {
  std::string text = Headline(key.path, key.key->doc());
  absl::StrAppend(&text, Row("type", TypeText(key)));
  if (!RangeText(key).empty()) absl::StrAppend(&text, Row("range", RangeText(key)));
  absl::StrAppend(&text, Row("unset", UnsetText(key)));
  if (key.key->has_example()) {
    absl::StrAppend(&text,
                    Row("example", absl::StrCat(key.field->name(), ": ", key.key->example())));
  }
  if (key.field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_ENUM) {
    for (const auto& [word, doc] : ChoiceDocs(*key.field->enum_type())) {
      if (!doc.empty()) absl::StrAppend(&text, Row("choice", absl::StrCat(word, ": ", doc)));
    }
  }
  if (key.key->convergence()) {
    absl::StrAppend(&text, Row("note", "a change alters the loss curve"));
  }
  return text;
}

std::string ExplainSection(const JobSection& section) {
  const std::string name = section.path.empty() ? "the job file" : section.path;
  std::string text = Headline(name, section.doc);
  for (const JobKey& key : AllJobKeys()) {
    if (key.section == section.path) absl::StrAppend(&text, Row(key.field->name(), key.key->doc()));
  }
  for (const JobSection& inner : AllJobSections()) {
    const bool inside = !inner.path.empty() &&
                        inner.path.substr(0, inner.path.rfind('.')) == section.path &&
                        inner.path.find('.') != std::string::npos;
    const bool top =
        section.path.empty() && !inner.path.empty() && inner.path.find('.') == std::string::npos;
    if (inside || top) absl::StrAppend(&text, Row(inner.path, inner.doc));
  }
  return text;
}

// Everything that `name` may mean; "" if nothing.
std::string Explain(const std::string& name) {
  if (const DiagnosticInfo* info = FindDiagnostic(name)) return ExplainCode(*info);
  if (const JobSection* section = FindJobSection(name); section != nullptr && !name.empty()) {
    return ExplainSection(*section);
  }
  if (const JobKey* key = FindJobKey(name)) return ExplainKey(*key);
  // The last part of a path is enough: "tp" for "mesh.tp".
  std::vector<std::string> texts;
  for (const JobKey& key : AllJobKeys()) {
    if (key.field->name() == name) texts.push_back(ExplainKey(key));
  }
  for (const JobSection& section : AllJobSections()) {
    if (section.path.size() > name.size() && !name.empty() &&
        section.path.substr(section.path.rfind('.') + 1) == name) {
      texts.push_back(ExplainSection(section));
    }
  }
  return absl::StrJoin(texts, "\n");
}

// The closest code or key, for a name that is neither.
std::string ClosestTo(const std::string& name) {
  const std::vector<std::string> keys = SuggestKeys("", name.substr(name.rfind('.') + 1));
  if (!keys.empty()) return absl::StrJoin(keys, " or ");
  std::vector<std::string> ids;
  for (const DiagnosticInfo& info : AllDiagnostics()) ids.push_back(info.id);
  return Nearest(absl::AsciiStrToUpper(name), ids);
}

}  // namespace

int RunExplain(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("explain", args);
  if (!flags.ok()) return UsageError("explain", flags.status(), err);
  if (flags->positional.size() != 1 || flags->positional[0].empty()) {
    return UsageError("explain", "one code or key is needed, such as PL0204, mesh.tp or mesh", err);
  }
  const std::string& name = flags->positional[0];
  const std::string text = Explain(name);
  if (text.empty()) {
    err << "planc explain: there is no diagnostic, key or section called " << name << "\n";
    const std::string closest = ClosestTo(name);
    if (!closest.empty()) err << "did you mean " << closest << "?\n";
    return kExitJobError;
  }
  out << text;
  return kExitOk;
}

}  // namespace planc
