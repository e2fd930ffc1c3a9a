#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "runtime/process_group/gloo_group.h"
#include "runtime/process_group/shared_memory_group.h"
#include "runtime/process_group/socket.h"
#include "runtime/process_group/store_server.h"
#include "runtime/process_group/test_store.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Minutes(1);
// Nobody may live to see it.
constexpr absl::Duration kOperationTimeout = absl::Hours(24);
constexpr std::chrono::seconds kSurvivorTime(60);
// Moving this takes far longer than a signal.
constexpr int64_t kMessageBytes = int64_t{256} << 20;

enum class Transport { kTcp, kSharedMemory };

// Memory that a test shares with its child processes.
class SharedBytes {
 public:
  explicit SharedBytes(int64_t bytes)
      : bytes_(bytes),
        data_(static_cast<uint8_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  ~SharedBytes() { munmap(data_, bytes_); }

  uint8_t* data() const { return data_; }

 private:
  const int64_t bytes_;
  uint8_t* const data_;
};

absl::StatusOr<std::unique_ptr<ProcessGroup>> Connect(Transport transport, int64_t rank,
                                                      KeyValueStore* store) {
  const GroupMembership membership{"pp", {0, 1}, rank};
  if (transport == Transport::kSharedMemory) {
    return ConnectSharedMemoryGroup("test", membership, store, kConnectTimeout, kOperationTimeout);
  }
  PLANC_ASSIGN_OR_RETURN(const auto network,
                         GlooNetwork::Create("127.0.0.1", "the secret of tests"));
  PLANC_ASSIGN_OR_RETURN(auto groups, network->Connect("test", {membership}, store, kConnectTimeout,
                                                       kOperationTimeout));
  return std::move(groups.front());
}

// Moves one message from rank `sender` to the other one, over and over.
absl::Status MoveMessages(Transport transport, int64_t rank, int64_t sender, int port,
                          uint8_t* memory) {
  PLANC_ASSIGN_OR_RETURN(const auto store, ConnectTestStore(port));
  PLANC_ASSIGN_OR_RETURN(const auto group, Connect(transport, rank, store.get()));
  PLANC_RETURN_IF_ERROR(group->RegisterMemory(memory, kMessageBytes));
  if (rank == sender) std::memset(memory, 1, kMessageBytes);
  while (true) {
    PLANC_RETURN_IF_ERROR(rank == sender ? group->Send(1 - rank, memory, kMessageBytes)
                                         : group->Receive(1 - rank, memory, kMessageBytes));
  }
}

// Exits with 7 if the error is the right one.
[[noreturn]] void RunRank(Transport transport, int64_t rank, int64_t sender, int port,
                          uint8_t* memory) {
  const absl::Status status = MoveMessages(transport, rank, sender, port, memory);
  const bool named = status.message().find("lost the connection to rank 1") != std::string::npos;
  if (!named)
    std::fprintf(stderr, "rank %d: %s\n", static_cast<int>(rank), status.ToString().c_str());
  _exit(absl::IsUnavailable(status) && named ? 7 : 12);
}

// The exit code of a process; -1 when a signal ended it, or when this had to.
int ExitCode(pid_t process) {
  const auto deadline = std::chrono::steady_clock::now() + kSurvivorTime;
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) kill(process, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class KilledPeerTest : public testing::TestWithParam<std::tuple<Transport, int64_t>> {};

// Rank 1 is killed when a part of a message has arrived; rank 0 waits for the rest, or for room.
TEST_P(KilledPeerTest, IsNoticedInTheMiddleOfAMessage) {
  const auto [transport, sender] = GetParam();
  absl::StatusOr<Socket> listener = ListenOn("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  const absl::StatusOr<int> port = BoundPort(*listener);
  ASSERT_TRUE(port.ok());
  const SharedBytes memory[2] = {SharedBytes(kMessageBytes), SharedBytes(kMessageBytes)};
  pid_t ranks[2];
  for (int64_t rank = 0; rank < 2; ++rank) {
    ranks[rank] = fork();
    if (ranks[rank] == 0) RunRank(transport, rank, sender, *port, memory[rank].data());
  }
  const auto store = ServeTestStore(*std::move(listener));
  ASSERT_TRUE(store.ok());
  std::atomic_ref<uint8_t> first(*memory[1 - sender].data());
  while (first.load() == 0) std::this_thread::yield();
  kill(ranks[1], SIGKILL);
  EXPECT_EQ(ExitCode(ranks[1]), -1);
  EXPECT_EQ(ExitCode(ranks[0]), 7);
}

INSTANTIATE_TEST_SUITE_P(
    All, KilledPeerTest,
    testing::Combine(testing::Values(Transport::kTcp, Transport::kSharedMemory),
                     testing::Values(0, 1)),
    [](const testing::TestParamInfo<KilledPeerTest::ParamType>& info) {
      return std::string(std::get<0>(info.param) == Transport::kTcp ? "Tcp" : "SharedMemory") +
             (std::get<1>(info.param) == 0 ? "WhileItReceives" : "WhileItSends");
    });

}  // namespace
}  // namespace planc
