#include "runtime/launch/launch.h"

#include <unistd.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/launch/hostlist.h"
#include "runtime/launch/numbered_launch.h"

namespace planc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<LaunchConfig> Detect(const Variables& variables, int cores = 16) {
  return DetectLaunch(
      [&variables](const std::string& name) -> std::optional<std::string> {
        const auto variable = variables.find(name);
        if (variable == variables.end()) return std::nullopt;
        return variable->second;
      },
      cores);
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

const Variables& SlurmVariables() {
  static const auto* const variables = new Variables{{"SLURM_JOB_ID", "17"},
                                                     {"SLURM_STEP_ID", "2"},
                                                     {"SLURM_PROCID", "5"},
                                                     {"SLURM_NTASKS", "8"},
                                                     {"SLURM_STEP_NUM_TASKS", "8"},
                                                     {"SLURM_LOCALID", "1"},
                                                     {"SLURM_NODEID", "1"},
                                                     {"SLURMD_NODENAME", "n09"},
                                                     {"SLURM_NODELIST", "n[1-4]"},
                                                     {"SLURM_STEP_NODELIST", "n[08-09]"},
                                                     {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                                                     {"SLURM_RESTART_COUNT", "3"}};
  return *variables;
}

TEST(DetectLaunchTest, NothingSetIsAlone) {
  const absl::StatusOr<LaunchConfig> launch = Detect({});
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->source, LaunchSource::kAlone);
  EXPECT_EQ(launch->rank, 0);
  EXPECT_EQ(launch->world_size, 1);
  EXPECT_EQ(launch->threads, 16);
}

TEST(DetectLaunchTest, LocalLauncher) {
  const absl::StatusOr<LaunchConfig> launch = Detect({{"PLANC_RANK", "0"},
                                                      {"PLANC_WORLD_SIZE", "4"},
                                                      {"PLANC_JOB", "local-7"},
                                                      {"PLANC_RESTART", "1"},
                                                      {"PLANC_STORE_PORT", "4711"},
                                                      {"PLANC_STORE_SOCKET", "9"},
                                                      {"PLANC_TERMINAL", "1"},
                                                      {"RANK", "3"}},
                                                     /*cores=*/6);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->source, LaunchSource::kLocal);
  EXPECT_EQ(launch->world_size, 4);
  EXPECT_EQ(launch->store_socket, 9);
  EXPECT_EQ(launch->store_port, 4711);
  EXPECT_EQ(launch->restart, 1);
  EXPECT_EQ(launch->threads, 1);
  EXPECT_TRUE(launch->terminal);
}

TEST(DetectLaunchTest, Torchrun) {
  Variables variables = {{"RANK", "5"},           {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}};
  absl::StatusOr<LaunchConfig> launch = Detect(variables);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->source, LaunchSource::kTorchrun);
  EXPECT_EQ(launch->rank, 5);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->store_host, "head");
  EXPECT_EQ(launch->store_port, 29500);
  EXPECT_EQ(launch->threads, 4);

  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["TORCHELASTIC_RESTART_COUNT"] = "2";
  launch = Detect(variables);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->store_port, 29501);
  EXPECT_EQ(launch->restart, 2);

  variables.erase("MASTER_PORT");
  EXPECT_THAT(MessageOf(Detect(variables).status()), HasSubstr("MASTER_PORT is not set"));
  variables["MASTER_PORT"] = "many";
  EXPECT_THAT(MessageOf(Detect(variables).status()), HasSubstr("MASTER_PORT=many"));
  variables["MASTER_PORT"] = "29500";
  variables["RANK"] = "8";
  EXPECT_THAT(MessageOf(Detect(variables).status()), HasSubstr("rank 8 of 8"));
}

TEST(DetectLaunchTest, SlurmStep) {
  const absl::StatusOr<LaunchConfig> launch = Detect(SlurmVariables());
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->source, LaunchSource::kSlurm);
  EXPECT_EQ(launch->rank, 5);
  EXPECT_EQ(launch->world_size, 8);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->local_world_size, 4);
  EXPECT_EQ(launch->store_host, "n08");  // of the step, not of the job
  EXPECT_EQ(launch->host, "n09");
  EXPECT_EQ(launch->job, "17.2");
  EXPECT_EQ(launch->restart, 3);
  EXPECT_EQ(launch->threads, 4);

  Variables variables = SlurmVariables();
  variables["SLURM_CPUS_PER_TASK"] = "12";
  variables["MASTER_ADDR"] = "10.0.0.1";
  variables["MASTER_PORT"] = "6000";
  const absl::StatusOr<LaunchConfig> placed = Detect(variables);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->threads, 12);
  EXPECT_EQ(placed->store_host, "10.0.0.1");
  EXPECT_EQ(placed->store_port, 6000);
}

