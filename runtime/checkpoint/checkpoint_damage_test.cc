// Checkpoints whose files are not what was written.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/saved_tensors.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"
#include "runtime/checkpoint/verify_checkpoint.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// One byte of a file with one bit turned over, until the end of its life.
class FlippedByte {
 public:
  FlippedByte(const std::string& path, int64_t at) : file_(path, kMode), at_(at) { Flip(); }
  ~FlippedByte() { Flip(); }

 private:
  static constexpr auto kMode = std::ios::in | std::ios::out | std::ios::binary;

  void Flip() {
    file_.seekg(at_);
    const char byte = static_cast<char>(file_.get() ^ (1 << (at_ % 8)));
    file_.seekp(at_);
    file_.put(byte);
    file_.flush();
  }

  std::fstream file_;
  const int64_t at_;
};

class CheckpointDamageTest : public testing::Test {
 protected:
  CheckpointDamageTest()
      : plan_(CheckpointTestPlan(1, 1, 2, 1)),
        directory_(testing::TempDir() + "damage_" +
                   testing::UnitTest::GetInstance()->current_test_info()->name()),
        checkpoint_(directory_ + "/step-00000001") {
    fs::remove_all(directory_);
    EXPECT_TRUE(SaveState(plan_, directory_, 1, 1).ok());
  }

  std::string File(const std::string& name) const { return checkpoint_ + "/" + name; }

  // What Verify and Load say of the damage: both must refuse it, with the same words.
  std::string Complaint() const {
    const auto report = VerifyCheckpoint(checkpoint_);
    const absl::Status loaded = LoadState(plan_, checkpoint_, 1);
    EXPECT_FALSE(loaded.ok());
    if (!report.ok()) return std::string(report.status().message());
    EXPECT_THAT(report->defects, testing::Not(IsEmpty()));
    return report->defects.empty() ? "" : report->defects.front();
  }

  // Reads every tensor of a shard file as loading does; the first complaint.
  std::string ComplaintOfTensors(const Manifest& manifest, const std::string& file) const {
    SavedTensors saved(checkpoint_, manifest);
    for (const auto& [name, parameter] : manifest.parameters) {
      for (const std::vector<SavedTensor>& pieces : parameter.state) {
        for (const SavedTensor& piece : pieces) {
          if (piece.file != file) continue;
          const absl::Status status = saved.Tensor(piece).status();
          if (!status.ok()) return std::string(status.message());
        }
      }
    }
    return "";
  }

  const Plan plan_;
  const std::string directory_;
  const std::string checkpoint_;
};

// Key of the tensor that byte `at` belongs to; empty in the header.
std::string KeyAt(const SafetensorsFile& file, const char* begin, int64_t at) {
  for (const auto& [key, tensor] : file.tensors()) {
    const int64_t first = tensor.data - begin;
    if (at >= first && at < first + tensor.bytes) return key;
  }
  return "";
}

TEST_F(CheckpointDamageTest, EveryFlippedByteOfAShardFileIsFoundAndNamed) {
  const auto manifest = ReadManifest(checkpoint_);
  ASSERT_TRUE(manifest.ok());
  int64_t positions = 0;
  int64_t named = 0;
  for (const auto& [name, file] : manifest->files) {
    const auto whole = SafetensorsFile::Open(File(name));
    ASSERT_TRUE(whole.ok());
    const char* begin = whole->tensors().begin()->second.data;
    for (const auto& [key, tensor] : whole->tensors()) begin = std::min(begin, tensor.data);
    int64_t data_bytes = 0;
    for (const auto& [key, tensor] : whole->tensors()) data_bytes += tensor.bytes;
    begin -= file.bytes - data_bytes;
    for (int64_t at = 0; at < file.bytes; ++at, ++positions) {
      const std::string key = KeyAt(*whole, begin, at);
      const FlippedByte flipped(File(name), at);
      const std::string complaint = ComplaintOfTensors(*manifest, name);
      ASSERT_THAT(complaint, HasSubstr(absl::StrCat(checkpoint_, "/", name, ": "))) << at;
      if (key.empty()) continue;
      ++named;
      ASSERT_THAT(complaint, HasSubstr(absl::StrCat(": tensor ", key, " "))) << at;
    }
  }
  std::cout << positions << " bytes, " << named << " of them in tensors\n";
  EXPECT_EQ(named, 3 * 4 * (13 * 6 + 3 * (72 + 72 + 12 + 6)));
}

