#include "runtime/checkpoint/data_changes.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/data_json.h"

namespace planc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A checkpoint after `step` steps of 8 sequences of 16 tokens, as it was before positions.
Manifest OldManifest(int64_t step) {
  Manifest manifest;
  manifest.step = step;
  manifest.job.mutable_batch()->set_global(8);
  manifest.job.mutable_batch()->set_sequence(16);
  manifest.job.mutable_run()->set_seed(5);
  return manifest;
}

TEST(DataChangesTest, OlderCheckpointsAreWhereTheirStepsLead) {
  const DataPosition position = PositionIn(OldManifest(30), 40 * 16 + 1);
  EXPECT_EQ(position, Advanced(FirstPosition(40, 5), 240, 16));
  std::vector<std::string> notices;
  proto::Job job = OldManifest(30).job;
  job.mutable_batch()->set_global(4);
  const auto next =
      PositionAfter(OldManifest(30), job, DataChange::kUnknown, 40 * 16 + 1, &notices);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->samples, 240);
  EXPECT_EQ(next->tokens, 240 * 16);
  EXPECT_THAT(notices, IsEmpty());
}

TEST(DataChangesTest, StepsAndBatchesThatMakeNoSenseAreRefused) {
  std::vector<std::string> notices;
  const proto::Job job = OldManifest(1).job;
  for (const int64_t step : {int64_t{-1}, INT64_MAX, INT64_MAX / 8, int64_t{1} << 50}) {
    EXPECT_EQ(
        PositionAfter(OldManifest(step), job, DataChange::kSame, 1000, &notices).status().code(),
        absl::StatusCode::kDataLoss)
        << step;
  }
  Manifest manifest = OldManifest(1);
  manifest.job.mutable_batch()->set_sequence(INT64_MAX);
  EXPECT_EQ(PositionAfter(manifest, job, DataChange::kSame, 1000, &notices).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(DataChangesTest, OtherTrainingDataAreRefusedInARunAndNoticedBesides) {
  const auto write = [](const std::string& text) {
    std::ofstream(testing::TempDir() + "changes.txt", std::ios::binary) << text;
  };
  proto::Job job;
  job.mutable_data()->set_format(proto::BYTES);
  job.mutable_data()->add_train("changes.txt");
  write("0123456789");
  const auto then = IdentifyData(job, testing::TempDir());
  ASSERT_TRUE(then.ok()) << then.status();
  const auto check = [&](bool in_run) {
    ResumeCheck found;
    EXPECT_TRUE(AddDataChanges(&*then, job, testing::TempDir(), in_run, &found).ok());
    return found;
  };
  EXPECT_THAT(check(true).changes, IsEmpty());
  EXPECT_TRUE(check(true).SameBits());
  write("0123456789a");
  EXPECT_EQ(check(true).data, DataChange::kAppended);
  ASSERT_EQ(check(true).changes.size(), 1u);
  EXPECT_EQ(check(true).changes[0].verdict, ChangeVerdict::kNoticed);
  EXPECT_FALSE(check(true).SameBits());
  write("0123456788");
  EXPECT_EQ(check(true).changes.at(0).verdict, ChangeVerdict::kRefused);
  EXPECT_EQ(check(false).changes.at(0).verdict, ChangeVerdict::kNoticed);
  EXPECT_FALSE(check(false).SameBits());
  job.mutable_checkpoint()->add_allow_changes("data");
  EXPECT_EQ(check(true).changes.at(0).verdict, ChangeVerdict::kAllowed);
  EXPECT_THAT(check(true).changes.at(0).saved, HasSubstr("changes.txt with 10 tokens"));
}

TEST(DataChangesTest, WhatAManifestSaysOfTheDataIsReadBackAndJudged) {
  const DataPosition position = Advanced(FirstPosition(40, -5), 50, 16);
  const DataIdentity identity = {{{"a \"b\"", 7, 14, 64, 0xfedcba9876543210}}, {}};
  Json json = PositionJson(position);
  AddIdentity(identity, &json);
  DataPosition read_position;
  DataIdentity read_identity;
  ASSERT_TRUE(ReadPosition(json, &read_position) && ReadIdentity(json, &read_identity));
  EXPECT_EQ(read_position, position);
  EXPECT_EQ(ChecksumOf(read_identity), ChecksumOf(identity));
  EXPECT_EQ(read_identity.train[0].file, "a \"b\"");
  const auto refused = [&](void (*change)(Json*)) {
    Json changed = json;
    change(&changed);
    DataPosition into;
    DataIdentity files;
    return !ReadPosition(changed, &into) || !ReadIdentity(changed, &files);
  };
  EXPECT_FALSE(refused([](Json*) {}));
  EXPECT_TRUE(refused([](Json* j) { (*j)["samples"] = -1; }));
  EXPECT_TRUE(refused([](Json* j) { (*j)["deals"] = Json::array(); }));
  EXPECT_TRUE(refused([](Json* j) { (*j)["deals"] = 7; }));
  EXPECT_TRUE(refused([](Json* j) { (*j)["deals"][0]["windows"] = 0; }));
  EXPECT_TRUE(refused([](Json* j) { (*j)["deals"][0].erase("cut"); }));
  EXPECT_TRUE(refused([](Json* j) { j->erase("train"); }));
  EXPECT_TRUE(refused([](Json* j) { (*j)["train"][0]["tokens"] = -1; }));
  EXPECT_TRUE(refused([](Json* j) { (*j)["train"][0]["blocks"] = 1; }));
  EXPECT_TRUE(refused([](Json* j) { (*j)["train"][0]["blocks"] = int64_t{1} << 40; }));
  EXPECT_TRUE(refused([](Json* j) { (*j)["train"][0]["xxh3_64"] = "no number"; }));
}

}  // namespace
}  // namespace planc