// Whether that suits the mesh is CheckPlacement's question.
TEST(DetectLaunchTest, SlurmUnequalNodesAreCountedPerNode) {
  Variables variables = SlurmVariables();
  variables["SLURM_STEP_TASKS_PER_NODE"] = "5,3";
  const absl::StatusOr<LaunchConfig> launch = Detect(variables);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->local_world_size, 3);

  variables["SLURM_NODEID"] = "2";
  EXPECT_THAT(MessageOf(Detect(variables).status()), HasSubstr("SLURM_NODEID=2 does not fit"));
}

TEST(DetectLaunchTest, SlurmTaskZeroIsOnTheFirstNode) {
  Variables variables = SlurmVariables();
  variables["SLURM_PROCID"] = "0";
  const absl::Status status = Detect(variables).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status), HasSubstr("--distribution=block:block"));
}

TEST(DetectLaunchTest, HeterogeneousSlurmJobsAreRefused) {
  Variables variables = SlurmVariables();
  variables["SLURM_HET_SIZE"] = "2";
  const absl::Status status = Detect(variables).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status), HasSubstr("heterogeneous"));
}

TEST(DetectLaunchTest, TheHostHasAName) {
  const absl::StatusOr<LaunchConfig> launch = Detect({});
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_FALSE(launch->host.empty());
}

TEST(DetectLaunchTest, SlurmBatchScriptIsNotRankZero) {
  Variables variables = SlurmVariables();
  variables.erase("SLURM_STEP_ID");
  variables["SLURM_JOB_NUM_NODES"] = "2";
  const absl::Status status = Detect(variables).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status), HasSubstr("srun -K1 --nodes=2 --ntasks-per-node=4 "));

  variables["SLURM_NTASKS"] = "1";
  const absl::StatusOr<LaunchConfig> alone = Detect(variables);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->source, LaunchSource::kAlone);
}

std::vector<std::string> Expand(const std::string& list) {
  const absl::StatusOr<std::vector<std::string>> hosts = ExpandHostlist(list);
  return hosts.ok() ? *hosts : std::vector<std::string>{"error"};
}

