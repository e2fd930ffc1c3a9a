// Nothing is allocated inside a step. Every rank is a process, as in `planc run`, with several
// threads for its kernels, real process groups and real data; all threads and libraries of the
// process are counted while its step and evaluation programs run.
//
// Two things beside the programs allocate, and are not part of a step: between two steps a rank
// agrees with the others whether to go on (rank 0 serves the store for that) and writes its
// metrics, and a thread of its own writes checkpoints.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/instruction_set.h"
#include "runtime/data/token_loader.h"
#include "runtime/device/host_device.h"
#include "runtime/launch/launch.h"
#include "runtime/process_group/connect_groups.h"
#include "runtime/process_group/socket.h"
#include "runtime/step/allocation_guard.h"
#include "runtime/step/run_program.h"
#include "runtime/step/schedule.h"
#include "runtime/step/session.h"
#include "schemas/collective.h"
#include "schemas/status.h"
#include "tests/mesh_cases.h"
#include "tests/run_files.h"

namespace planc {
namespace {

constexpr int kThreads = 3;
constexpr int kWarmUpSteps = 2;
constexpr int kSteps = 4;

struct AllocationCase {
  std::string name;
  MeshCase mesh;
};

// Large enough that kernels cut their work among all threads, among some, and not at all.
std::vector<std::string> Sizes() {
  return {"model.hidden=192",  "model.ffn_hidden=512",   "model.max_sequence=64",
          "batch.sequence=64", "data.train=[train.txt]", "data.validation=[train.txt]"};
}

const AllocationCase kCases[] = {
    {"llama_pp2_tp2_fp32", {"a", "llama", {"mesh.pp=2", "mesh.tp=2", "cluster.gpus_per_node=4"}}},
    {"llama_ds2_z3_tp2_sp_bf16",
     {"b",
      "llama",
      {"mesh.dp_shard=2", "mesh.tp=2", "parallelism.zero=3", "parallelism.sequence_parallel=true",
       "recompute=full", "precision.compute=bf16", "cluster.gpus_per_node=4"}}},
    {"qwen3_ds2_dr2_z2_bf16",
     {"c",
      "qwen3",
      {"mesh.dp_shard=2", "mesh.dp_replicate=2", "parallelism.zero=2", "batch.micro=2",
       "precision.compute=bf16", "cluster.gpus_per_node=4"}}},
    {"gpt2_one_rank_fp32", {"d", "gpt2", {"batch.micro=8"}}},
};

// Gloo allocates about three times for a message that it sends or receives, by measurement.
constexpr int64_t kGlooAllocationsPerMessage = 6;

// What a rank's process leaves for the test, in memory that both share.
struct RankResult {
  AllocationCounts counts;  // over kSteps steps and as many evaluations
  int64_t messages = 0;     // that the rank sent and received meanwhile, between pairs of ranks
  char error[400] = {};
};

// Messages to and from this rank for one communication (exchange_group.h).
int64_t Messages(const Plan& plan, const Instruction& instruction, const ProcessGroup& group) {
  if (TraitsOf(instruction.opcode).kind == OpcodeKind::kTransfer) return 1;
  const int64_t each_way = group.membership().size() - 1;
  if (instruction.opcode != Opcode::kAllReduce) return 2 * each_way;
  const int64_t count = instruction.integers[IntegerIndex(Opcode::kAllReduce, "count")];
  const DType type = plan.buffers[instruction.operands[0].buffer].dtype;
  return AllReduceIsDirect(count, SizeOf(type)) ? 2 * each_way : 4 * each_way;
}

int64_t Messages(const Session& session, ProgramKind kind) {
  int64_t messages = 0;
  const PreparedProgram& program = session.program(kind);
  for (const PreparedRepeat& repeat : program.repeats) {
    for (int32_t c = 0; c < repeat.call_count; ++c) {
      const int block = program.calls[repeat.first_call + c].block;
      const std::vector<Instruction>& instructions = session.plan().blocks[block].instructions;
      for (size_t i = 0; i < instructions.size(); ++i) {
        const ProcessGroup* const group = session.block(block).instructions[i].group;
        if (group == nullptr) continue;
        messages += repeat.count * Messages(session.plan(), instructions[i], *group);
      }
    }
  }
  return messages;
}

absl::Status RunRank(const Plan& plan, const LaunchConfig& launch, TransportChoice transport,
                     const std::string& folder, RankResult* result) {
  GroupOptions options;
  options.transport = transport;
  PLANC_ASSIGN_OR_RETURN(options.instruction_set, host::DetectInstructionSet());
  PLANC_ASSIGN_OR_RETURN(const auto tokens, TokenLoader::OpenTraining(plan, folder));
  PLANC_ASSIGN_OR_RETURN(Groups groups, ConnectGroups(plan, launch, options));
  const std::unique_ptr<Device> device = CreateHostDevice();
  PLANC_ASSIGN_OR_RETURN(const auto session,
                         Session::Create(plan, launch.rank, kThreads, groups.instruction_set(),
                                         device.get(), &groups));
  PLANC_ASSIGN_OR_RETURN(const auto runner, ProgramRunner::Create(*session, device.get(), {}));
  PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kInit, {}));
  PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kPublish, {}));
  // One step more than is counted: no rank gets through it without rank 0, so that none that is
  // done early asks for rank 0's store while rank 0 still counts.
  for (int step = 0; step < kWarmUpSteps + kSteps + 1; ++step) {
    if (step == kWarmUpSteps) ResetAllocationCounts();
    if (step == kWarmUpSteps + kSteps) result->counts = CountedAllocations();
    const ProgramInputs inputs = {step, HyperParametersOf(plan.job, step), tokens.get(), false};
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kStep, inputs));
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kEval, inputs));
  }
  result->messages =
      kSteps * (Messages(*session, ProgramKind::kStep) + Messages(*session, ProgramKind::kEval));
  return groups.Shutdown();
}

