#include "runtime/data/token_stream.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

void WriteFile(const std::string& name, const std::string& bytes) {
  std::ofstream(testing::TempDir() + name, std::ios::binary) << bytes;
}

absl::StatusOr<std::unique_ptr<TokenStream>> OpenIn(const std::vector<std::string>& paths,
                                                    proto::DataFormat format,
                                                    int64_t token_bytes = 2) {
  return TokenStream::Open(paths, format, token_bytes, testing::TempDir());
}

std::vector<int32_t> ReadAll(const TokenStream& stream, int64_t first, int64_t count) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  stream.Read(first, count, out.data());
  return out;
}

// An index for sequences of these lengths, with one document each.
std::string MegatronIndexBytes(uint8_t code, int64_t width, const std::vector<int32_t>& lengths) {
  std::string bytes("MMIDIDX\0\0", 9);
  bytes += BytesOf<int64_t>({1});
  bytes += static_cast<char>(code);
  bytes += BytesOf<int64_t>({static_cast<int64_t>(lengths.size())});
  bytes += BytesOf<int64_t>({static_cast<int64_t>(lengths.size()) + 1});
  bytes += BytesOf(lengths);
  int64_t offset = 0;
  for (const int32_t length : lengths) {
    bytes += BytesOf<int64_t>({offset});
    offset += length * width;
  }
  for (size_t i = 0; i <= lengths.size(); ++i) bytes += BytesOf<int64_t>({static_cast<int64_t>(i)});
  return bytes;
}

TEST(TokenStreamTest, ReadsAcrossFiles) {
  WriteFile("a.bin", BytesOf<uint16_t>({1, 2, 65535}));
  WriteFile("empty.bin", "");
  WriteFile("b.bin", BytesOf<uint16_t>({4, 5}));
  const auto stream = OpenIn({"a.bin", "empty.bin", "b.bin"}, proto::TOKENS);
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ((*stream)->tokens(), 5);
  EXPECT_EQ(ReadAll(**stream, 0, 5), (std::vector<int32_t>{1, 2, 65535, 4, 5}));
  EXPECT_EQ(ReadAll(**stream, 2, 2), (std::vector<int32_t>{65535, 4}));
  EXPECT_EQ(ReadAll(**stream, 3, 2), (std::vector<int32_t>{4, 5}));
}

TEST(TokenStreamTest, BytesAndWideTokens) {
  WriteFile("bytes.txt", "\x01\xff");
  WriteFile("wide.bin", BytesOf<uint32_t>({70000, 4000000000u}));
  const auto bytes = OpenIn({"bytes.txt"}, proto::BYTES);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(ReadAll(**bytes, 0, 2), (std::vector<int32_t>{1, 255}));
  const auto wide = OpenIn({"wide.bin"}, proto::TOKENS, 4);
  ASSERT_TRUE(wide.ok());
  EXPECT_EQ(ReadAll(**wide, 0, 2), (std::vector<int32_t>{70000, -1}));
}

TEST(TokenStreamTest, Megatron) {
  WriteFile("corpus.bin", BytesOf<int32_t>({10, 11, 12, 100000, 14}));
  WriteFile("corpus.idx", MegatronIndexBytes(4, 4, {3, 2}));
  const auto stream = OpenIn({"corpus"}, proto::MEGATRON);
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ(ReadAll(**stream, 0, 5), (std::vector<int32_t>{10, 11, 12, 100000, 14}));
}

TEST(TokenStreamTest, RefusesDamagedMegatronPairs) {
  const std::string good = MegatronIndexBytes(8, 2, {3, 2});
  WriteFile("m.bin", BytesOf<uint16_t>({1, 2, 3, 4, 5}));
  const auto message = [&](const std::string& index) {
    WriteFile("m.idx", index);
    return std::string(OpenIn({"m"}, proto::MEGATRON).status().message());
  };
  EXPECT_EQ(message(good), "");
  EXPECT_THAT(message("MMIDIDY"), HasSubstr("not a Megatron index"));
  EXPECT_THAT(message(good.substr(0, good.size() - 1)), HasSubstr("too short"));
  std::string version = good;
  version[9] = 2;
  EXPECT_THAT(message(version), HasSubstr("index version 2"));
  std::string floats = good;
  floats[17] = 7;
  EXPECT_THAT(message(floats), HasSubstr("type code 7"));
  std::string gap = good;
  gap[34 + 8 + 8] = 8;  // byte offset of the second sequence
  EXPECT_THAT(message(gap), HasSubstr("sequence 1"));
  EXPECT_THAT(message(MegatronIndexBytes(8, 2, {3, 3})), HasSubstr("its index lists 6"));
  std::string huge = good;
  huge.replace(18, 8, BytesOf<int64_t>({int64_t{1} << 62}));
  EXPECT_THAT(message(huge), HasSubstr("too short"));
}

TEST(TokenStreamTest, NamesEveryBadFile) {
  WriteFile("odd.bin", "abc");
  const absl::Status status = OpenIn({"missing.bin", "odd.bin"}, proto::TOKENS).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing.bin: No such file"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("odd.bin: 3 bytes are not a whole number"));
}

TEST(TokenStreamTest, VocabularyDefectNamesTheToken) {
  std::vector<uint16_t> tokens(10000, 7);
  WriteFile("good.bin", BytesOf(tokens));
  tokens[9001] = 300;
  WriteFile("bad.bin", BytesOf(tokens));
  const auto stream = OpenIn({"good.bin", "bad.bin"}, proto::TOKENS);
  ASSERT_TRUE(stream.ok());
  const TokenFile& bad = (*stream)->files()[1];
  EXPECT_EQ(VocabularyDefect((*stream)->files()[0], 300), "");
  EXPECT_EQ(VocabularyDefect(bad, 301), "");
  EXPECT_THAT(VocabularyDefect(bad, 300), HasSubstr("bad.bin: token 9001 is 300"));
}

}  // namespace
}  // namespace planc