TEST_F(CheckpointDamageTest, EveryFlippedByteOfTheManifestIsFound) {
  const std::string text = Contents(File(kManifestName));
  ASSERT_TRUE(ParseManifest(text).ok());
  std::string flipped = text;
  for (size_t at = 0; at < text.size(); ++at) {
    flipped[at] = static_cast<char>(text[at] ^ (1 << (at % 8)));
    ASSERT_FALSE(ParseManifest(flipped).ok()) << at;
    flipped[at] = text[at];
  }
  std::cout << text.size() << " bytes\n";
  // White space counts as well.
  ASSERT_FALSE(ParseManifest(text + " ").ok());
  ASSERT_FALSE(ParseManifest("\n" + text).ok());
  for (size_t at = 0; at < text.size(); at += 1 + text.size() / 2000) {
    ASSERT_FALSE(ParseManifest(text.substr(0, at)).ok()) << at;
  }
}

TEST_F(CheckpointDamageTest, VerifyAndLoadRefuseFlippedBytes) {
  int64_t positions = 0;
  for (const auto& entry : fs::directory_iterator(checkpoint_)) {
    const int64_t size = static_cast<int64_t>(entry.file_size());
    for (int64_t at = positions % 7; at < size; at += 1 + size / 100, ++positions) {
      const FlippedByte flipped(entry.path().string(), at);
      EXPECT_THAT(Complaint(), HasSubstr(entry.path().filename().string()));
    }
  }
  EXPECT_GT(positions, 250);
  const auto report = VerifyCheckpoint(checkpoint_);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->defects, IsEmpty());
  EXPECT_TRUE(LoadState(plan_, checkpoint_, 1).ok());
}

TEST_F(CheckpointDamageTest, TruncatedFilesAreFound) {
  const std::string path = File("rank-00001.safetensors");
  const std::string whole = Contents(path);
  for (size_t bytes = 0; bytes < whole.size(); bytes += 1 + whole.size() / 100) {
    fs::resize_file(path, bytes);
    EXPECT_THAT(Complaint(), HasSubstr("rank-00001.safetensors: "));
    std::ofstream(path, std::ios::binary) << whole;
  }
  std::ofstream(path, std::ios::binary) << whole << "more";
  EXPECT_THAT(Complaint(), HasSubstr("rank-00001.safetensors: "));
}

TEST_F(CheckpointDamageTest, FilesOfOthersAreFound) {
  // Of another rank.
  fs::rename(File("rank-00000.safetensors"), File("a"));
  fs::rename(File("rank-00001.safetensors"), File("rank-00000.safetensors"));
  fs::rename(File("a"), File("rank-00001.safetensors"));
  EXPECT_THAT(Complaint(), HasSubstr("rank-00000.safetensors: "));
  // Of another checkpoint.
  ASSERT_TRUE(SaveState(plan_, directory_, 1, 1).ok());
  ASSERT_TRUE(SaveState(plan_, directory_, 2, 2).ok());
  fs::copy_file(directory_ + "/step-00000002/rank-00001.safetensors",
                File("rank-00001.safetensors"), fs::copy_options::overwrite_existing);
  EXPECT_THAT(Complaint(), HasSubstr("rank-00001.safetensors: "));
}

TEST_F(CheckpointDamageTest, AForeignFileIsReportedAndNotUsed) {
  std::ofstream(File("notes.txt")) << "mine";
  const auto report = VerifyCheckpoint(checkpoint_);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->defects,
              testing::ElementsAre(HasSubstr("notes.txt: does not belong to the checkpoint")));
  EXPECT_TRUE(LoadState(plan_, checkpoint_, 1).ok());
}

}  // namespace
}  // namespace planc
