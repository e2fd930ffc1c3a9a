// Runs of one job on several instruction sets, through the command line: what must be equal, bit
// for bit, is. See docs/reproducibility.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/instruction_set.h"
#include "runtime/metrics/metrics_writer.h"
#include "tests/run_files.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using host::InstructionSet;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Small, with sizes that are no multiple of vectors and tiles.
constexpr char kJob[] = R"(job: sets
model: {family: llama, layers: 2, hidden: 72, heads: 6, kv_heads: 2, ffn_hidden: 168, vocab: 259,
        max_sequence: 80}
cluster: {nodes: 1, gpus_per_node: 2, device: host}
mesh: {dp_shard: 2}
batch: {global: 4, micro: 2, sequence: 80}
precision: {compute: bf16}
optimizer: {lr: 3e-3}
data: {train: [train.txt], format: bytes}
checkpoint: {directory: saved, every_steps: 4, resume: never}
lr_schedule: {decay: constant}
run: {steps: 4, directory: run, restarts: 0}
)";

// A port of the loopback address that nobody listens on.
int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(socket);
  return ntohs(address.sin_port);
}

class InstructionSetRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto largest = host::DetectInstructionSet();
    ASSERT_TRUE(largest.ok()) << largest.status();
    largest_ = *largest;
    top_ = absl::StrCat(::testing::TempDir(), "/sets_",
                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top_);
  }
  void TearDown() override { fs::remove_all(top_); }

  // A folder with the job, whose runs do not meet those of other folders.
  std::string Folder(const std::string& name) const {
    const std::string folder = absl::StrCat(top_, "/", name);
    fs::create_directories(folder);
    std::ofstream(folder + "/train.txt") << LearnableText(4000);
    std::ofstream(folder + "/job.yaml") << kJob;
    return folder;
  }

  // Runs planc on the job of a folder; what it prints goes to output_, with line breaks as blanks.
  int Planc(const std::string& command, const std::string& folder, const std::string& arguments) {
    return Shell(absl::StrCat("planc/planc ", command, " ", folder, "/job.yaml ", arguments, " > ",
                              folder, "/log 2>&1"),
                 folder);
  }
  int Shell(const std::string& line, const std::string& folder) {
    const int status = std::system(line.c_str());
    const std::vector<std::string> words =
        absl::StrSplit(ReadText(folder + "/log"), absl::ByAnyChar(" \n"), absl::SkipEmpty());
    output_ = absl::StrJoin(words, " ");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // Everything that a run computed: its tensors, to the byte, and its losses.
  static std::map<std::string, std::string> Results(const std::string& folder) {
    std::map<std::string, std::string> results;
    for (const auto& entry : fs::directory_iterator(folder + "/saved/step-00000004")) {
      if (entry.path().extension() != ".safetensors") continue;
      results[entry.path().filename().string()] = ReadText(entry.path().string());
    }
    EXPECT_EQ(results.size(), 2u);
    const auto rows = ReadMetrics(folder + "/run/metrics.jsonl");
    EXPECT_TRUE(rows.ok()) << rows.status();
    if (!rows.ok()) return results;
    EXPECT_EQ(rows->size(), 4u);
    for (const StepMetrics& row : *rows) {
      absl::StrAppendFormat(&results["losses"], "%a %a ", row.loss, row.grad_norm);
    }
    return results;
  }

  InstructionSet largest_ = InstructionSet::kAvx2;
  std::string top_;
  std::string output_;
};

// bf16 on all sets of one class, fp32 on all sets.
TEST_F(InstructionSetRunTest, SetsOfOneClassGiveTheSameBits) {
  for (const std::string compute : {"fp32", "bf16"}) {
    std::map<std::string, std::map<std::string, std::string>> by_bits;
    for (const InstructionSet set : host::InstructionSetsUpTo(largest_)) {
      const std::string name = host::InstructionSetName(set);
      const std::string folder = Folder(compute + "_" + name);
      ASSERT_EQ(
          Planc("run", folder,
                absl::StrCat("--set precision.compute=", compute, " --instruction-set=", name)),
          0)
          << output_;
      const std::string bits = compute == "fp32" ? "all" : host::InstructionSetBits(set);
      const auto results = Results(folder);
      const auto [first, is_first] = by_bits.emplace(bits, results);
      EXPECT_TRUE(first->second == results) << compute << " on " << name;
      std::cout << compute << " on " << name << (is_first ? "" : ": the bits of the sets before")
                << std::endl;
    }
  }
  if (largest_ < InstructionSet::kAvx512) GTEST_SKIP() << "this machine has avx2 alone";
}

TEST_F(InstructionSetRunTest, ASetThatTheMachineLacksIsRefused) {
  const std::string folder = Folder("lacking");
  EXPECT_EQ(Planc("run", folder, "--instruction-set=sse2"), 2);
  EXPECT_THAT(output_, HasSubstr("avx2"));
  if (largest_ == InstructionSet::kAmxBf16) GTEST_SKIP() << "this machine lacks none";
  EXPECT_EQ(Planc("run", folder, "--instruction-set=amx_bf16"), 2);
  EXPECT_THAT(output_, HasSubstr("this machine lacks"));
}

// Two ranks that offer different sets, as on two machines: the job runs on the smaller one.
TEST_F(InstructionSetRunTest, MixedRanksRunOnTheCommonSet) {
  if (largest_ == InstructionSet::kAvx2) GTEST_SKIP() << "this machine has avx2 alone";
  const std::string common = Folder("common");
  ASSERT_EQ(Planc("run", common, "--instruction-set=avx2"), 0) << output_;
  const std::string mixed = Folder("mixed");
  const std::string sets[] = {host::InstructionSetName(largest_), "avx2"};
  const std::string launch = absl::StrCat(
      "WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=", FreePort());
  const auto rank = [&](int number, const std::string& log) {
    return absl::StrCat(launch, " RANK=", number, " LOCAL_RANK=", number, " planc/planc run ",
                        mixed, "/job.yaml --instruction-set=", sets[number], " > ", mixed, log,
                        " 2>&1");
  };
  const std::string both =
      absl::StrCat(rank(1, "/log1"), " & ", rank(0, "/log"), "; code=$?; wait $! && exit $code");
  ASSERT_EQ(Shell(both, mixed), 0) << output_ << ReadText(mixed + "/log1");
  EXPECT_THAT(output_, HasSubstr(absl::StrCat("the job runs on instruction set avx2, rank 1 has no "
                                              "larger one; rank 0 has ",
                                              sets[0])));
  EXPECT_TRUE(Results(mixed) == Results(common));
}

TEST_F(InstructionSetRunTest, ResumingOnOtherBitsSaysSo) {
  if (largest_ < InstructionSet::kAmxBf16) GTEST_SKIP() << "this machine has one class of bits";
  const std::string folder = Folder("resumed");
  ASSERT_EQ(Planc("run", folder, "--instruction-set=avx512"), 0) << output_;
  const std::string notice =
      "saved on instruction set avx512, goes on on amx_bf16, which sums bf16 in another order";
  EXPECT_EQ(Planc("check", folder, "--resume=auto --set run.steps=6"), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr(notice), testing::Not(HasSubstr("bit for bit"))));
  EXPECT_EQ(Planc("run", folder, "--set checkpoint.resume=auto --set run.steps=6"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr(notice));
  // Its own set again: nothing to say.
  EXPECT_EQ(Planc("check", folder, "--resume=auto --set precision.compute=fp32"), 0) << output_;
  EXPECT_THAT(output_, testing::Not(HasSubstr("in another order")));
}

}  // namespace
}  // namespace planc
