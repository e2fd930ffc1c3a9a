#include "runtime/checkpoint/job_changes.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/options.pb.h"

namespace planc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

using FieldPath = std::vector<const FieldDescriptor*>;

// The paths of all keys below `type`, which lies at `path`.
void CollectKeys(const Descriptor& type, const FieldPath& path, std::vector<FieldPath>* keys) {
  for (int index = 0; index < type.field_count(); ++index) {
    FieldPath inside = path;
    inside.push_back(type.field(index));
    const Descriptor* const section = type.field(index)->message_type();
    if (section == nullptr) {
      keys->push_back(inside);
    } else {
      CollectKeys(*section, inside, keys);
    }
  }
}

std::string NameOf(const FieldPath& path) {
  std::string name;
  for (const FieldDescriptor* const field : path) {
    name += (name.empty() ? "" : ".") + field->name();
  }
  return name;
}

// Gives the key a value that is not its default.
void Set(const FieldPath& path, proto::Job* job) {
  Message* message = job;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    message = message->GetReflection()->MutableMessage(message, path[i]);
  }
  const Reflection& reflection = *message->GetReflection();
  const FieldDescriptor* const field = path.back();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      field->is_repeated() ? reflection.AddInt64(message, field, 7)
                           : reflection.SetInt64(message, field, 7);
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      field->is_repeated() ? reflection.AddDouble(message, field, 0.25)
                           : reflection.SetDouble(message, field, 0.25);
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection.SetBool(message, field, true);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.SetEnumValue(message, field, 1);
      break;
    default:
      field->is_repeated() ? reflection.AddString(message, field, "text")
                           : reflection.SetString(message, field, "text");
  }
}

// The verdict about each key that matters, when it alone differs.
std::map<std::string, ChangeVerdict> Verdicts(const proto::Job& now) {
  std::vector<FieldPath> keys;
  CollectKeys(*proto::Job::descriptor(), {}, &keys);
  std::map<std::string, ChangeVerdict> verdicts;
  for (const FieldPath& path : keys) {
    proto::Job saved = now;
    Set(path, &saved);
    for (const JobChange& change : JobChanges(saved, now)) {
      EXPECT_EQ(change.key, NameOf(path));
      EXPECT_NE(change.saved, change.now);
      verdicts[change.key] = change.verdict;
    }
  }
  return verdicts;
}

TEST(JobChangesTest, EveryKeyHasItsVerdict) {
  const std::map<std::string, ChangeVerdict> verdicts = Verdicts(proto::Job());
  for (const auto& [key, verdict] : verdicts) {
    const std::string section = key.substr(0, key.find('.'));
    if (section == "model" || section == "optimizer" || section == "lr_schedule") {
      EXPECT_EQ(verdict, ChangeVerdict::kRefused) << key;
    } else if (section == "mesh" || section == "parallelism") {
      EXPECT_EQ(verdict, ChangeVerdict::kLayout) << key;
    }
  }
  EXPECT_EQ(verdicts.at("optimizer.lr"), ChangeVerdict::kRefused);
  EXPECT_EQ(verdicts.at("optimizer.betas"), ChangeVerdict::kRefused);
  EXPECT_EQ(verdicts.at("model.rope_theta"), ChangeVerdict::kRefused);
  EXPECT_EQ(verdicts.at("precision.optimizer_state"), ChangeVerdict::kRefused);
  EXPECT_EQ(verdicts.at("precision.compute"), ChangeVerdict::kNoticed);
  EXPECT_EQ(verdicts.at("precision.fp8.recipe"), ChangeVerdict::kNoticed);
  EXPECT_EQ(verdicts.at("batch.global"), ChangeVerdict::kNoticed);
  EXPECT_EQ(verdicts.at("data.train"), ChangeVerdict::kNoticed);
  EXPECT_EQ(verdicts.at("run.seed"), ChangeVerdict::kNoticed);
  EXPECT_EQ(verdicts.at("run.steps"), ChangeVerdict::kNoticed);
  EXPECT_EQ(verdicts.at("batch.micro"), ChangeVerdict::kLayout);
  EXPECT_EQ(verdicts.at("recompute"), ChangeVerdict::kLayout);
  for (const char* const key : {"job", "model.preset", "run.directory", "checkpoint.keep",
                                "data.validation", "cluster.nodes", "run.restarts"}) {
    EXPECT_EQ(verdicts.count(key), 0u) << key;
  }
}

