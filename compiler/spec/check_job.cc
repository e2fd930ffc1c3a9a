#include "compiler/spec/check_job.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/spec/job_schema.h"
#include "compiler/spec/node.h"
#include "compiler/spec/parse_job.h"
#include "compiler/spec/resolve_job.h"
#include "compiler/spec/validate_job.h"
#include "schemas/job_value.h"
#include "schemas/plan_text.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Written inside a plan file, where no line can be pointed at.
constexpr char kNoFile[] = "";

Node Scalar(std::string text) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.text = std::move(text);
  return node;
}

Node List(const Message& section, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *section.GetReflection();
  Node node;
  node.kind = Node::Kind::kSequence;
  for (int i = 0; i < reflection.FieldSize(section, &field); ++i) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        node.items.push_back(Scalar(absl::StrCat(reflection.GetRepeatedInt64(section, &field, i))));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        node.items.push_back(Scalar(RealText(reflection.GetRepeatedDouble(section, &field, i))));
        break;
      default:
        node.items.push_back(Scalar(reflection.GetRepeatedString(section, &field, i)));
    }
  }
  return node;
}

// The section as a job file would write it: what is unset is not there.
Node Written(const Message& section) {
  const google::protobuf::Reflection& reflection = *section.GetReflection();
  Node node;
  node.kind = Node::Kind::kMap;
  for (int i = 0; i < section.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *section.GetDescriptor()->field(i);
    const bool set = field.is_repeated() ? reflection.FieldSize(section, &field) > 0
                                         : reflection.HasField(section, &field);
    if (!set) continue;
    Node value;
    if (IsSection(field)) {
      value = Written(reflection.GetMessage(section, &field));
    } else {
      value = field.is_repeated() ? List(section, field) : Scalar(FieldText(section, field));
    }
    node.entries.push_back({field.name(), Span{}, std::move(value)});
  }
  return node;
}

// The section of `job` that holds the key; an empty one when it is unset.
const Message& SectionOf(const proto::Job& job, const std::string& path) {
  const Message* message = &job;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    message = &message->GetReflection()->GetMessage(
        *message, message->GetDescriptor()->FindFieldByName(path.substr(begin, end - begin)));
    begin = end + 1;
  }
  return *message;
}

}  // namespace

std::vector<std::string> CheckResolvedJob(const proto::Job& job) {
  DiagnosticList diagnostics;
  ParsedJob parsed = ParseJob(Written(job), diagnostics);
  FillKeys(kNoFile, parsed, diagnostics);
  const std::set<std::string> unsolved = DeriveKeys(parsed, diagnostics);
  ValidateJob(kNoFile, parsed, unsolved, diagnostics);

  std::vector<std::string> problems;
  for (const Diagnostic& diagnostic : diagnostics.entries()) {
    if (diagnostic.severity == Severity::kError) problems.push_back(diagnostic.message);
  }
  // Of a resolved job nothing is left to be filled in. `partial` speaks about a file.
  for (const JobKey& key : AllJobKeys()) {
    if (key.path == "partial") continue;
    const auto origin = parsed.origins.find(key.path);
    if (origin == parsed.origins.end() || origin->second.kind == Origin::Kind::kFile) continue;
    const std::string filled = FieldText(SectionOf(parsed.job, key.section), *key.field);
    if (filled != FieldText(SectionOf(job, key.section), *key.field)) {
      problems.push_back(absl::StrCat("the required key ", key.path, " is missing"));
    }
  }
  if (job.has_partial()) problems.push_back("partial is no key of a job that runs");
  return problems;
}

}  // namespace planc
