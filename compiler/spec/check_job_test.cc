// The job inside a plan file keeps the ranges and rules of job files: every key is cleared and set
// to values outside its range, by the descriptors of job.proto.
#include "compiler/spec/check_job.h"

#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/spec/job_schema.h"
#include "compiler/spec/load_job.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

proto::Job Resolved(const std::string& changes = "") {
  const std::string text = absl::StrCat(R"(job: sample
model: {family: llama, layers: 4, hidden: 64, heads: 4, ffn_hidden: 128, vocab: 256}
cluster: {gpus_per_node: 8, device: h100-sxm-80gb}
mesh: {pp: 2, dp_shard: 2, tp: 2}
batch: {global: 8, sequence: 32}
optimizer: {lr: 1e-3}
data: {train: [a.bin, ../b.bin], validation: [/c/d.bin]}
run: {steps: 10}
)",
                                        changes);
  LoadResult loaded = LoadJobText("folder/job.yaml", {{"folder/job.yaml", text}}, {});
  EXPECT_TRUE(loaded.ok);
  return loaded.spec.job;
}

Message& SectionOf(proto::Job& job, const std::string& path) {
  Message* message = &job;
  for (const absl::string_view name : absl::StrSplit(path, '.', absl::SkipEmpty())) {
    message = message->GetReflection()->MutableMessage(
        message, message->GetDescriptor()->FindFieldByName(std::string(name)));
  }
  return *message;
}

void SetNumber(Message& section, const FieldDescriptor& field, double value) {
  const google::protobuf::Reflection& reflection = *section.GetReflection();
  const bool real = field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
  if (field.is_repeated()) {
    real ? reflection.SetRepeatedDouble(&section, &field, 0, value)
         : reflection.SetRepeatedInt64(&section, &field, 0, static_cast<int64_t>(value));
  } else {
    real ? reflection.SetDouble(&section, &field, value)
         : reflection.SetInt64(&section, &field, static_cast<int64_t>(value));
  }
}

void ExpectRefused(const proto::Job& job, const std::string& path, const std::string& what) {
  const std::vector<std::string> problems = CheckResolvedJob(job);
  ASSERT_FALSE(problems.empty()) << path << " " << what << " is accepted";
  EXPECT_TRUE(absl::StrContains(absl::StrJoin(problems, "\n"), path))
      << path << " " << what << ": " << absl::StrJoin(problems, "\n");
}

// Keys that a resolved job may lack. All others are required.
const std::set<std::string> kMayBeUnset = {"model.preset", "data.validation",
                                           "checkpoint.allow_changes", "partial"};

TEST(CheckJobTest, ResolvedJobsPass) {
  for (const char* changes :
       {"", "recompute: full\n", "precision: {compute: fp32}\n",
        "checkpoint: {every_steps: 2, resume: never, allow_changes: [optimizer.lr]}\n"}) {
    const std::vector<std::string> problems = CheckResolvedJob(Resolved(changes));
    EXPECT_TRUE(problems.empty()) << absl::StrJoin(problems, "\n");
  }
}

TEST(CheckJobTest, EveryRequiredKeyIsRequired) {
  const proto::Job good = Resolved();
  int tried = 0;
  for (const JobKey& key : AllJobKeys()) {
    if (key.in_optional || kMayBeUnset.count(key.path) > 0) continue;
    proto::Job job = good;
    Message& section = SectionOf(job, key.section);
    section.GetReflection()->ClearField(&section, key.field);
    ExpectRefused(job, key.path, "cleared");
    ++tried;
  }
  EXPECT_GE(tried, 60);
  for (const JobSection& section : AllJobSections()) {
    if (section.path.empty() || section.optional) continue;
    proto::Job job = good;
    SectionOf(job, section.path).Clear();
    EXPECT_FALSE(CheckResolvedJob(job).empty()) << section.path << " may be cleared";
  }
  // Sections that may be left out have no key that may.
  for (const char* section : {"model.moe", "model.mla"}) {
    proto::Job job = good;
    SectionOf(job, section);
    ExpectRefused(job, section, "empty");
  }
}

TEST(CheckJobTest, EveryRangeIsARange) {
  const proto::Job good = Resolved();
  int tried = 0;
  for (const JobKey& key : AllJobKeys()) {
    if (key.in_optional) continue;
    const bool real = key.field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    if (!real && key.field->cpp_type() != FieldDescriptor::CPPTYPE_INT64) continue;
    std::set<double> values;
    const double step = real ? 1e-3 : 1;
    if (key.key->has_min()) values.insert(key.key->min() - step);
    if (key.key->above_min()) values.insert(key.key->min());
    if (key.key->has_max()) values.insert(key.key->max() + step);
    if (key.key->below_max()) values.insert(key.key->max());
    if (real) {
      values.insert({-std::numeric_limits<double>::infinity(), -1e300});
      proto::Job job = good;
      SetNumber(SectionOf(job, key.section), *key.field, std::nan(""));
      ExpectRefused(job, key.path, "nan");
      SetNumber(SectionOf(job, key.section), *key.field, std::numeric_limits<double>::infinity());
      ExpectRefused(job, key.path, "inf");
    }
    EXPECT_FALSE(values.empty()) << key.path << " has no range";
    for (const double value : values) {
      proto::Job job = good;
      SetNumber(SectionOf(job, key.section), *key.field, value);
      ExpectRefused(job, key.path, absl::StrCat(value));
      ++tried;
    }
  }
  EXPECT_GE(tried, 80);
}

TEST(CheckJobTest, EveryWordIsAWord) {
  const proto::Job good = Resolved();
  for (const JobKey& key : AllJobKeys()) {
    if (key.in_optional) continue;
    proto::Job job = good;
    Message& section = SectionOf(job, key.section);
    if (key.field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      section.GetReflection()->SetEnumValue(&section, key.field, 0);
      ExpectRefused(job, key.path, "without value");
    } else if (key.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      if (key.field->is_repeated()) {
        section.GetReflection()->AddString(&section, key.field, "a\nb");
      } else {
        section.GetReflection()->SetString(&section, key.field, "a\nb");
      }
      ExpectRefused(job, key.path, "with a line break");
    }
  }
}

TEST(CheckJobTest, RulesBetweenKeysHold) {
  proto::Job job = Resolved();
  job.mutable_batch()->set_global(7);
  ExpectRefused(job, "batch.global", "7");
  job = Resolved();
  job.mutable_mesh()->set_tp(4);
  ExpectRefused(job, "tp 4", "of a world of 8");
  job = Resolved();
  job.mutable_optimizer()->add_betas(0.5);
  ExpectRefused(job, "optimizer.betas", "with three entries");
  job = Resolved();
  job.mutable_parallelism()->mutable_pipeline()->set_stage_layers(0, 3);
  ExpectRefused(job, "stage_layers", "that do not sum up");
  job = Resolved();
  job.mutable_mesh()->set_cp(2);
  ExpectRefused(job, "mesh.cp", "2");
}

}  // namespace
}  // namespace planc