TEST(JobChangesTest, AllowsKeysAndSections) {
  proto::Job now;
  now.mutable_checkpoint()->add_allow_changes("optimizer.lr");
  now.mutable_checkpoint()->add_allow_changes("lr_schedule");
  // No prefix of a name: it is neither a key nor a section.
  now.mutable_checkpoint()->add_allow_changes("optimizer.weight");
  const std::map<std::string, ChangeVerdict> verdicts = Verdicts(now);
  EXPECT_EQ(verdicts.at("optimizer.lr"), ChangeVerdict::kAllowed);
  EXPECT_EQ(verdicts.at("optimizer.weight_decay"), ChangeVerdict::kRefused);
  EXPECT_EQ(verdicts.at("lr_schedule.decay"), ChangeVerdict::kAllowed);
  EXPECT_EQ(verdicts.at("model.layers"), ChangeVerdict::kRefused);
  EXPECT_EQ(verdicts.at("run.steps"), ChangeVerdict::kNoticed);
}

TEST(JobChangesTest, ValuesAreSpelledAsInAJobFile) {
  proto::Job saved;
  proto::Job now;
  saved.mutable_optimizer()->set_lr(3e-4);
  saved.mutable_optimizer()->add_betas(0.9);
  saved.mutable_optimizer()->add_betas(0.95);
  saved.mutable_precision()->set_compute(proto::BF16);
  now.mutable_precision()->set_compute(proto::FP32);
  const std::vector<JobChange> changes = JobChanges(saved, now);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(ChangeText(changes[0]), "precision.compute is bf16 in the checkpoint, fp32 in the job");
  EXPECT_EQ(ChangeText(changes[1]), "optimizer.lr is 3e-04 in the checkpoint, unset in the job");
  EXPECT_EQ(ChangeText(changes[2]),
            "optimizer.betas is [0.9, 0.95] in the checkpoint, [] in the job");
}

TEST(JobChangesTest, MeshSizes) {
  proto::Mesh mesh;
  for (const auto set : {&proto::Mesh::set_pp, &proto::Mesh::set_dp_replicate,
                         &proto::Mesh::set_dp_shard, &proto::Mesh::set_cp, &proto::Mesh::set_tp}) {
    (mesh.*set)(1);
  }
  EXPECT_EQ(MeshSizesText(mesh), "one rank");
  mesh.set_pp(2);
  mesh.set_tp(4);
  EXPECT_EQ(MeshSizesText(mesh), "pp 2 tp 4 (8 ranks)");
}

// A run of 1000 steps that decays to its end, and one that is made longer or shorter.
TEST(JobChangesTest, TheEndOfTheDecayIsJudgedByItsEffect) {
  proto::Job saved;
  saved.mutable_optimizer()->set_lr(3e-4);
  saved.mutable_lr_schedule()->set_decay(proto::COSINE);
  saved.mutable_lr_schedule()->set_min_ratio(0.1);
  saved.mutable_run()->set_steps(1000);  // of before there was decay_steps
  proto::Job now = saved;
  now.mutable_run()->set_steps(2000);
  now.mutable_lr_schedule()->set_decay_steps(2000);
  const auto verdict = [&](int64_t step) {
    for (const JobChange& change : JobChanges(saved, now, step)) {
      if (change.key == "lr_schedule.decay_steps") return std::optional(change.verdict);
    }
    return std::optional<ChangeVerdict>();
  };
  EXPECT_EQ(verdict(1000), ChangeVerdict::kRefused) << "5.5-fold";
  EXPECT_EQ(RateChange(saved, now, 1000),
            "the learning rate of step 1001 is 0.000165, and 3e-05 with the checkpoint's job");
  EXPECT_EQ(verdict(10), ChangeVerdict::kNoticed) << "hardly another rate yet";
  now.mutable_checkpoint()->add_allow_changes("run.steps");
  EXPECT_EQ(verdict(1000), ChangeVerdict::kAllowed);
  now.mutable_checkpoint()->clear_allow_changes();
  now.mutable_lr_schedule()->set_decay_steps(1000);
  EXPECT_EQ(verdict(1000), std::nullopt) << "the curve of before";
  EXPECT_EQ(RateChange(saved, now, 1000), "");
  now.mutable_lr_schedule()->set_decay_steps(300);
  now.mutable_run()->set_steps(300);
  EXPECT_EQ(verdict(200), ChangeVerdict::kRefused);
  EXPECT_EQ(verdict(300), ChangeVerdict::kNoticed) << "no step is left";
  now.mutable_run()->set_steps(2000);
  saved.mutable_lr_schedule()->set_decay(proto::CONSTANT);
  now.mutable_lr_schedule()->set_decay(proto::CONSTANT);
  EXPECT_EQ(verdict(200), std::nullopt) << "a constant rate has no end of the decay";
}

}  // namespace
}  // namespace planc
