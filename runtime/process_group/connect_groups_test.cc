#include "runtime/process_group/connect_groups.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/process_group/socket.h"

namespace planc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kTensor = 0;  // groups of TestPlan
constexpr int kPipeline = 1;
constexpr int kEnds = 2;

Instruction Use(Opcode opcode, int group, Stream stream) {
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.group = group;
  instruction.stream = stream;
  return instruction;
}

// pp stages of tp = 2 ranks. The first stage only sends to the next, the last only receives from
// the previous; the ends reduce their shared table; every stage reduces over tp.
Plan TestPlan(int64_t stages) {
  Plan plan;
  plan.mesh.size = {stages, 1, 1, 1, 2};
  plan.groups = {{"tp", AxisBit(Axis::kTp), false},
                 {"pp", AxisBit(Axis::kPp), false},
                 {"embedding", AxisBit(Axis::kPp), true}};
  plan.blocks = {
      {"tensor", {}, {Use(Opcode::kAllReduce, kTensor, Stream::kCompute)}},
      {"send", {}, {Use(Opcode::kSend, kPipeline, Stream::kSendNext)}},
      {"receive", {}, {Use(Opcode::kRecv, kPipeline, Stream::kRecvPrevious)}},
      {"ends", {}, {Use(Opcode::kAllReduce, kEnds, Stream::kData)}},
      {"unused", {}, {Use(Opcode::kAllReduce, kTensor, Stream::kData)}},
  };
  for (int64_t stage = 0; stage < stages; ++stage) {
    RankClass rank_class;
    rank_class.stage = stage;
    std::vector<Call> calls = {Call{0, -1, -1, {}}};
    if (stage < stages - 1) calls.push_back(Call{1, -1, -1, {}});
    if (stage > 0) calls.push_back(Call{2, -1, -1, {}});
    if (stage == 0 || stage == stages - 1) calls.push_back(Call{3, -1, -1, {}});
    rank_class.programs[static_cast<int>(ProgramKind::kStep)].steps = {Repeat{1, 0, calls}};
    plan.classes.push_back(rank_class);
  }
  return plan;
}

std::vector<std::string> Names(const std::vector<GroupConnection>& connections) {
  std::vector<std::string> names;
  for (const GroupConnection& connection : connections) names.push_back(connection.name);
  return names;
}

TEST(ConnectionsOfTest, EveryMemberConnectsWhatAnyMemberUses) {
  const Plan plan = TestPlan(3);
  EXPECT_THAT(Names(ConnectionsOf(plan, 0)),
              ElementsAre("tp/compute", "pp/next 0 to 1", "embedding/dp"));
  EXPECT_THAT(Names(ConnectionsOf(plan, 2)),
              ElementsAre("tp/compute", "pp/next 0 to 1", "pp/next 1 to 2"));
  EXPECT_THAT(Names(ConnectionsOf(plan, 5)),
              ElementsAre("tp/compute", "pp/next 1 to 2", "embedding/dp"));
  const GroupConnection incoming = ConnectionsOf(plan, 3)[1];
  EXPECT_THAT(incoming.membership.members, ElementsAre(1, 3));
  EXPECT_EQ(incoming.membership.index, 1);
  EXPECT_EQ(incoming.use, (GroupUse{kPipeline, Stream::kRecvPrevious}));
  EXPECT_EQ(ConnectionsOf(plan, 3)[2].use, (GroupUse{kPipeline, Stream::kSendNext}));
}

// With two stages, both neighbours of a stage are the same one: the directions stay apart.
TEST(ConnectionsOfTest, ARingOfTwoStagesHasAConnectionForEachDirection) {
  Plan plan = TestPlan(2);
  std::vector<Call>& last =
      plan.classes[1].programs[static_cast<int>(ProgramKind::kStep)].steps[0].calls;
  last.push_back(Call{1, -1, -1, {}});
  const std::vector<GroupConnection> connections = ConnectionsOf(plan, 0);
  EXPECT_THAT(Names(connections),
              ElementsAre("tp/compute", "pp/next 0 to 1", "pp/next 1 to 0", "embedding/dp"));
  EXPECT_EQ(connections[1].use, (GroupUse{kPipeline, Stream::kSendNext}));
  EXPECT_EQ(connections[2].use, (GroupUse{kPipeline, Stream::kRecvPrevious}));
}