// Vectors from scontrol show hostnames, Slurm 22.05.
TEST(HostlistTest, Expands) {
  EXPECT_THAT(Expand("n[1-4]"), ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_THAT(Expand("n[001-004]"), ElementsAre("n001", "n002", "n003", "n004"));
  EXPECT_THAT(Expand("n[01-3]"), ElementsAre("n01", "n02", "n03"));
  EXPECT_THAT(Expand("n[01-03,07,10-11]"), ElementsAre("n01", "n02", "n03", "n07", "n10", "n11"));
  EXPECT_THAT(Expand("n9,n[10-12],gpu01"), ElementsAre("n9", "n10", "n11", "n12", "gpu01"));
  EXPECT_THAT(Expand("r[1-2]n[01-03]"),
              ElementsAre("r1n01", "r1n02", "r1n03", "r2n01", "r2n02", "r2n03"));
  EXPECT_THAT(Expand("rack[0-1]-node[9-11]"),
              ElementsAre("rack0-node9", "rack0-node10", "rack0-node11", "rack1-node9",
                          "rack1-node10", "rack1-node11"));
  EXPECT_THAT(Expand("n[1-2][1-2]"), ElementsAre("n11", "n12", "n21", "n22"));
  EXPECT_THAT(Expand("dgx-a100-[098-101]"),
              ElementsAre("dgx-a100-098", "dgx-a100-099", "dgx-a100-100", "dgx-a100-101"));
  EXPECT_THAT(Expand("n[1,1]"), ElementsAre("n1", "n1"));
  EXPECT_THAT(Expand("tux[0-0]"), ElementsAre("tux0"));
  EXPECT_THAT(Expand(""), ElementsAre());
}

// The same: numbers of any width in 64 bits, as cloud providers and serial numbers make them.
TEST(HostlistTest, ExpandsLongNumbers) {
  EXPECT_THAT(Expand("n[12345678901-12345678903]"),
              ElementsAre("n12345678901", "n12345678902", "n12345678903"));
  EXPECT_THAT(Expand("n[9999999999]"), ElementsAre("n9999999999"));
  EXPECT_THAT(Expand("n[0000000001-0000000003]"),
              ElementsAre("n0000000001", "n0000000002", "n0000000003"));
  EXPECT_THAT(Expand("n[09999999999-10000000001]"),
              ElementsAre("n09999999999", "n10000000000", "n10000000001"));
  EXPECT_THAT(Expand("n[00000000000000000001-00000000000000000002]"),
              ElementsAre("n00000000000000000001", "n00000000000000000002"));
  EXPECT_THAT(Expand("n[9-000000000011]"), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(Expand("n[4294967295-4294967297]"),
              ElementsAre("n4294967295", "n4294967296", "n4294967297"));
  EXPECT_THAT(Expand("n[9223372036854775807-9223372036854775809]"),
              ElementsAre("n9223372036854775807", "n9223372036854775808", "n9223372036854775809"));
  EXPECT_THAT(Expand("n1234567890123,m12345678901234567890123"),
              ElementsAre("n1234567890123", "m12345678901234567890123"));
  // What Slurm itself cannot count.
  for (const char* list :
       {"n[18446744073709551613-18446744073709551615]", "n[123456789012345678901]",
        "n[1-18446744073709551614]", "n[ 1]", "n[+1]", "n[0x1]"}) {
    EXPECT_FALSE(ExpandHostlist(list).ok()) << list;
  }
}

TEST(HostlistTest, RefusesWhatIsMalformed) {
  for (const char* list : {"n[3-1]", "c[1-3,]", "n[1-2]]", "n[1-3]x", "n[0-99999999]", "n[1-",
                           "n[[1]]", "n[]", "n[a]", "a,,b", "n[1-2-3]"}) {
    EXPECT_FALSE(ExpandHostlist(list).ok()) << list;
  }
}

TEST(TaskCountsTest, ExpandsAndRefuses) {
  EXPECT_THAT(*ExpandTaskCounts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(*ExpandTaskCounts("3,1"), ElementsAre(3, 1));
  for (const char* list : {"", "x", "2(x", "2(x)", "2(y3)", "2(x3", "2,",
                           "2(x18446744073709551614)", "12345678901", "1(x65536),1"}) {
    EXPECT_FALSE(ExpandTaskCounts(list).ok()) << list;
  }
}

// What mpirun of Open MPI 4 sets for one of four processes on one machine.
const Variables& OpenMpiVariables() {
  static const auto* const variables =
      new Variables{{"OMPI_COMM_WORLD_RANK", "3"},       {"OMPI_COMM_WORLD_SIZE", "4"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                    {"PMIX_NAMESPACE", "1804664833"},    {"PMIX_RANK", "3"}};
  return *variables;
}

TEST(NumberedLaunchTest, OpenMpiOnOneMachine) {
  const absl::StatusOr<LaunchConfig> launch = Detect(OpenMpiVariables());
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->source, LaunchSource::kOpenMpi);
  EXPECT_STREQ(LaunchSourceName(launch->source), "Open MPI");
  EXPECT_EQ(launch->rank, 3);
  EXPECT_EQ(launch->world_size, 4);
  EXPECT_EQ(launch->local_rank, 3);
  EXPECT_EQ(launch->local_world_size, 4);
  EXPECT_EQ(launch->threads, 4);
  EXPECT_EQ(launch->store_host, "127.0.0.1");
  EXPECT_GE(launch->store_port, 32000);
  EXPECT_LT(launch->store_port, 32700);
  Variables first = OpenMpiVariables();
  first["OMPI_COMM_WORLD_RANK"] = first["OMPI_COMM_WORLD_LOCAL_RANK"] = first["PMIX_RANK"] = "0";
  EXPECT_EQ(Detect(first)->store_port, launch->store_port);
  EXPECT_EQ(Detect(first)->job, launch->job);
  first["PMIX_NAMESPACE"] = "1804664834";
  EXPECT_NE(Detect(first)->job, launch->job) << "another start";
}

TEST(NumberedLaunchTest, EveryLauncherOfTheTable) {
  const std::vector<std::pair<LaunchSource, Variables>> cases = {
      {LaunchSource::kMpich,
       {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}},
      {LaunchSource::kMvapich,
       {{"MV2_COMM_WORLD_RANK", "1"},
        {"MV2_COMM_WORLD_SIZE", "2"},
        {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
        {"MV2_COMM_WORLD_LOCAL_SIZE", "2"},
        {"PMI_RANK", "1"},
        {"PMI_SIZE", "2"}}},
      {LaunchSource::kPals,
       {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_LOCAL_RANK", "1"}, {"PMI_LOCAL_SIZE", "2"}}},
      {LaunchSource::kJsrun,
       {{"JSM_NAMESPACE_RANK", "1"},
        {"JSM_NAMESPACE_SIZE", "2"},
        {"JSM_NAMESPACE_LOCAL_RANK", "1"},
        {"JSM_NAMESPACE_LOCAL_SIZE", "2"}}},
      {LaunchSource::kFlux,
       {{"FLUX_TASK_RANK", "1"},
        {"FLUX_JOB_SIZE", "2"},
        {"FLUX_TASK_LOCAL_ID", "1"},
        {"FLUX_JOB_NNODES", "1"},
        {"FLUX_JOB_ID", "f2Abc"}}}};
  for (const auto& [source, variables] : cases) {
    const absl::StatusOr<LaunchConfig> launch = Detect(variables);
    ASSERT_TRUE(launch.ok()) << LaunchSourceName(source) << ": " << launch.status();
    EXPECT_EQ(launch->source, source) << LaunchSourceName(launch->source);
    EXPECT_EQ(launch->rank, 1);
    EXPECT_EQ(launch->world_size, 2);
    EXPECT_EQ(launch->local_rank, 1);
    EXPECT_EQ(launch->local_world_size, 2);
    EXPECT_FALSE(launch->job.empty());
  }
}

TEST(NumberedLaunchTest, SeveralMachinesNeedAMeetingPoint) {
  Variables variables = OpenMpiVariables();
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  variables["OMPI_COMM_WORLD_LOCAL_RANK"] = "1";
  const absl::StatusOr<LaunchConfig> refused = Detect(variables);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused.status()),
              HasSubstr("\n  mpirun -n 4 --map-by ppr:2:node -x MASTER_ADDR=HOST -x "
                        "MASTER_PORT=29500 planc run ..."));
  variables["MASTER_ADDR"] = "n1";
  variables["MASTER_PORT"] = "29501";
  const absl::StatusOr<LaunchConfig> launch = Detect(variables);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->store_host, "n1");
  EXPECT_EQ(launch->store_port, 29501);
}

TEST(NumberedLaunchTest, MpirunInASlurmJobIsNotTakenForTheStepOfItsDaemons) {
  Variables variables = OpenMpiVariables();
  for (const auto& [name, value] : SlurmVariables()) variables[name] = value;
  const absl::StatusOr<LaunchConfig> launch = Detect(variables);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->source, LaunchSource::kOpenMpi);
  EXPECT_EQ(launch->rank, 3);
}

TEST(NumberedLaunchTest, SrunWithAnMpiPluginIsSlurm) {
  Variables variables = SlurmVariables();
  variables["PMIX_RANK"] = variables["PMI_RANK"] = "5";
  const absl::StatusOr<LaunchConfig> launch = Detect(variables);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->source, LaunchSource::kSlurm);
}

TEST(NumberedLaunchTest, ARankThatKnowsNothingElseNeverTrainsAlone) {
  for (const std::string name : {"PMIX_RANK", "PMI_RANK", "ALPS_APP_PE", "OMPI_COMM_WORLD_RANK",
                                 "FLUX_TASK_RANK", "MV2_COMM_WORLD_RANK", "JSM_NAMESPACE_RANK"}) {
    const absl::StatusOr<LaunchConfig> launch = Detect({{name, "0"}});
    EXPECT_EQ(launch.status().code(), absl::StatusCode::kFailedPrecondition) << name;
    EXPECT_THAT(MessageOf(launch.status()), HasSubstr("\n  mpirun -n 4")) << name;
  }
  const absl::StatusOr<LaunchConfig> half =
      Detect({{"PMI_RANK", "0"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_THAT(MessageOf(half.status()), HasSubstr("launch variable PMI_SIZE is not set"));
}

TEST(NumberedLaunchTest, TheLauncherIsTheNearestAncestorWithoutTheVariable) {
  // This process's parent lacks it, whatever stands between.
  EXPECT_EQ(LauncherIdentity("PLANC_NOBODY_SETS_THIS"), LauncherIdentity("PLANC_NOR_THIS"));
  EXPECT_THAT(LauncherIdentity("PLANC_NOBODY_SETS_THIS"),
              ::testing::StartsWith(absl::StrCat(getppid(), ".")));
}

}  // namespace
}  // namespace planc
