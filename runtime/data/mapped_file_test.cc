#include "runtime/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/exit_code.h"
#include "schemas/fault.h"

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

TEST(MappedFileTest, UsingWhatIsGoneEndsTheProcessInWords) {
  const std::string path = WriteFile("gone");
  const auto other = MappedFile::Open(WriteFile("kept"));
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok() && other.ok()) << file.status();
  EXPECT_TRUE(file->CheckNotCut(path).ok());
  std::filesystem::resize_file(path, kBytes / 2);
  EXPECT_EQ(file->data()[kBytes / 2 - 1], 'x');
  const auto use = [&](int64_t byte) { [[maybe_unused]] volatile char x = file->data()[byte]; };
  EXPECT_EXIT(use(kBytes / 2), testing::ExitedWithCode(kExitTrainingFault),
              "planc: .*gone: cannot be read at byte 524288: the file was cut short");
  EXPECT_EXIT(use(kBytes + 2), testing::ExitedWithCode(kExitTrainingFault), "at byte 1048578: ");
}

TEST(MappedFileTest, ABusErrorElsewhereEndsTheProcessAsBefore) {
  const auto file = MappedFile::Open(WriteFile("whole2"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EXIT(raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
  const std::string path = WriteFile("elsewhere");
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const void* const unknown = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ASSERT_NE(unknown, MAP_FAILED);
  std::filesystem::resize_file(path, 0);
  EXPECT_EXIT([[maybe_unused]] volatile char x = *static_cast<const char*>(unknown),
              testing::KilledBySignal(SIGBUS), "");
  munmap(const_cast<void*>(unknown), kBytes);
  close(descriptor);
}

TEST(MappedFileTest, SeesThatItsFileWasCut) {
  const std::string path = WriteFile("cut2");
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::rename(path, path + ".old");  // the mapping stays
  WriteFile("cut2");
  std::filesystem::resize_file(path, 5);
  EXPECT_TRUE(file->CheckNotCut(path).ok());
  std::filesystem::rename(path + ".old", path);
  std::filesystem::resize_file(path, kBytes + 2);
  const absl::Status cut = file->CheckNotCut(path);
  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(std::string(cut.message()),
            path + ": was cut short while it was in use, from 1048579 to 1048578 bytes");
}

TEST(MappedFileTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  const std::string folder = testing::TempDir() + "kinds";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ASSERT_EQ(mkfifo((folder + "/pipe").c_str(), 0644), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int unbound = socket(AF_UNIX, SOCK_STREAM, 0);
  const int here = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  // A short name, whatever the folder's is.
  const std::string name = absl::StrCat("/proc/self/fd/", here, "/socket");
  ASSERT_LT(name.size(), sizeof(address.sun_path));
  name.copy(address.sun_path, name.size());
  ASSERT_EQ(bind(unbound, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const auto refusal = [](const std::string& path) {
    const absl::Status status = MappedFile::Open(path).status();
    EXPECT_EQ(FaultOf(status), Fault::kEnvironment) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(refusal(folder), folder + ": it is a folder, not a regular file");
  EXPECT_EQ(refusal(folder + "/pipe"), folder + "/pipe: it is a pipe, not a regular file");
  EXPECT_EQ(refusal(folder + "/socket"), folder + "/socket: it is a socket, not a regular file");
  EXPECT_EQ(refusal("/dev/zero"), "/dev/zero: it is a device, not a regular file");
  EXPECT_EQ(refusal(folder + "/none"), folder + "/none: No such file or directory");
  EXPECT_EQ(refusal(folder + "/pipe/x"), folder + "/pipe/x: Not a directory");
  close(unbound);
  close(here);
}

TEST(MappedFileTest, Errors) {
  EXPECT_EQ(MappedFile::Open(testing::TempDir() + "none").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::Open(testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace planc