class StepAllocationTest : public testing::TestWithParam<AllocationCase> {
 protected:
  void SetUp() override {
    if (!AllocationsAreCounted()) GTEST_SKIP() << "a sanitizer owns malloc";
    folder_ = absl::StrCat(testing::TempDir(), "/", GetParam().name);
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/train.txt", std::ios::binary) << LearnableText(60000);
  }

  // The result of every rank, each in a process of its own.
  std::vector<RankResult> RunRanks(TransportChoice transport) {
    const Plan plan = CompileMeshCase(GetParam().mesh, Sizes());
    const int64_t world_size = plan.mesh.WorldSize();
    const size_t bytes = sizeof(RankResult) * world_size;
    auto* const shared = static_cast<RankResult*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    absl::StatusOr<Socket> listener = ListenOn("127.0.0.1", 0);
    EXPECT_TRUE(listener.ok()) << listener.status();
    std::vector<pid_t> processes;
    for (int64_t rank = 0; rank < world_size; ++rank) {
      LaunchConfig launch;
      launch.rank = launch.local_rank = rank;
      launch.world_size = launch.local_world_size = world_size;
      launch.store_port = *BoundPort(*listener);
      if (rank == 0) launch.store_socket = dup(listener->get());
      const pid_t process = fork();
      if (process == 0) {
        const absl::Status status = RunRank(plan, launch, transport, folder_, &shared[rank]);
        std::snprintf(shared[rank].error, sizeof(shared[rank].error), "%s",
                      status.ok() ? "" : status.ToString().c_str());
        _exit(status.ok() ? 0 : 1);
      }
      if (rank == 0) close(launch.store_socket);
      processes.push_back(process);
    }
    std::vector<RankResult> results;
    for (int64_t rank = 0; rank < world_size; ++rank) {
      int status = 0;
      EXPECT_EQ(waitpid(processes[rank], &status, 0), processes[rank]);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
          << "rank " << rank << ": " << shared[rank].error;
      results.push_back(shared[rank]);
    }
    munmap(shared, bytes);
    return results;
  }

  std::string folder_;
};

std::string Text(const KindCounts& counts) {
  return absl::StrCat(counts.heap, " heap, ", counts.mappings, " mappings, ", counts.threads,
                      " threads");
}

std::string Text(const AllocationCounts& counts) {
  return absl::StrCat("step: ", Text(counts.step), "; library: ", Text(counts.library),
                      "; other threads: ", Text(counts.other));
}

TEST_P(StepAllocationTest, NoneWithSharedMemory) {
  for (const RankResult& result : RunRanks(TransportChoice::kSharedMemory)) {
    EXPECT_EQ(result.counts.sum(), 0) << Text(result.counts);
  }
}

// Gloo keeps books of its messages on the heap, in the thread that asks and in its own; nothing
// else allocates, and nobody maps memory or starts threads.
TEST_P(StepAllocationTest, ABoundedNumberForEachMessageOverTcp) {
  for (const RankResult& result : RunRanks(TransportChoice::kTcp)) {
    const AllocationCounts& counts = result.counts;
    std::printf("%s: %s; %d messages\n", GetParam().name.c_str(), Text(counts).c_str(),
                static_cast<int>(result.messages));
    EXPECT_EQ(counts.step.sum(), 0) << Text(counts);
    EXPECT_EQ(counts.library.mappings + counts.other.mappings, 0) << Text(counts);
    EXPECT_EQ(counts.library.threads + counts.other.threads, 0) << Text(counts);
    EXPECT_LE(counts.library.heap + counts.other.heap, kGlooAllocationsPerMessage * result.messages)
        << Text(counts);
  }
}

void PrintTo(const AllocationCase& one, std::ostream* out) { *out << one.name; }

INSTANTIATE_TEST_SUITE_P(Meshes, StepAllocationTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planc
