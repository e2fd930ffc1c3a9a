#include "runtime/checkpoint/safetensors.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

std::string ReadBytes(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::string WriteBytes(const std::string& name, const std::string& bytes) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// A file with this header and data.
std::string FileOf(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

TEST(SafetensorsTest, LayoutOfTheFile) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<float> b = {7};
  const std::string path = testing::TempDir() + "layout.safetensors";
  ASSERT_TRUE(
      WriteSafetensors(path, {{"b", {1}, b.data()}, {"a", {2, 3}, a.data()}}, {{"k", "v"}}).ok());
  const std::string bytes = ReadBytes(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ((8 + length) % 64, 0u);
  EXPECT_EQ(bytes.size(), 8 + length + 28);
  const std::string header = bytes.substr(8, length);
  EXPECT_THAT(header, HasSubstr(R"("__metadata__":{"k":"v"})"));
  EXPECT_THAT(header, HasSubstr(R"("a":{"data_offsets":[4,28],"dtype":"F32","shape":[2,3]})"));
  float value = 0;
  std::memcpy(&value, bytes.data() + 8 + length, 4);
  EXPECT_EQ(value, 7.0f);
  std::memcpy(&value, bytes.data() + 8 + length + 4 + 20, 4);
  EXPECT_EQ(value, 6.0f);
}

TEST(SafetensorsTest, ReadsWhatItWrote) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::string path = testing::TempDir() + "again.safetensors";
  ASSERT_TRUE(WriteSafetensors(path, {{"a", {2, 3}, a.data()}}, {{"k", "v"}}).ok());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), 1u);
  const SafetensorsFile::Tensor& tensor = file->tensors().at("a");
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(tensor.data, a.data(), 24), 0);
  EXPECT_EQ(file->metadata().at("k"), "v");
}

TEST(SafetensorsTest, RefusesDamagedFiles) {
  const auto message = [](const std::string& bytes) {
    const absl::Status status =
        SafetensorsFile::Open(WriteBytes("damaged.safetensors", bytes)).status();
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  const auto entry = [](const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::string data(8, 'x');
  EXPECT_EQ(message(FileOf(entry("[2]", "[0,8]"), data)), "");
  EXPECT_THAT(message("short"), HasSubstr("no safetensors header"));
  EXPECT_THAT(message(std::string(8, '\xff')), HasSubstr("header of 18446744073709551615 bytes"));
  EXPECT_THAT(message(FileOf("{", data)), HasSubstr("not a JSON object"));
  EXPECT_THAT(message(FileOf("[]", data)), HasSubstr("not a JSON object"));
  EXPECT_THAT(message(FileOf(R"({"a":{}})", data)), HasSubstr("tensor a: incomplete entry"));
  EXPECT_THAT(message(FileOf(entry("[2]", "[0,-8]"), data)), HasSubstr("incomplete entry"));
  EXPECT_THAT(message(FileOf(entry("[3]", "[0,8]"), data)), HasSubstr("do not hold its 3"));
  EXPECT_THAT(message(FileOf(entry("[4]", "[0,16]"), data)), HasSubstr("lie outside"));
  EXPECT_THAT(message(FileOf(entry("[4294967296,4294967296]", "[0,0]"), data)),
              HasSubstr("do not hold"));
  EXPECT_THAT(message(FileOf(entry("[1]", "[0,4]"), data)), HasSubstr("8 bytes of data"));
  EXPECT_THAT(message(FileOf(entry("[1]", "[4,8]"), data)), HasSubstr("gaps"));
  EXPECT_THAT(message(FileOf(R"({"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})", data)),
              HasSubstr("type F16"));
  EXPECT_THAT(std::string(SafetensorsFile::Open(testing::TempDir() + "none").status().message()),
              HasSubstr("No such file"));
}

}  // namespace
}  // namespace planc
