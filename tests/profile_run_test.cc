// What `planc run --profile` leaves in the run directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/run_files.h"

namespace planc {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;

// Two steps of a small model on `ranks` ranks, with assignments like "NAME=value" in front of the
// command; returns the run directory.
std::string RunWithProfile(const std::string& name, int ranks, const std::string& mesh,
                           const std::string& environment = "") {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/", name);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/train.txt", std::ios::binary) << LearnableText(4000);
  std::ofstream(folder + "/job.yaml")
      << "job: profile\n"
      << "model: {family: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2, ffn_hidden: 64,"
         " vocab: 256}\n"
      << "cluster: {nodes: 1, gpus_per_node: " << ranks << ", device: host}\n"
      << "mesh: {" << mesh << "}\n"
      << "batch: {global: 4, micro: 1, sequence: 32}\n"
      << "precision: {compute: fp32}\n"
      << "optimizer: {lr: 3e-3}\n"
      << "data: {train: [train.txt], format: bytes}\n"
      << "run: {steps: 2, directory: run}\n";
  const std::string log = folder + "/planc.log";
  const int status = std::system(
      absl::StrCat(environment, " planc/planc run ", folder, "/job.yaml --profile > ", log, " 2>&1")
          .c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << ReadText(log);
  EXPECT_THAT(ReadText(log), HasSubstr("Profile of rank 0, last step: "));
  return folder + "/run";
}

TEST(ProfileRun, OneRankHasATableAndATrace) {
  const std::string run = RunWithProfile("one", 1, "");
  const std::string table = ReadText(run + "/profile-rank-0.txt");
  EXPECT_THAT(table, HasSubstr(" GFLOP/s, memory "));
  EXPECT_THAT(table, HasSubstr("\n  products "));
  EXPECT_THAT(table, HasSubstr("communication: total 0.000000 s, exposed 0.000000 s"));
  const json trace = json::parse(ReadText(run + "/profile-rank-0.json"));
  EXPECT_TRUE(std::any_of(trace.begin(), trace.end(),
                          [](const json& event) { return event.at("name") == "matmul"; }));
}

TEST(ProfileRun, OpenMpBindingTakesNoCores) {
  const auto threads = [](const std::string& run) {
    const std::string table = ReadText(run + "/profile-rank-0.txt");
    const size_t begin = table.find("measured with ");
    return table.substr(begin, table.find(':', begin) - begin);
  };
  const std::string free = threads(RunWithProfile("free", 1, ""));
  EXPECT_THAT(free, HasSubstr(" thread"));
  EXPECT_EQ(threads(RunWithProfile("bound", 1, "", "OMP_PROC_BIND=true")), free);
}

TEST(ProfileRun, SeveralRanksShareATrace) {
  const std::string run = RunWithProfile("two", 2, "dp_shard: 2");
  for (const int rank : {0, 1}) {
    const std::string table = ReadText(absl::StrCat(run, "/profile-rank-", rank, ".txt"));
    EXPECT_THAT(table, HasSubstr("\n  communication "));
    EXPECT_THAT(table, HasSubstr("\n  dp_shard "));
  }
  const json trace = json::parse(ReadText(run + "/profile.json"));
  // The ranks train together, so their steps overlap on one clock.
  double latest_begin = 0;
  double earliest_end = 1e300;
  std::set<int> ranks;
  for (const int rank : {0, 1}) {
    double begin = 1e300;
    double end = 0;
    for (const json& event : trace) {
      if (event.at("pid") != rank || event.at("ph") != "X") continue;
      ranks.insert(rank);
      const double started = event.at("ts").get<double>();
      begin = std::min(begin, started);
      end = std::max(end, started + event.at("dur").get<double>());
    }
    latest_begin = std::max(latest_begin, begin);
    earliest_end = std::min(earliest_end, end);
  }
  EXPECT_EQ(ranks.size(), 2u);
  EXPECT_LT(latest_begin, earliest_end);
}

}  // namespace
}  // namespace planc
