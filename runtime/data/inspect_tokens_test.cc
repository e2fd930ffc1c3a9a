// What the statistics of the data say, and that they do not cry wolf.
#include "runtime/data/inspect_tokens.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Tokens whose frequency falls as 1 / rank, as words and byte pairs do, in [0, vocab).
std::vector<int64_t> Zipf(int64_t vocab, int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    const double rank = std::exp(uniform(random) * std::log(static_cast<double>(vocab)));
    tokens.push_back(std::min(vocab - 1, static_cast<int64_t>(rank) - 1 + (i % 3 == 0 ? 1 : 0)));
  }
  return tokens;
}

template <typename T>
std::string Stored(const std::vector<int64_t>& tokens, bool big_endian = false) {
  std::string bytes;
  for (const int64_t token : tokens) {
    const T value = static_cast<T>(token);
    std::string one(reinterpret_cast<const char*>(&value), sizeof(value));
    if (big_endian) std::reverse(one.begin(), one.end());
    bytes += one;
  }
  return bytes;
}

DataFindings Inspect(const std::string& bytes, proto::DataFormat format, int64_t token_bytes,
                     int64_t vocab) {
  std::ofstream(testing::TempDir() + "file", std::ios::binary) << bytes;
  const auto stream = TokenStream::Open({"file"}, format, token_bytes, testing::TempDir());
  DataFindings findings;
  if (!stream.ok()) {
    findings.errors.emplace_back(stream.status().message());
    return findings;
  }
  InspectTokens(**stream, format, vocab, "data.train", &findings);
  // The user's path is as short as in the table.
  for (auto* const list : {&findings.errors, &findings.warnings}) {
    for (std::string& entry : *list) {
      const std::string path = testing::TempDir() + "/file";
      for (size_t at = 0; (at = entry.find(path)) != std::string::npos;) {
        entry.replace(at, path.size(), "F");
      }
    }
  }
  return findings;
}

struct Misread {
  std::string bytes;
  proto::DataFormat format;
  int64_t token_bytes;
  int64_t vocab;
  std::string error;
};

TEST(InspectTokensTest, OtherWidthsAndOrdersAreNamed) {
  const auto gpt2 = Zipf(50257, 20000, 1);
  const auto llama = Zipf(128256, 20000, 2);
  const auto letters = Zipf(65, 20000, 3);
  const std::string header =
      ". If it is uint16 all the same, save it with a header, as numpy.save does";
  const auto places = [](int bytes) {
    return ": by place, the same bytes of every " + std::to_string(bytes) +
           " are zero throughout; ";
  };
  const auto convert = [](const std::string& type) {
    return "convert it, with Python: `numpy.fromfile('F', '" + type +
           "').astype('<u4').tofile('tokens.bin')`, and write `data.token_bytes: 4`";
  };
  const std::string four = "write `data.format: tokens` and `data.token_bytes: 4`";
  const std::string two = "write `data.format: tokens` and `data.token_bytes: 2`";
  const std::vector<Misread> cases = {
      {Stored<int32_t>(gpt2), proto::TOKENS, 2, 50257,
       "holds uint32 numbers, read as uint16" + places(4) + four + header},
      {Stored<int32_t>(letters), proto::TOKENS, 2, 65,
       "holds uint32 numbers, read as uint16" + places(4) + four + header},
      {Stored<int64_t>(gpt2), proto::TOKENS, 2, 50257,
       "holds uint64 numbers, read as uint16" + places(8) + convert("<u8") + header},
      {Stored<int64_t>(llama), proto::TOKENS, 4, 128256,
       "holds uint64 numbers, read as uint32" + places(8) + convert("<u8") +
           ". If it is uint32 all the same, save it with a header, as numpy.save does"},
      {Stored<int32_t>(gpt2, true), proto::TOKENS, 2, 65536,
       "holds big-endian uint32 numbers, read as uint16" + places(4) + convert(">u4") + header},
      {Stored<uint32_t>(llama, true), proto::TOKENS, 4, 128256,
       "holds big-endian uint32 numbers, read as uint32" + places(4) + convert(">u4") +
           ". If it is uint32 all the same, save it with a header, as numpy.save does"},
      {Stored<uint16_t>(letters, true), proto::TOKENS, 2, 65536,
       "holds big-endian uint16 numbers, read as uint16" + places(2) + convert(">u2") + header},
      {Stored<uint16_t>(letters), proto::BYTES, 2, 256,
       "holds uint16 numbers, read as bytes" + places(2) + two},
      {Stored<uint32_t>(llama), proto::BYTES, 2, 256,
       "holds uint32 numbers, read as bytes" + places(4) + four},
      {Stored<int64_t>(gpt2), proto::BYTES, 2, 256,
       "holds uint64 numbers, read as bytes" + places(8) + convert("<u8")},
      {Stored<uint16_t>(std::vector<int64_t>(1000, 'a')), proto::BYTES, 2, 256,
       "is UTF-16 text: every second byte is zero; convert it: `iconv -f UTF-16LE -t UTF-8 F > "
       "text.txt`"},
  };
  for (const Misread& one : cases) {
    const DataFindings findings = Inspect(one.bytes, one.format, one.token_bytes, one.vocab);
    EXPECT_THAT(findings.errors, ElementsAre("data.train: F: " + one.error));
  }
}

