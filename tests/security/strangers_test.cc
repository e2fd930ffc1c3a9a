// What others on the machine can do to a run that trains.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/process_group/store_protocol.h"
#include "tests/run_files.h"
#include "tests/started_run.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kLongRun[] = "steps: 1000000, restarts: 0, stall_timeout: 60s";

std::string Folder() {
  return absl::StrCat(::testing::TempDir(), "/",
                      ::testing::UnitTest::GetInstance()->current_test_info()->name());
}

// "12345" of each descriptor of the process that is "socket:[12345]".
std::set<std::string> SocketsOf(pid_t process) {
  std::set<std::string> sockets;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(absl::StrCat("/proc/", process, "/fd"), error)) {
    const std::string target = fs::read_symlink(entry.path(), error).string();
    const std::vector<std::string> parts = absl::StrSplit(target, absl::ByAnyChar("[]"));
    if (parts.size() == 3 && parts[0] == "socket:") sockets.insert(parts[1]);
  }
  return sockets;
}

// Lines of the kernel's tables of TCP and UDP sockets that are about one of the process.
std::vector<std::string> NetworkSocketsOf(pid_t process) {
  const std::set<std::string> own = SocketsOf(process);
  std::vector<std::string> found;
  for (const char* table : {"tcp", "tcp6", "udp", "udp6"}) {
    std::ifstream lines(absl::StrCat("/proc/", process, "/net/", table));
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.size() > 9 && own.count(words[9]) > 0) found.push_back(line);
    }
  }
  return found;
}

// Names in the file system or the abstract space of its sockets of this machine alone.
std::vector<std::string> NamedSocketsOf(pid_t process) {
  const std::set<std::string> own = SocketsOf(process);
  std::vector<std::string> found;
  std::ifstream lines(absl::StrCat("/proc/", process, "/net/unix"));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() > 7 && own.count(words[6]) > 0) found.push_back(line);
  }
  return found;
}

TEST(StrangersTest, ALocalRunHasNoAddress) {
  StartedRun run(Folder(), 2, "dp_shard: 2", kLongRun, "");
  run.Start({"run", "job.yaml"});
  ASSERT_TRUE(run.Await([&] { return run.RowsOfMetrics() >= 2; })) << run.Output();
  std::vector<pid_t> processes = RanksOf(run.process());
  ASSERT_EQ(processes.size(), 2);
  EXPECT_FALSE(SocketsOf(processes[0]).empty()) << "the ranks have a store";
  processes.push_back(run.process());
  for (const pid_t process : processes) {
    EXPECT_THAT(NetworkSocketsOf(process), IsEmpty());
    EXPECT_THAT(NamedSocketsOf(process), IsEmpty());
  }
  kill(run.process(), SIGTERM);
  EXPECT_EQ(run.ExitCode(), 8) << run.Output();
}

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// One that is free now.
int FreePort() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(probe, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(probe, reinterpret_cast<sockaddr*>(&address), &length), 0);
  close(probe);
  return ntohs(address.sin_port);
}

// A connection to the store of a run, by somebody who does not know the secret.
class Stranger {
 public:
  explicit Stranger(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in address = Loopback(port);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Stranger() {
    if (socket_ >= 0) close(socket_);
  }
  Stranger(Stranger&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

  // False when the other end has hung up.
  bool Send(const std::string& bytes) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t more = send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) return false;
      sent += more;
    }
    return true;
  }
  // Everything that comes until the other end hangs up, which it must do within a minute.
  size_t BytesUntilHungUp() const {
    const timeval minute{60, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
    size_t bytes = 0;
    char buffer[4096];
    ssize_t more = 0;
    while ((more = recv(socket_, buffer, sizeof(buffer), 0)) > 0) bytes += more;
    EXPECT_TRUE(more == 0 || errno == ECONNRESET) << "still connected";
    return bytes;
  }

 private:
  int socket_;
};

std::string Request(StoreRequestKind kind, int64_t argument, const std::string& key,
                    const std::string& value) {
  StoreRequest request;
  request.kind = kind;
  request.argument = argument;
  request.key_bytes = key.size();
  request.value_bytes = value.size();
  return absl::StrCat(std::string(reinterpret_cast<const char*>(&request), sizeof(request)), key,
                      value);
}

// Two ranks as torchrun starts them, which meet at a port. This process becomes rank 0.
void BecomeTwoRanks(int port) {
  const bool first = fork() != 0;
  for (const auto& [name, value] : {std::pair<const char*, std::string>{"RANK", first ? "0" : "1"},
                                    {"LOCAL_RANK", first ? "0" : "1"},
                                    {"WORLD_SIZE", "2"},
                                    {"LOCAL_WORLD_SIZE", "2"},
                                    {"TORCHELASTIC_RUN_ID", "attacked"},
                                    {"MASTER_ADDR", "127.0.0.1"},
                                    {"MASTER_PORT", absl::StrCat(port)}}) {
    setenv(name, value.c_str(), 1);
  }
}

std::vector<std::string> SecretFiles(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, ".planc-secret-")) found.push_back(name);
  }
  return found;
}

// A stranger gets a greeting, and no more.
constexpr size_t kMostTold = 256;

TEST(StrangersTest, WhatTheySayToTheStoreChangesNothing) {
  const int port = FreePort();
  StartedRun run(Folder(), 2, "dp_shard: 2", kLongRun, "");
  run.Start({"run", "job.yaml"}, [port] {
    // Fewer than the strangers below try to take.
    const rlimit limit{64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    BecomeTwoRanks(port);
  });
  ASSERT_TRUE(run.Await([&] { return run.RowsOfMetrics() >= 2; })) << run.Output();
  EXPECT_THAT(SecretFiles(run.folder() + "/run"), IsEmpty());

  {
    const Stranger stranger(port);
    stranger.Send(Request(StoreRequestKind::kSet, 0, "attacked.0/control/stop/step",
                          "3 " + std::string(200, 'x')));
    EXPECT_LT(stranger.BytesUntilHungUp(), kMostTold);
  }
  {
    const Stranger stranger(port);
    stranger.Send(Request(StoreRequestKind::kJoin, 1, "", ""));
    stranger.Send(std::string(4096, 'x'));
    EXPECT_LT(stranger.BytesUntilHungUp(), kMostTold);
  }
  {
    const Stranger stranger(port);
    const std::string flood =
        Request(StoreRequestKind::kSet, 0, "memory", std::string(kMaximumStoreBytes, 'x'));
    EXPECT_FALSE(stranger.Send(flood)) << "64 MiB were taken";
  }
  std::vector<Stranger> silent;
  silent.reserve(200);
  for (int i = 0; i < 200; ++i) silent.emplace_back(port);

  const int64_t rows = run.RowsOfMetrics();
  EXPECT_TRUE(run.Await([&] { return run.RowsOfMetrics() >= rows + 3; })) << run.Output();
  kill(run.process(), SIGTERM);
  EXPECT_EQ(run.ExitCode(), 8) << run.Output();
  EXPECT_THAT(run.Output(), HasSubstr("stopped by SIGTERM"));
  EXPECT_GE(run.StepsSaved(), rows + 3) << "the checkpoint had no files";
}

}  // namespace
}  // namespace planc
