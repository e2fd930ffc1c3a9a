// How fast ranks on one machine exchange data: shared memory beside TCP on the loopback interface,
// in turns, between the same processes.
//   exchange_benchmark [RANKS [ROUNDS [OPERATION]]]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/process_group/gloo_group.h"
#include "runtime/process_group/shared_memory_group.h"
#include "runtime/process_group/socket.h"
#include "runtime/process_group/store_client.h"
#include "runtime/process_group/store_server.h"
#include "runtime/process_group/test_store.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(1);
constexpr int64_t kLargest = int64_t{64} << 20;
constexpr int64_t kBytesPerRound = int64_t{256} << 20;  // moved before the clock is read again

enum class Exchange { kAllReduce, kReduceScatter, kAllGather, kTransfer };
struct NamedExchange {
  Exchange exchange;
  const char* name;
};
constexpr NamedExchange kExchanges[] = {{Exchange::kAllReduce, "all_reduce"},
                                        {Exchange::kReduceScatter, "reduce_scatter"},
                                        {Exchange::kAllGather, "all_gather"},
                                        {Exchange::kTransfer, "send_receive"}};

// One rank's two groups with the same members, and the memory they work on.
struct ExchangeRank {
  std::array<std::unique_ptr<ProcessGroup>, 2> groups;  // TCP, shared memory
  std::vector<float> memory;

  float* data() { return memory.data(); }
  // All that the collectives write beside the data: chunks received, or the gathered result.
  float* scratch() { return memory.data() + kLargest / 4; }
};

absl::Status ConnectRank(int64_t rank, int64_t ranks, int port, ExchangeRank* out) {
  PLANC_ASSIGN_OR_RETURN(const std::shared_ptr<StoreClient> store, ConnectTestStore(port));
  GroupMembership membership{"benchmark", {}, rank};
  for (int64_t member = 0; member < ranks; ++member) membership.members.push_back(member);
  PLANC_ASSIGN_OR_RETURN(const auto network,
                         GlooNetwork::Create("127.0.0.1", "the secret of tests"));
  PLANC_ASSIGN_OR_RETURN(auto tcp,
                         network->Connect("tcp", {membership}, store.get(), kTimeout, kTimeout));
  out->groups[0] = std::move(tcp.front());
  PLANC_ASSIGN_OR_RETURN(out->groups[1], ConnectSharedMemoryGroup("memory", membership, store.get(),
                                                                  kTimeout, kTimeout));
  out->memory.assign(2 * (kLargest / 4), 0.0f);
  for (const auto& group : out->groups) {
    PLANC_RETURN_IF_ERROR(group->RegisterMemory(out->memory.data(), 2 * kLargest));
  }
  return absl::OkStatus();
}

// `bytes`: of the larger side of the operation.
absl::Status Once(Exchange exchange, int64_t bytes, ProcessGroup* group, ExchangeRank* rank) {
  const int64_t ranks = group->membership().size();
  const int64_t self = group->membership().index;
  const int64_t count = bytes / 4;
  float* const own = rank->data() + self * (count / ranks);
  switch (exchange) {
    case Exchange::kAllReduce:
      return group->AllReduce(rank->data(), count, DType::kF32, ReduceOp::kSum, rank->scratch());
    case Exchange::kReduceScatter:
      return group->ReduceScatter(rank->data(), own, count / ranks, DType::kF32, rank->scratch());
    case Exchange::kAllGather:
      return group->AllGather(own, rank->data(), count / ranks, DType::kF32);
    case Exchange::kTransfer:
      if (self > 1) return absl::OkStatus();
      return self == 0 ? group->Send(1, rank->data(), bytes)
                       : group->Receive(0, rank->data(), bytes);
  }
  return absl::InternalError("no such exchange");
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

absl::Status Measure(const NamedExchange& what, int64_t bytes, int rounds, ExchangeRank* rank) {
  const int64_t repeats = std::clamp<int64_t>(kBytesPerRound / bytes, 3, 1000);
  std::array<std::vector<double>, 2> seconds;
  for (int round = 0; round < rounds; ++round) {
    for (size_t transport = 0; transport < seconds.size(); ++transport) {
      ProcessGroup* const group = rank->groups[transport].get();
      PLANC_RETURN_IF_ERROR(Once(what.exchange, bytes, group, rank));
      PLANC_RETURN_IF_ERROR(group->Barrier());
      const absl::Time begin = absl::Now();
      for (int64_t repeat = 0; repeat < repeats; ++repeat) {
        PLANC_RETURN_IF_ERROR(Once(what.exchange, bytes, group, rank));
      }
      PLANC_RETURN_IF_ERROR(group->Barrier());
      seconds[transport].push_back(absl::ToDoubleSeconds(absl::Now() - begin) /
                                   static_cast<double>(repeats));
    }
  }
  if (rank->groups[0]->membership().index != 0) return absl::OkStatus();
  const double tcp = Median(seconds[0]);
  const double shared = Median(seconds[1]);
  std::printf("%-15s %5d %9.0f %12.1f %12.1f %8.1fx %8.2f\n", what.name,
              static_cast<int>(rank->groups[0]->membership().size()),
              static_cast<double>(bytes) / 1024, 1e6 * tcp, 1e6 * shared, tcp / shared,
              static_cast<double>(bytes) / shared / 1e9);
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status RunRank(int64_t rank, int64_t ranks, int port, int rounds, const std::string& only) {
  ExchangeRank state;
  PLANC_RETURN_IF_ERROR(ConnectRank(rank, ranks, port, &state));
  if (rank == 0) {
    std::printf("%-15s %5s %9s %12s %12s %9s %8s\n", "", "ranks", "KiB", "TCP us", "shared us",
                "ratio", "GB/s");
  }
  for (const NamedExchange& what : kExchanges) {
    if (!only.empty() && only != what.name) continue;
    for (int64_t bytes = 4096; bytes <= kLargest; bytes *= 4) {
      PLANC_RETURN_IF_ERROR(Measure(what, bytes, rounds, &state));
    }
  }
  return state.groups[1]->Barrier();
}

absl::Status Run(int64_t ranks, int rounds, const std::string& only) {
  PLANC_ASSIGN_OR_RETURN(Socket listener, ListenOn("127.0.0.1", 0));
  PLANC_ASSIGN_OR_RETURN(const int port, BoundPort(listener));
  for (int64_t rank = 1; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    listener.Close();
    const absl::Status status = RunRank(rank, ranks, port, rounds, only);
    if (!status.ok()) std::fprintf(stderr, "rank: %s\n", status.ToString().c_str());
    _exit(status.ok() ? 0 : 1);
  }
  PLANC_ASSIGN_OR_RETURN(const auto server, ServeTestStore(std::move(listener)));
  const absl::Status status = RunRank(0, ranks, port, rounds, only);
  while (wait(nullptr) > 0) {
  }
  return status;
}

}  // namespace
}  // namespace planc

int main(int argc, char** argv) {
  const int64_t ranks = argc > 1 ? std::atoll(argv[1]) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const absl::Status status = planc::Run(ranks, rounds, argc > 3 ? argv[3] : "");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
