// The rows of docs/exit_codes.md, each with the real program: causes, exit codes and messages.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/run_files.h"
#include "tests/started_run.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

std::string Folder() {
  return absl::StrCat(::testing::TempDir(), "/",
                      ::testing::UnitTest::GetInstance()->current_test_info()->name());
}

// A port that somebody else listens on.
class LocalPort {
 public:
  LocalPort() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, length), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, any, &length), 0);
    port_ = absl::StrCat(ntohs(address.sin_port));
  }
  ~LocalPort() { close(listener_); }
  LocalPort(const LocalPort&) = delete;
  LocalPort& operator=(const LocalPort&) = delete;

  const std::string& port() const { return port_; }
  // Says `words` to whoever connects, and hangs up.
  void Greet(const std::string& words) const {
    while (true) {
      const int client = accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      send(client, words.data(), words.size(), MSG_NOSIGNAL);
      close(client);
    }
  }
  void StopGreeting() const { shutdown(listener_, SHUT_RDWR); }

 private:
  const int listener_;
  std::string port_;
};

// What torchrun sets for one of two ranks.
void SetRank(int rank, const std::string& host, const std::string& port) {
  setenv("RANK", absl::StrCat(rank).c_str(), 1);
  setenv("LOCAL_RANK", absl::StrCat(rank).c_str(), 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  setenv("MASTER_ADDR", host.c_str(), 1);
  setenv("MASTER_PORT", port.c_str(), 1);
}

class ExitCodesTest : public ::testing::Test {
 protected:
  // Runs planc with the words of `command`; its output must hold `message`.
  void Expect(int code, const std::string& command, const std::string& message,
              const std::function<void()>& prepare = nullptr) {
    std::filesystem::remove(run_.folder() + "/planc.log");
    EXPECT_EQ(run_.Run(absl::StrSplit(command, ' '), prepare), code) << command << ":\n"
                                                                     << run_.Output();
    EXPECT_THAT(run_.Output(), HasSubstr(message)) << command;
  }
  void ExpectBoth(int code, const std::string& more, const std::string& message) {
    Expect(code, absl::StrCat("run job.yaml ", more), message);
    Expect(code, absl::StrCat("run two.yaml ", more), message);
  }

  ExitCodesTest() : run_(Folder(), 1, "", "steps: 3, restarts: 0", "") {
    // The same job with two ranks.
    std::string two = ReadText(run_.folder() + "/job.yaml");
    two.replace(two.find("gpus_per_node: 1"), 16, "gpus_per_node: 2");
    two.replace(two.find("mesh: {}"), 8, "mesh: {dp_shard: 2}");
    std::ofstream(run_.folder() + "/two.yaml") << two;
    std::ofstream(run_.folder() + "/empty").flush();
    EXPECT_EQ(mkfifo((run_.folder() + "/pipe").c_str(), 0644), 0);
  }

  StartedRun run_;
};

void LimitFiles(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

TEST_F(ExitCodesTest, WhereARunCannotWriteIsTwo) {
  ExpectBoth(2, "--set run.directory=train.txt", "train.txt: cannot create: File exists");
  ExpectBoth(2, "--set run.directory=train.txt/x", "train.txt: cannot create: File exists");
  ExpectBoth(2, "--set run.directory=/proc/none/x",
             "/proc/none: cannot create: No such file or directory");
  ExpectBoth(2, "--set checkpoint.directory=train.txt", "train.txt: cannot create: File exists");
  // Two ranks write a plan first, one only metrics and checkpoints.
  Expect(2, "run two.yaml", "run/plan.plan.partial: cannot write: File too large",
         [] { LimitFiles(4096); });
  Expect(2, "run job.yaml", ": cannot write", [] { LimitFiles(512); });
  std::filesystem::remove(run_.folder() + "/run/plan.plan");
  std::filesystem::create_directories(run_.folder() + "/run/plan.plan");
  Expect(2, "run two.yaml", "run/plan.plan: cannot write: Is a directory");
}

TEST_F(ExitCodesTest, WhatARunCannotReadIsTwo) {
  ExpectBoth(2, "--set data.train=[none.txt]", "none.txt: No such file or directory");
  ExpectBoth(2, "--set data.train=[pipe]", "pipe: it is a pipe, not a regular file");
  ExpectBoth(2, "--set data.train=[/dev/zero]", "/dev/zero: it is a device, not a regular file");
  ExpectBoth(2, "--set data.train=[.]", "it is a folder, not a regular file");
  ExpectBoth(2, "--resume=none", "there is no complete checkpoint here");
  for (const std::string command : {"run", "plan", "check", "diff job.yaml"}) {
    Expect(2, command + " pipe", "pipe");
    Expect(2, command + " /dev/zero", "/dev/zero");
    Expect(2, command + " .", "it is a folder");
    Expect(2, command + " none.yaml", "there is no such file");
    Expect(2, command + " empty", "empty");
  }
}

TEST_F(ExitCodesTest, WhereResultsCannotBeWrittenIsTwo) {
  Expect(2, "plan job.yaml -o none/x.plan", "none/x.plan.partial: cannot write: No such file");
  Expect(2, "plan job.yaml -o train.txt/x.plan", "cannot write: Not a directory");
  Expect(2, "plan job.yaml -o run/..", "cannot write");
  Expect(2, "plan job.yaml -o .", ".: cannot write: Is a directory");
  Expect(2, "plan job.yaml -o /dev/full", "/dev/full: cannot write: No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  Expect(2, "plan job.yaml -o x.plan", "x.plan.partial: cannot write: File too large",
         [] { LimitFiles(4096); });
  EXPECT_FALSE(std::filesystem::exists(run_.folder() + "/x.plan.partial"));
  Expect(0, "plan job.yaml -o /dev/null", "");
  Expect(2, "help --man=none", "none/planc.1.partial: cannot write: No such file or directory");
  const auto to_full_disk = [] {
    if (std::freopen("/dev/full", "w", stdout) == nullptr) _exit(125);
  };
  for (const std::string command : {"plan job.yaml", "schema", "check job.yaml",
                                    "where job.yaml model.norm.weight", "help", "version"}) {
    Expect(2, command, "standard output: cannot write: No space left on device", to_full_disk);
  }
}

TEST_F(ExitCodesTest, ConvertingCheckpoints) {
  Expect(0, "run job.yaml", "");
  Expect(2, "checkpoint export saved train.txt/x", "train.txt: cannot create: File exists");
  Expect(2, "checkpoint export saved /proc/none", "/proc/none");
  Expect(2, "checkpoint export none x", "there is no complete checkpoint here");
  Expect(0, "checkpoint export saved exported", "");
  Expect(2, "checkpoint import exported train.txt/x --job=job.yaml",
         "train.txt: cannot create: File exists");
  Expect(2, "checkpoint import none x --job=job.yaml", "none");
  Expect(2, "sample none --prompt=a", "there is no complete checkpoint here");
  Expect(2, "checkpoint ls none", "there is no complete checkpoint here");
  std::filesystem::remove(run_.folder() + "/saved/step-00000003/manifest.json");
  std::filesystem::create_directories(run_.folder() + "/saved/step-00000003/manifest.json");
  Expect(6, "checkpoint ls saved/step-00000003", "manifest.json: it is a folder");
}

TEST_F(ExitCodesTest, TrainingFaultsAreSix) {
  ExpectBoth(6, "--set data.format=tokens", "train.txt: is text, read as uint16 tokens");
  ExpectBoth(6, "--set data.train=[empty]", "empty");
  ExpectBoth(6, "--set optimizer.lr=1e30", "is ");
}

TEST_F(ExitCodesTest, APortThatIsTakenIsTwo) {
  const LocalPort taken;
  Expect(2, "run two.yaml",
         absl::StrCat("cannot listen on port ", taken.port(), ": Address already in use"),
         [&] { SetRank(0, "127.0.0.1", taken.port()); });
}

TEST_F(ExitCodesTest, AHostNameThatDoesNotExistIsTwo) {
  Expect(2, "run two.yaml", "cannot resolve no..host: ", [] { SetRank(0, "no..host", "29500"); });
}

TEST_F(ExitCodesTest, AStrangerOnThePortIsTwo) {
  const LocalPort port;
  std::thread stranger([&port] { port.Greet("SSH-2.0-OpenSSH_9.2\r\n"); });
  Expect(2, "run two.yaml",
         absl::StrCat("store of rank 0: 127.0.0.1 port ", port.port(),
                      ": who listens there is no rank of this job: it says \"SSH-2.0-OpenSSH_9.2"),
         [&] { SetRank(1, "127.0.0.1", port.port()); });
  port.StopGreeting();
  stranger.join();
}

TEST_F(ExitCodesTest, ASecretThatCanBeGuessedIsTwo) {
  Expect(2, "run two.yaml", "PLANC_SECRET has 6 characters", [] {
    SetRank(0, "127.0.0.1", "0");
    setenv("PLANC_SECRET", "secret", 1);
  });
}

TEST_F(ExitCodesTest, ALauncherThatTellsTooLittleIsTwo) {
  Expect(2, "run job.yaml", "mpirun -n 4 --map-by ppr:4:node planc run",
         [] { setenv("PMIX_RANK", "1", 1); });
  Expect(2, "run two.yaml", "Open MPI started 3: start it with mpirun -n 2 --map-by ppr:2:node",
         [] {
           setenv("OMPI_COMM_WORLD_RANK", "0", 1);
           setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
           setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
           setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
         });
  EXPECT_FALSE(std::filesystem::exists(run_.folder() + "/run/metrics.jsonl"));
}

TEST_F(ExitCodesTest, TooManyOpenFilesIsTwo) {
  Expect(2, "run two.yaml", "Too many open files", [] {
    const rlimit limit{12, 12};
    setrlimit(RLIMIT_NOFILE, &limit);
  });
}

TEST_F(ExitCodesTest, FewerOpenFilesThanARankNeedsIsTwo) {
  Expect(2, "run two.yaml", "rank 0 needs 44 open files: 9 connections to the store", [] {
    const rlimit limit{41, 41};
    setrlimit(RLIMIT_NOFILE, &limit);
  });
  // Only the soft limit is low: planc raises it.
  Expect(0, "run two.yaml", "", [] {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 41;
    setrlimit(RLIMIT_NOFILE, &limit);
  });
}

TEST_F(ExitCodesTest, RanksThatWouldNotFitAreNotStarted) {
  const std::string larger = " --set model.hidden=512 --set model.ffn_hidden=2048 --fresh";
  const auto limit_memory = [](int resource, rlim_t bytes) {
    const rlimit limit{bytes, bytes};
    setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  };
  Expect(3, "run two.yaml" + larger, "by RLIMIT_DATA (ulimit -d)",
         [&] { limit_memory(RLIMIT_DATA, rlim_t{64} << 20); });
  Expect(3, "run job.yaml" + larger, "the 1 rank of this machine would not fit into its memory",
         [&] { limit_memory(RLIMIT_DATA, rlim_t{64} << 20); });
  EXPECT_FALSE(std::filesystem::exists(run_.folder() + "/run/run.json"));
  Expect(0, "run two.yaml", "", [&] { limit_memory(RLIMIT_DATA, rlim_t{1} << 40); });
}

TEST_F(ExitCodesTest, ALostRankIsSeven) {
  run_.Start({"run", "two.yaml", "--set", "run.steps=1000000"});
  ASSERT_TRUE(run_.Await([&] { return run_.RowsOfMetrics() >= 1; })) << run_.Output();
  kill(RanksOf(run_.process()).back(), SIGKILL);
  EXPECT_EQ(run_.ExitCode(), 7) << run_.Output();
}

TEST_F(ExitCodesTest, TheOthers) {
  Expect(0, "plan job.yaml -o a.plan", "");
  Expect(3, "run job.yaml --set cluster.memory=64KiB", "PL0301");
  Expect(5, "diff job.yaml two.yaml", "mesh");
  std::ofstream(run_.folder() + "/a.plan", std::ios::app) << "more";
  Expect(2, "run a.plan", "a.plan");
  Expect(2, "run job.yaml --no-such-flag", "no-such-flag");
}

}  // namespace
}  // namespace planc
