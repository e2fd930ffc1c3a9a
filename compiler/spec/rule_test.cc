#include "compiler/spec/rule.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler/spec/job_schema.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The section of `job` that holds `key`.
Message* SectionOf(const JobKey& key, proto::Job* job) {
  Message* section = job;
  if (key.section.empty()) return section;
  for (const absl::string_view name : absl::StrSplit(key.section, '.')) {
    const FieldDescriptor* field = section->GetDescriptor()->FindFieldByName(std::string(name));
    section = section->GetReflection()->MutableMessage(section, field);
  }
  return section;
}

// Gives `key` some value of its type.
void Randomize(const JobKey& key, std::mt19937& random, proto::Job* job) {
  Message* section = SectionOf(key, job);
  const auto* access = section->GetReflection();
  const std::vector<int64_t> numbers = {1, 2, 3, 4, 6, 8, 64, 100};
  const int64_t number = numbers[random() % numbers.size()];
  access->ClearField(section, key.field);
  switch (key.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      if (!key.field->is_repeated()) return access->SetInt64(section, key.field, number);
      for (int64_t i = 0; i < number % 5; ++i) access->AddInt64(section, key.field, i);
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (!key.field->is_repeated()) return access->SetDouble(section, key.field, 0.5);
      for (int64_t i = 0; i < number % 4; ++i) access->AddDouble(section, key.field, 0.5);
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      return access->SetBool(section, key.field, number % 2 == 0);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* type = key.field->enum_type();
      const int index = 1 + static_cast<int>(random() % (type->value_count() - 1));
      return access->SetEnum(section, key.field, type->value(index));
    }
    default:
      if (key.field->is_repeated()) access->AddString(section, key.field, "optimizer");
  }
}

std::vector<Rule> AllRules() {
  std::vector<Rule> all;
  for (const std::vector<Rule>* rules : {&MeshRules(), &PipelineRules(), &ModelRules(),
                                         &TrainingRules(), &AvailabilityRules(), &EffectRules()}) {
    all.insert(all.end(), rules->begin(), rules->end());
  }
  return all;
}

// A rule runs as soon as the keys that it names have values, so it must not read others.
TEST(RuleTest, ReadsOnlyTheKeysThatItNames) {
  std::mt19937 random(1);
  std::map<std::string, Origin> origins;
  for (const JobKey& key : AllJobKeys()) origins[key.path].kind = Origin::Kind::kFile;
  for (const Rule& rule : AllRules()) {
    for (const std::string& path : rule.keys) ASSERT_NE(FindJobKey(path), nullptr) << path;
    int failed = 0;
    for (int round = 0; round < 300; ++round) {
      proto::Job job;
      for (const JobKey& key : AllJobKeys()) {
        if (!key.in_optional) Randomize(key, random, &job);
      }
      const std::optional<Finding> before = rule.check(FactsOf(job, origins));
      failed += before.has_value() ? 1 : 0;
      for (const JobKey& key : AllJobKeys()) {
        const bool named =
            std::find(rule.keys.begin(), rule.keys.end(), key.path) != rule.keys.end();
        if (!named && !key.in_optional) Randomize(key, random, &job);
      }
      const std::optional<Finding> after = rule.check(FactsOf(job, origins));
      ASSERT_EQ(before.has_value(), after.has_value()) << InfoOf(rule.code).id;
      if (!before.has_value()) continue;
      ASSERT_EQ(before->message, after->message) << InfoOf(rule.code).id;
    }
    RecordProperty(InfoOf(rule.code).id, failed);
  }
}

}  // namespace
}  // namespace planc