TEST(InspectTokensTest, SwappedSixteenBitTokensOfALargeVocabulary) {
  const auto tokens = Zipf(65536, 20000, 4);
  const DataFindings swapped = Inspect(Stored<uint16_t>(tokens, true), proto::TOKENS, 2, 65536);
  ASSERT_EQ(swapped.errors.size(), 1u);
  EXPECT_THAT(swapped.errors[0], HasSubstr("F: holds big-endian uint16 numbers, read as uint16: "
                                           "the high bytes, with "));
  EXPECT_THAT(Inspect(Stored<uint16_t>(tokens), proto::TOKENS, 2, 65536).errors, IsEmpty());
}

TEST(InspectTokensTest, ATokenBeyondTheVocabularySaysWhatTheFileMayBe) {
  const auto tokens = Zipf(50257, 2000, 5);
  const auto error = [](const std::string& bytes, int64_t token_bytes, int64_t vocab) {
    const DataFindings findings = Inspect(bytes, proto::TOKENS, token_bytes, vocab);
    return findings.errors.size() == 1 ? findings.errors[0] : "";
  };
  EXPECT_THAT(error(Stored<uint16_t>(tokens), 4, 50257),
              HasSubstr(", but model.vocab is 50257; as uint16 all would be below it: if they are "
                        "that, write `data.format: tokens` and `data.token_bytes: 2`"));
  EXPECT_THAT(error(Stored<uint16_t>({1, 2, 3, 500}), 2, 500),
              testing::EndsWith("F: token 3 is 500, but model.vocab is 500"));
  EXPECT_THAT(error(Stored<uint8_t>(Zipf(65, 2000, 6)), 2, 65),
              HasSubstr("; as single bytes all would be below it"));
}

TEST(InspectTokensTest, TextReadAsTokens) {
  std::string text;
  while (text.size() < 1000) text += "In the beginning was the \xd0\xa1\xd0\xbb\xd0\xbe.\r\n";
  text.resize(1000);
  EXPECT_THAT(Inspect(text, proto::TOKENS, 2, 65536).errors,
              ElementsAre("data.train: F: is text, read as uint16 tokens: it has no byte that text "
                          "has not; write `data.format: bytes`, or tokenize it: `planc tokenize F "
                          "--tokenizer=FILE -o OUT`"));
  EXPECT_THAT(Inspect(text, proto::BYTES, 2, 256).errors, IsEmpty());
}

