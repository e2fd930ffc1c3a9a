#include "runtime/data/mapped_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

constexpr int64_t kBytes = 1 << 20;

std::string WriteFile(const std::string& name) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << std::string(kBytes, 'x') << "end";
  return path;
}

TEST(MappedFileTest, FetchAndReleaseKeepTheContents) {
  const auto file = MappedFile::Open(WriteFile("whole"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), kBytes + 3);
  const char* const tail = file->data() + kBytes;
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(file->Fetch(tail, 3).ok());
    EXPECT_EQ(std::string(tail, 3), "end");
    file->ReleaseMemory(file->data() + 5, kBytes);
    EXPECT_EQ(file->data()[4], 'x');
    EXPECT_EQ(file->data()[kBytes - 1], 'x');
  }
  EXPECT_TRUE(file->Fetch(tail, 0).ok());
}

TEST(MappedFileTest, AFileThatIsCutShortIsAnError) {
  const std::string path = WriteFile("cut");
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::resize_file(path, kBytes / 2);
  EXPECT_TRUE(file->Fetch(file->data(), kBytes / 2).ok());
  const absl::Status status = file->Fetch(file->data(), kBytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("cannot be read"));
}

TEST(MappedFileTest, Errors) {
  EXPECT_EQ(MappedFile::Open(testing::TempDir() + "none").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::Open(testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace planc
