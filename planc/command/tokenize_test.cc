// planc tokenize.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planc/commands.h"
#include "runtime/data/token_stream.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kGpt2[] = "--tokenizer=runtime/tokenizer/testdata/gpt2.json";

class TokenizeTest : public testing::Test {
 protected:
  TokenizeTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  // Output, or errors without the folder.
  std::string Run(std::vector<std::string> args, int expected) const {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunTokenize(args, out, err), expected) << err.str();
    std::string text = expected == kExitOk ? out.str() : err.str();
    for (size_t at = 0; (at = text.find(folder_ + "/")) != std::string::npos;) {
      text.erase(at, folder_.size() + 1);
    }
    std::istringstream words(text);  // lines break where the folder's name ends
    std::string joined;
    for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
    return joined;
  }
  std::vector<int32_t> Tokens(const std::string& name, proto::DataFormat format) const {
    const auto stream = TokenStream::Open({name}, format, 2, folder_);
    EXPECT_TRUE(stream.ok()) << stream.status();
    if (!stream.ok()) return {};
    std::vector<int32_t> tokens(static_cast<size_t>((*stream)->tokens()));
    (*stream)->Read(0, (*stream)->tokens(), tokens.data());
    return tokens;
  }

  const std::string folder_ = testing::TempDir() + "tokenize";
};

TEST_F(TokenizeTest, TextAndJsonLinesToTokens) {
  Write("a.txt", "aa");
  Write("b.jsonl", "{\"text\": \"bb\"}\n\n{\"text\": \"\"}\r\n{\"text\": \"aa\"}");
  EXPECT_THAT(
      Run({Path("a.txt"), Path("b.jsonl"), kGpt2, "-o", Path("out.bin"), "--append-eod"}, kExitOk),
      testing::AllOf(HasSubstr("out.bin: "),
                     HasSubstr("tokens (uint16) of 3 documents; left out: 1 empty one in "
                               "the job: model: {vocab: 700} # or more data: {train: "
                               "[out.bin], format: tokens, token_bytes: 2}")));
  const std::vector<int32_t> tokens = Tokens("out.bin", proto::TOKENS);
  // The documents in order, each ended by <|endoftext|>, the first token of this tokenizer.
  std::vector<std::vector<int32_t>> documents(1);
  for (const int32_t token : tokens) {
    if (token == 0) {
      documents.emplace_back();
    } else {
      documents.back().push_back(token);
    }
  }
  ASSERT_EQ(documents.size(), 4u);
  EXPECT_EQ(documents[0], documents[2]);
  EXPECT_NE(documents[0], documents[1]);
  EXPECT_TRUE(documents[3].empty());
  EXPECT_FALSE(fs::exists(Path("out.bin.partial")));
}

TEST_F(TokenizeTest, MegatronPairsHoldTheSameTokens) {
  Write("b.jsonl", "{\"story\": \"Hello, world!\"}\n{\"story\": \"again\"}\n");
  const std::string key = "--json-key=story";
  Run({Path("b.jsonl"), kGpt2, key, "-o", Path("flat.bin")}, kExitOk);
  Run({Path("b.jsonl"), kGpt2, key, "-o", Path("pair"), "--format=megatron"}, kExitOk);
  EXPECT_EQ(Tokens("pair", proto::MEGATRON), Tokens("flat.bin", proto::TOKENS));
  EXPECT_EQ(Read("pair.bin"), Read("flat.bin"));
  // 34 bytes of header; 2 lengths, 2 offsets, 3 document entries.
  EXPECT_EQ(Read("pair.idx").size(), 34u + 2 * 4 + 2 * 8 + 3 * 8);
}

TEST_F(TokenizeTest, AnyNumberOfWorkersWritesTheSameBytes) {
  std::string lines;
  for (int i = 0; i < 20000; ++i) {
    lines +=
        "{\"text\": \"document " + std::to_string(i * 7919 % 10007) + " of \\u00e9t\\u00e9\"}\n";
  }
  Write("many.jsonl", lines);
  ASSERT_GT(lines.size(), 3u * 256 * 1024);  // several batches
  for (const std::string workers : {"1", "2", "5"}) {
    Run({Path("many.jsonl"), kGpt2, "-o", Path("out" + workers), "--format=megatron",
         "--append-eod", "--workers=" + workers},
        kExitOk);
  }
  for (const std::string suffix : {".bin", ".idx"}) {
    EXPECT_GT(Read("out1" + suffix).size(), 100000u);
    EXPECT_EQ(Read("out2" + suffix), Read("out1" + suffix));
    EXPECT_EQ(Read("out5" + suffix), Read("out1" + suffix));
  }
}