TEST(InspectTokensTest, DataWithoutVariety) {
  const DataFindings zeros = Inspect(std::string(2000, '\0'), proto::TOKENS, 2, 50257);
  EXPECT_THAT(zeros.errors,
              ElementsAre("data.train: F: all 1000 tokens are 0: was the file written?"));
  EXPECT_THAT(Inspect(std::string(1000, 'a'), proto::BYTES, 2, 256).warnings,
              ElementsAre("data.train: F: all of its 1000 tokens are 97"));
  std::vector<int64_t> padded(10000, 3);
  padded[77] = 5;
  EXPECT_THAT(Inspect(Stored<uint16_t>(padded), proto::TOKENS, 2, 50257).warnings,
              ElementsAre("data.train: F: more than 99% of its 10000 tokens are 3"));
  auto unfinished = Zipf(50257, 100000, 8);
  std::fill(unfinished.begin() + 30000, unfinished.end(), 0);
  unfinished[29999] = 1;
  EXPECT_THAT(Inspect(Stored<uint16_t>(unfinished), proto::TOKENS, 2, 50257).warnings,
              ElementsAre("data.train: F: the last 70000 of its 100000 tokens are all 0: was the "
                          "file written to its end?"));
}

TEST(InspectTokensTest, BinaryReadAsBytesIsAWarning) {
  const std::string bytes = Stored<uint16_t>(Zipf(50257, 20000, 9));
  const DataFindings findings = Inspect(bytes, proto::BYTES, 2, 256);
  EXPECT_THAT(findings.errors, IsEmpty());
  ASSERT_EQ(findings.warnings.size(), 1u);
  EXPECT_THAT(findings.warnings[0], HasSubstr("F: is not text: "));
}

// Right data of every kind passes, at every size.
TEST(InspectTokensTest, NoFalseAlarms) {
  std::mt19937 random(11);
  for (const int64_t count : {1, 7, 255, 256, 257, 5000, 40000}) {
    for (const int64_t vocab : {2, 4, 65, 256, 300, 1000, 50257, 65536, 128256, 16777216}) {
      for (const bool uniform : {false, true}) {
        std::uniform_int_distribution<int64_t> token(0, vocab - 1);
        std::vector<int64_t> tokens = Zipf(vocab, count, static_cast<unsigned>(vocab + count));
        if (uniform) std::generate(tokens.begin(), tokens.end(), [&] { return token(random); });
        const auto passes = [&](const std::string& bytes, int64_t width) {
          const DataFindings found = Inspect(bytes, proto::TOKENS, width, vocab);
          EXPECT_THAT(found.errors, IsEmpty()) << count << " of " << vocab << " in " << width;
          EXPECT_THAT(found.warnings, IsEmpty());
        };
        if (vocab <= 65536) passes(Stored<uint16_t>(tokens), 2);
        passes(Stored<uint32_t>(tokens), 4);
        if (uniform && vocab == 256 && count < 256) {  // no text, but too little to say so
          EXPECT_THAT(Inspect(Stored<uint8_t>(tokens), proto::BYTES, 2, 256).errors, IsEmpty());
        }
      }
    }
  }
}

// Sequences that are padded with zeros, and tokens in ascending order.
TEST(InspectTokensTest, PaddedAndSortedTokensPass) {
  for (const int64_t kept : {512, 100, 30}) {
    auto tokens = Zipf(50257, 51200, 12);
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (static_cast<int64_t>(i % 512) >= kept) tokens[i] = 0;
    }
    EXPECT_THAT(Inspect(Stored<uint16_t>(tokens), proto::TOKENS, 2, 50257).errors, IsEmpty());
    std::sort(tokens.begin(), tokens.end());
    EXPECT_THAT(Inspect(Stored<uint16_t>(tokens), proto::TOKENS, 2, 50257).errors, IsEmpty());
  }
}

}  // namespace
}  // namespace planc
