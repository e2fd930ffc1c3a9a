#include "runtime/data/token_stream.h"

#include <cstdint>
#include <filesystem>
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

TEST(TokenStreamTest, TokensThatAreUsedAreChecked) {
  WriteFile("first16.bin", BytesOf<uint16_t>({1, 2, 3}));
  WriteFile("none16.bin", "");
  WriteFile("second16.bin", BytesOf<uint16_t>({4, 9, 5, 60000}));
  const auto stream = OpenIn({"first16.bin", "none16.bin", "second16.bin"}, proto::TOKENS);
  ASSERT_TRUE(stream.ok()) << stream.status();
  std::vector<int32_t> out(7);
  EXPECT_TRUE((*stream)->ReadChecked(0, 7, 65536, out.data()).ok());
  EXPECT_EQ(out, (std::vector<int32_t>{1, 2, 3, 4, 9, 5, 60000}));
  EXPECT_TRUE((*stream)->ReadChecked(0, 6, 10, out.data()).ok());
  const auto error = [&](int64_t first, int64_t count, int64_t vocab) {
    const absl::Status status = (*stream)->ReadChecked(first, count, vocab, out.data());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  };
  EXPECT_THAT(error(0, 7, 9), HasSubstr("/second16.bin: token 1 is 9, but model.vocab is 9"));
  EXPECT_THAT(error(5, 2, 60000),
              HasSubstr("/second16.bin: token 3 is 60000, but model.vocab is 60000"));
  // Written after it was opened.
  std::fstream(testing::TempDir() + "first16.bin", std::ios::in | std::ios::out | std::ios::binary)
      << "\xff\xff";
  EXPECT_THAT(error(0, 7, 60001),
              HasSubstr("/first16.bin: token 0 is 65535, but model.vocab is 60001"));
}

TEST(TokenStreamTest, WideTokensThatDoNotFitAreOutsideAnyVocabulary) {
  WriteFile("int64.bin", BytesOf<int64_t>({1, -1, (int64_t{1} << 32) + 5}));
  WriteFile("int64.idx", MegatronIndexBytes(5, 8, {3}));
  const auto stream = OpenIn({"int64"}, proto::MEGATRON);
  ASSERT_TRUE(stream.ok()) << stream.status();
  int32_t out = 0;
  const int64_t vocab = int64_t{1} << 31;
  EXPECT_TRUE((*stream)->ReadChecked(0, 1, vocab, &out).ok());
  EXPECT_THAT(std::string((*stream)->ReadChecked(1, 1, vocab, &out).message()),
              HasSubstr("token 1 is -1,"));
  EXPECT_THAT(std::string((*stream)->ReadChecked(2, 1, vocab, &out).message()),
              HasSubstr("token 2 is 4294967301,"));
}

TEST(TokenStreamTest, AFileThatIsCutInsideAPageIsAnError) {
  WriteFile("page.bin", std::string(1000, 'a'));
  const auto stream = OpenIn({"page.bin"}, proto::BYTES);
  ASSERT_TRUE(stream.ok()) << stream.status();
  std::filesystem::resize_file(testing::TempDir() + "page.bin", 500);
  std::vector<int32_t> out(100);
  EXPECT_EQ((*stream)->ReadChecked(900, 100, 256, out.data()).code(), absl::StatusCode::kDataLoss);
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