LaunchConfig LaunchOf(int64_t rank, int64_t world_size, const Socket& listener) {
  LaunchConfig launch;
  launch.rank = launch.local_rank = rank;
  launch.world_size = launch.local_world_size = world_size;
  launch.store_port = *BoundPort(listener);
  launch.secret = "the secret of tests";
  if (rank == 0) launch.store_socket = dup(listener.get());
  return launch;
}

void RunRanks(int64_t world_size, const std::function<void(int64_t rank)>& body) {
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < world_size; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

// What the programs of TestPlan would do with the groups.
void Exercise(const Plan& plan, int64_t rank, Groups* groups) {
  const int64_t stages = plan.mesh[Axis::kPp];
  const int64_t stage = rank / 2;
  std::vector<float> arena(64);
  ASSERT_TRUE(groups->RegisterMemory(arena.data(), arena.size() * 4).ok());
  EXPECT_EQ(groups->Find(kTensor, Stream::kData), nullptr);

  arena[0] = static_cast<float>(rank + 1);
  ProcessGroup* const tensor = groups->Find(kTensor, Stream::kCompute);
  ASSERT_NE(tensor, nullptr);
  ASSERT_TRUE(tensor->AllReduce(arena.data(), 1, DType::kF32, ReduceOp::kSum, &arena[8]).ok());
  EXPECT_EQ(arena[0], 4 * stage + 3);

  arena[16] = static_cast<float>(100 * rank);
  std::thread send([&] {
    if (stage == stages - 1) return;
    EXPECT_TRUE(groups->Find(kPipeline, Stream::kSendNext)->Send(1, &arena[16], 4).ok());
  });
  if (stage > 0) {
    EXPECT_TRUE(groups->Find(kPipeline, Stream::kRecvPrevious)->Receive(0, &arena[24], 4).ok());
    EXPECT_EQ(arena[24], 100 * (rank - 2));
  }
  send.join();

  ProcessGroup* const ends = groups->Find(kEnds, Stream::kData);
  ASSERT_EQ(ends != nullptr, stage == 0 || stage == stages - 1);
  if (ends != nullptr) {
    arena[32] = static_cast<float>(rank);
    ASSERT_TRUE(ends->AllReduce(&arena[32], 1, DType::kF32, ReduceOp::kSum, &arena[40]).ok());
    EXPECT_EQ(arena[32], 2 * (rank % 2) + 2 * (stages - 1));
  }
  EXPECT_TRUE(groups->Shutdown().ok());
}

// Connects a whole mesh and uses it; returns what rank 0 says about its transports.
std::string ConnectAndExercise(TransportChoice transport) {
  const Plan plan = TestPlan(3);
  const absl::StatusOr<Socket> listener = ListenOn("127.0.0.1", 0);
  GroupOptions options;
  options.transport = transport;
  std::string text;
  RunRanks(6, [&](int64_t rank) {
    absl::StatusOr<Groups> groups = ConnectGroups(plan, LaunchOf(rank, 6, *listener), options);
    ASSERT_TRUE(groups.ok()) << groups.status();
    Exercise(plan, rank, &*groups);
    if (rank == 0) text = groups->TransportText();
  });
  return text;
}

TEST(ConnectGroupsTest, AWholeMeshOverTcp) {
  EXPECT_EQ(ConnectAndExercise(TransportChoice::kTcp), "process groups of rank 0: 3 over TCP");
}

TEST(ConnectGroupsTest, AWholeMeshOnOneMachineSharesMemory) {
  constexpr char kText[] = "process groups of rank 0: 3 over shared memory";
  EXPECT_EQ(ConnectAndExercise(TransportChoice::kSharedMemory), kText);
  EXPECT_EQ(ConnectAndExercise(TransportChoice::kAutomatic), kText);
}

// The system refuses shared memory as large as this process would need.
class ScopedFileSizeLimit {
 public:
  explicit ScopedFileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~ScopedFileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(ConnectGroupsTest, WithoutSharedMemoryEverybodyUsesTcpAndSaysWhy) {
  const ScopedFileSizeLimit limit(1 << 20);
  EXPECT_THAT(ConnectAndExercise(TransportChoice::kAutomatic),
              AllOf(HasSubstr("3 over TCP"),
                    HasSubstr("\n  group embedding/dp cannot share memory: rank 0: files ")));
}

TEST(ConnectGroupsTest, SharedMemoryThatIsDemandedButRefusedIsAnError) {
  const ScopedFileSizeLimit limit(1 << 20);
  const Plan plan = TestPlan(1);
  const absl::StatusOr<Socket> listener = ListenOn("127.0.0.1", 0);
  GroupOptions options;
  options.transport = TransportChoice::kSharedMemory;
  RunRanks(2, [&](int64_t rank) {
    const absl::Status status = ConnectGroups(plan, LaunchOf(rank, 2, *listener), options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  });
}

TEST(ConnectGroupsTest, AWholeMeshInOneProcess) {
  const Plan plan = TestPlan(3);
  LoopbackWorld world;
  RunRanks(6, [&](int64_t rank) {
    absl::StatusOr<Groups> groups = ConnectLoopbackGroups(plan, rank, &world);
    ASSERT_TRUE(groups.ok()) << groups.status();
    Exercise(plan, rank, &*groups);
  });
}

TEST(ConnectGroupsTest, OneRankNeedsNobody) {
  Plan plan = TestPlan(1);
  plan.mesh.size = {1, 1, 1, 1, 1};
  absl::StatusOr<Groups> groups = ConnectGroups(plan, LaunchConfig{});
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_TRUE(groups->entries().empty());
  EXPECT_TRUE(groups->Shutdown().ok());
}

TEST(ConnectGroupsTest, AnotherPlanIsNamed) {
  const Plan plan = TestPlan(2);
  Plan other = plan;
  other.microbatches = 7;
  const absl::StatusOr<Socket> listener = ListenOn("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  RunRanks(4, [&](int64_t rank) {
    const absl::Status status =
        ConnectGroups(rank == 2 ? other : plan, LaunchOf(rank, 4, *listener)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("disagree on the plan hash"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 has"));
  });
}

TEST(LocalAddressTowardsTest, IsTheOneThatRoutesThere) {
  const absl::StatusOr<std::string> address = LocalAddressTowards("127.0.0.1");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(*address, "127.0.0.1");
  EXPECT_FALSE(LocalAddressTowards("no.such.host.invalid").ok());
}

TEST(ListenOnTest, OtherMachinesReachAHostThatKnowsItselfByLoopback) {
  const absl::StatusOr<Socket> here = ListenOn("127.0.1.1", 0);
  const absl::StatusOr<Socket> anywhere = ListenOn("127.0.1.1", 0, /*only_here=*/false);
  ASSERT_TRUE(here.ok() && anywhere.ok());
  constexpr absl::Duration kBriefly = absl::Milliseconds(1);
  EXPECT_FALSE(ConnectTo("127.0.0.1", *BoundPort(*here), kBriefly).ok());
  EXPECT_TRUE(ConnectTo("127.0.0.1", *BoundPort(*anywhere), kBriefly).ok());
}

LaunchConfig SlurmLaunchOf(int64_t rank, const std::string& host, int64_t local_rank,
                           const Socket& listener) {
  LaunchConfig launch = LaunchOf(rank, 4, listener);
  launch.source = LaunchSource::kSlurm;
  launch.host = host;
  launch.local_rank = local_rank;
  launch.local_world_size = 2;
  return launch;
}

TEST(ConnectGroupsTest, RanksInTheirPlacesConnect) {
  Plan plan = TestPlan(2);
  plan.ranks_per_node = 2;
  const absl::StatusOr<Socket> listener = ListenOn("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  RunRanks(4, [&](int64_t rank) {
    absl::StatusOr<Groups> groups =
        ConnectGroups(plan, SlurmLaunchOf(rank, rank < 2 ? "n1" : "n2", rank % 2, *listener));
    ASSERT_TRUE(groups.ok()) << groups.status();
    Exercise(plan, rank, &*groups);
    // The two stages, on two machines, do not share memory.
    EXPECT_STREQ(groups->Find(kTensor, Stream::kCompute)->transport(), "shared memory");
    EXPECT_STREQ(groups->Find(kEnds, Stream::kData)->transport(), "TCP");
  });
}

TEST(ConnectGroupsTest, RanksInOtherPlacesAreRefusedOnEveryRank) {
  Plan plan = TestPlan(2);
  plan.ranks_per_node = 2;
  const absl::StatusOr<Socket> listener = ListenOn("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  RunRanks(4, [&](int64_t rank) {
    const absl::Status status =
        ConnectGroups(plan, SlurmLaunchOf(rank, rank % 2 == 0 ? "n1" : "n2", rank / 2, *listener))
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("srun -K1 --nodes=2 --ntasks-per-node=2 --distribution=block:block"));
  });
}

TEST(ConnectGroupsTest, AMissingRankIsNamed) {
  const Plan plan = TestPlan(2);
  const absl::StatusOr<Socket> listener = ListenOn("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  GroupOptions options;
  options.connect_timeout = absl::Milliseconds(300);
  RunRanks(4, [&](int64_t rank) {
    if (rank == 3) return;
    const absl::Status status = ConnectGroups(plan, LaunchOf(rank, 4, *listener), options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 3 did not reach"));
  });
}

TEST(ConnectGroupsTest, TheWrongNumberOfRanksIsRefused) {
  LaunchConfig launch;
  launch.world_size = 3;
  EXPECT_EQ(ConnectGroups(TestPlan(2), launch).status().code(), absl::StatusCode::kInvalidArgument);
}

// What a surviving rank does when its peer is killed: exits with 7 if the error is the right one.
[[noreturn]] void SurviveOrDie(const Plan& plan, int64_t rank, const Socket& listener,
                               TransportChoice transport) {
  GroupOptions options;
  options.transport = transport;
  absl::StatusOr<Groups> groups = ConnectGroups(plan, LaunchOf(rank, 2, listener), options);
  if (!groups.ok()) _exit(10);
  std::vector<float> arena(64);
  if (!groups->RegisterMemory(arena.data(), arena.size() * 4).ok()) _exit(11);
  ProcessGroup* const tensor = groups->Find(kTensor, Stream::kCompute);
  absl::Status status;
  for (int step = 0; status.ok(); ++step) {
    if (rank == 1 && step == 100) raise(SIGKILL);
    status = tensor->AllReduce(arena.data(), 8, DType::kF32, ReduceOp::kSum, &arena[16]);
  }
  const std::string message(status.message());
  const bool named = message.find("lost the connection to rank 1") != std::string::npos &&
                     message.find("all_reduce") != std::string::npos &&
                     message.find("tp/compute") != std::string::npos;
  _exit(absl::IsUnavailable(status) && named ? 7 : 12);
}

void TestKilledProcess(TransportChoice transport) {
  const Plan plan = TestPlan(1);
  const absl::StatusOr<Socket> listener = ListenOn("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  std::vector<pid_t> ranks;
  for (int64_t rank = 0; rank < 2; ++rank) {
    const pid_t process = fork();
    if (process == 0) SurviveOrDie(plan, rank, *listener, transport);
    ranks.push_back(process);
  }
  int status = 0;
  ASSERT_EQ(waitpid(ranks[1], &status, 0), ranks[1]);
  EXPECT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(waitpid(ranks[0], &status, 0), ranks[0]);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(ConnectGroupsTest, AKilledProcessIsNoticedAndNamed) {
  TestKilledProcess(TransportChoice::kTcp);
  TestKilledProcess(TransportChoice::kSharedMemory);
}

}  // namespace
}  // namespace planc
