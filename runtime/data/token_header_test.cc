// Token files that say themselves what they hold.
#include "runtime/data/token_header.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/data/token_stream.h"

namespace planc {
namespace {

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string LlmcHeader(int32_t magic, int32_t version, int32_t tokens) {
  std::vector<int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = tokens;
  return BytesOf(header);
}

// As numpy.save writes it, padded to 64 bytes.
std::string NumpyHeader(int version, const std::string& descr, const std::string& shape) {
  std::string dictionary =
      "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
  const size_t before = version == 1 ? 10 : 12;
  while ((before + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string header = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
  header += version == 1 ? BytesOf<uint16_t>({static_cast<uint16_t>(dictionary.size())})
                         : BytesOf<uint32_t>({static_cast<uint32_t>(dictionary.size())});
  return header + dictionary;
}

struct Opened {
  std::vector<int32_t> tokens;
  std::string error;  // without the folder
};

Opened Open(const std::string& bytes, int64_t token_bytes = 2,
            proto::DataFormat format = proto::TOKENS) {
  std::ofstream(testing::TempDir() + "file", std::ios::binary) << bytes;
  const auto stream = TokenStream::Open({"file"}, format, token_bytes, testing::TempDir());
  if (!stream.ok()) {
    const std::string message(stream.status().message());
    return {{}, message.substr(message.find("file"))};
  }
  Opened opened;
  opened.tokens.resize(static_cast<size_t>((*stream)->tokens()));
  (*stream)->Read(0, (*stream)->tokens(), opened.tokens.data());
  return opened;
}

const std::vector<int32_t> kThree = {5, 6, 65535};

TEST(TokenHeaderTest, LlmcAndModdedNanogpt) {
  const Opened gpt2 = Open(LlmcHeader(20240520, 1, 3) + BytesOf<uint16_t>({5, 6, 65535}));
  EXPECT_EQ(gpt2.tokens, kThree) << gpt2.error;
  for (const int64_t token_bytes : {2, 4}) {  // a job without the key has 2
    const Opened llama3 =
        Open(LlmcHeader(20240801, 7, 2) + BytesOf<uint32_t>({128000, 9}), token_bytes);
    EXPECT_EQ(llama3.tokens, (std::vector<int32_t>{128000, 9})) << llama3.error;
  }
}

TEST(TokenHeaderTest, Numpy) {
  for (const int version : {1, 2, 3}) {
    EXPECT_EQ(Open(NumpyHeader(version, "'<u2'", "(3,)") + BytesOf<uint16_t>({5, 6, 65535})).tokens,
              kThree);
  }
  const auto read = [](const std::string& descr, const std::string& bytes) {
    return Open(NumpyHeader(1, descr, "(3,)") + bytes).tokens;
  };
  EXPECT_EQ(read("'|u1'", BytesOf<uint8_t>({1, 2, 255})), (std::vector<int32_t>{1, 2, 255}));
  EXPECT_EQ(read("'|i1'", BytesOf<int8_t>({1, 2, -1})), (std::vector<int32_t>{1, 2, -1}));
  EXPECT_EQ(read("'<i2'", BytesOf<int16_t>({1, 2, -1})), (std::vector<int32_t>{1, 2, -1}));
  EXPECT_EQ(read("'<i4'", BytesOf<int32_t>({5, 6, 65535})), kThree);
  EXPECT_EQ(read("'<u4'", BytesOf<uint32_t>({5, 6, 65535})), kThree);
  EXPECT_EQ(read("'<i8'", BytesOf<int64_t>({5, 6, 65535})), kThree);
  EXPECT_EQ(read("'<u8'", BytesOf<uint64_t>({5, 6, ~uint64_t{0}})),
            (std::vector<int32_t>{5, 6, -1}));
  EXPECT_TRUE(Open(NumpyHeader(1, "'<u2'", "(0,)")).tokens.empty());
}

TEST(TokenHeaderTest, ContradictionsAreRefused) {
  struct Case {
    std::string bytes;
    int64_t token_bytes;
    proto::DataFormat format;
    std::string error;
  };
  const std::string three = BytesOf<uint16_t>({1, 2, 3});
  const std::vector<Case> cases = {
      {LlmcHeader(20240520, 1, 3) + three, 4, proto::TOKENS,
       "file: its llm.c header says uint16, but data.token_bytes is 4: leave the key out"},
      {LlmcHeader(20240520, 1, 4) + three, 2, proto::TOKENS,
       "file: its llm.c header says 4 uint16 tokens, but 6 bytes follow it instead of 8: was it "
       "written to its end?"},
      {LlmcHeader(20240520, 2, 3) + three, 2, proto::TOKENS,
       "file: is a token file of llm.c of version 2; known is 1 for 20240520"},
      {LlmcHeader(20240801, 7, 3).substr(0, 100), 2, proto::TOKENS,
       "file: begins as a token file of llm.c, but has 100 bytes; the header alone is 1024"},
      {LlmcHeader(20240520, 1, 3) + three, 2, proto::BYTES,
       "file: is a token file with a header of llm.c, not text; write `data.format: tokens`"},
      {NumpyHeader(1, "'<u2'", "(3,)") + three, 2, proto::BYTES,
       "file: is a token file with a header of NumPy, not text; write `data.format: tokens`"},
      {NumpyHeader(1, "'<u2'", "(3,)") + three, 4, proto::TOKENS,
       "file: its NumPy header says uint16, but data.token_bytes is 4: leave the key out"},
      {NumpyHeader(1, "'<u2'", "(3,)") + three + "x", 2, proto::TOKENS,
       "file: its NumPy header says 3 uint16 tokens, but 7 bytes follow it instead of 6: was it "
       "written to its end?"},
      {NumpyHeader(1, "'<f4'", "(3,)"), 2, proto::TOKENS,
       "file: is a NumPy file of dtype <f4; tokens are integers: `numpy.save('tokens.npy', "
       "numpy.load('FILE').astype('<u4'))`"},
      {NumpyHeader(1, "'>i4'", "(3,)"), 2, proto::TOKENS,
       "file: is a NumPy file of dtype >i4, most significant byte first; save it as "
       "little-endian, with Python: `numpy.save('tokens.npy', "
       "numpy.load('FILE').astype('<u4'))`"},
      {NumpyHeader(1, "'<u2'", "(3, 2)"), 2, proto::TOKENS,
       "file: is a NumPy file of shape (3, 2); tokens have one dimension: "
       "`numpy.save('tokens.npy', numpy.load('FILE').ravel())`"},
      {NumpyHeader(1, "'<u2'", "()"), 2, proto::TOKENS,
       "file: is a NumPy file of shape (); tokens have one dimension: `numpy.save('tokens.npy', "
       "numpy.load('FILE').ravel())`"},
      {NumpyHeader(1, "[('a', '<u2'), ('b', '<u4')]", "(3,)"), 2, proto::TOKENS,
       "file: is a NumPy file of records, not of tokens; save one column of it"},
      {NumpyHeader(4, "'<u2'", "(3,)"), 2, proto::TOKENS,
       "file: is a NumPy file of version 4; known are 1, 2 and 3"},
      {NumpyHeader(1, "'<u2'", "(3,)").substr(0, 60), 2, proto::TOKENS,
       "file: is a NumPy file that ends in its header"},
      {std::string("\x93NUMPY\x01"), 2, proto::TOKENS,
       "file: is a NumPy file that ends in its header"},
  };
  for (const Case& one : cases) {
    std::string expected = one.error;
    const size_t at = expected.find("FILE");
    if (at != std::string::npos) expected.replace(at, 4, testing::TempDir() + "/file");
    EXPECT_EQ(Open(one.bytes, one.token_bytes, one.format).error, expected);
  }
}

}  // namespace
}  // namespace planc