TEST_F(TokenizeTest, BrokenInputsAreNamedWithTheirLines) {
  const std::string good = "{\"text\": \"a\"}\n";
  const auto error = [&](const std::string& bytes) {
    Write("in.jsonl", bytes);
    const std::string message = Run({Path("in.jsonl"), kGpt2, "-o", Path("out")}, kExitJobError);
    EXPECT_FALSE(fs::exists(Path("out")));
    EXPECT_FALSE(fs::exists(Path("out.partial")));
    return message;
  };
  EXPECT_EQ(error(good + "\n{\"text\": \"b\n"),
            "planc tokenize: in.jsonl:3: the line is not whole JSON");
  EXPECT_EQ(error(good + "[1]\n"),
            "planc tokenize: in.jsonl:2: the line is no JSON object; JSON lines hold one object a "
            "line");
  EXPECT_EQ(error("{\"content\": \"a\", \"id\": 1}\n"),
            "planc tokenize: in.jsonl:1: there is no key `text`; keys are: content, id; --json-key "
            "names one");
  EXPECT_EQ(error(good + good + "{\"text\": 5}\n"),
            "planc tokenize: in.jsonl:3: the value of `text` is no text");
  EXPECT_EQ(error("PAR1\x01\x01\x01\x01"), error("PAR1\x01\x01\x01\x01"));
  EXPECT_THAT(error("\x1f\x8b\x08" + std::string(20, '\0')),
              HasSubstr("in.jsonl: is compressed by gzip, not text; unpack it: `gzip -dk"));
  Write("text.txt", "ab\xff");
  EXPECT_EQ(Run({Path("text.txt"), kGpt2, "-o", Path("out")}, kExitJobError),
            "planc tokenize: text.txt: byte 2 is not UTF-8");
  Write("lines.txt", good);
  EXPECT_EQ(Run({Path("lines.txt"), kGpt2, "-o", Path("out")}, kExitJobError),
            "planc tokenize: lines.txt: is JSON, not text; give --json-key=KEY to take the text of "
            "each line from it");
}

TEST_F(TokenizeTest, AFormerOutputStaysUntilTheNewOneIsWhole) {
  Write("out", "former");
  Write("in.jsonl", "broken");
  Run({Path("in.jsonl"), kGpt2, "-o", Path("out")}, kExitJobError);
  EXPECT_EQ(Read("out"), "former");
}

TEST_F(TokenizeTest, WrongUse) {
  Write("a.txt", "a");
  const std::string out = Path("out");
  EXPECT_THAT(Run({}, kExitJobError), HasSubstr("no input is named"));
  EXPECT_THAT(Run({Path("a.txt"), "-o", out}, kExitJobError),
              HasSubstr("--tokenizer=FILE is missing"));
  EXPECT_THAT(Run({Path("a.txt"), kGpt2}, kExitJobError), HasSubstr("-o OUT is missing"));
  EXPECT_THAT(Run({Path("a.txt"), kGpt2, "-o", out, "--workers=0"}, kExitJobError),
              HasSubstr("--workers `0` is not a number from 1 to 1024"));
  EXPECT_THAT(Run({Path("a.txt"), kGpt2, "-o", out, "--format=npy"}, kExitJobError),
              HasSubstr("--format `npy` is not supported"));
  EXPECT_THAT(Run({Path("a.txt"), kGpt2, "-o", out, "--eod=<none>"}, kExitJobError),
              HasSubstr("has no token `<none>` (--eod)"));
  EXPECT_THAT(Run({Path("none.txt"), kGpt2, "-o", out}, kExitJobError),
              HasSubstr("none.txt: No such file"));
  EXPECT_THAT(Run({Path("a.txt"), kGpt2, "-o", Path("no/folder/out")}, kExitInternal),
              HasSubstr("no/folder/out"));
}

}  // namespace
}  // namespace planc
