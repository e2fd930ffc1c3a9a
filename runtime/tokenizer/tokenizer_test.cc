// The tokens are those that Hugging Face's library and SentencePiece find (testdata/make_testdata).
#include "runtime/tokenizer/tokenizer.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/tokenizer/huggingface_tokenizer.h"
#include "runtime/tokenizer/utf8.h"

namespace planc {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr char kFolder[] = "runtime/tokenizer/testdata/";

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::unique_ptr<Tokenizer> Load(const std::string& name) {
  const std::string path = kFolder + name;
  const bool json = std::filesystem::exists(path + ".json");
  auto tokenizer = LoadTokenizer(path + (json ? ".json" : ".model"));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

std::vector<int32_t> Encode(const Tokenizer& tokenizer, const std::string& text) {
  EncodeCache cache;
  std::vector<int32_t> tokens;
  const absl::Status status = tokenizer.Encode(text, &cache, &tokens);
  EXPECT_TRUE(status.ok()) << status;
  return tokens;
}

class TokenizerTest : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerTest, AgreesWithTheLibraryItComesFrom) {
  const auto tokenizer = Load(GetParam());
  ASSERT_NE(tokenizer, nullptr);
  const Json rows = Json::parse(ReadAll(kFolder + GetParam() + ".expected.json"));
  ASSERT_GT(rows.size(), 50u);
  EncodeCache cache;  // one for all: what is remembered must not change anything
  for (const Json& row : rows) {
    std::vector<int32_t> tokens;
    const std::string text = row["text"];
    ASSERT_TRUE(tokenizer->Encode(text, &cache, &tokens).ok()) << text;
    EXPECT_EQ(tokens, row["tokens"].get<std::vector<int32_t>>()) << text;
    EXPECT_EQ(tokenizer->Decode(tokens), row["decoded"].get<std::string>()) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerTest,
                         testing::Values("gpt2", "llama3", "qwen2", "starcoder", "llama2",
                                         "metaspace", "sentencepiece"),
                         [](const auto& param) { return param.param; });

// Characters of every length, letters, marks and blanks of all kinds.
std::string RandomText(std::mt19937* random) {
  const auto number = [&](uint32_t low, uint32_t high) {
    return std::uniform_int_distribution<uint32_t>(low, high)(*random);
  };
  std::string text;
  for (uint32_t i = number(0, 80); i > 0; --i) {
    switch (number(0, 4)) {
      case 0:
        AppendCharacter(number(1, 0x7f), &text);
        break;
      case 1:
        AppendCharacter(number(0x80, 0x7ff), &text);
        break;
      case 2:
        AppendCharacter(number(0x800, 0xd7ff), &text);
        break;
      case 3:
        AppendCharacter(number(0x10000, 0x10ffff), &text);
        break;
      default:
        text += number(0, 1) == 0 ? " " : "\n";
    }
  }
  return text;
}

// Llama 3's begins every text with a token; the others add none, and qwen2's normalizes.
TEST(TokenizerPropertyTest, ByteLevelTokensGiveTheTextBack) {
  std::mt19937 random(5);
  for (const std::string name : {"gpt2", "llama3", "qwen2"}) {
    const auto tokenizer = Load(name);
    ASSERT_NE(tokenizer, nullptr);
    for (int i = 0; i < 2000; ++i) {
      const std::string text = RandomText(&random);
      ASSERT_TRUE(CheckUtf8(text).ok());
      const std::string prefix = name == "llama3" ? "<|begin_of_text|>" : "";
      const auto expected = name == "qwen2" ? ComposeUtf8(text) : text;
      EXPECT_EQ(tokenizer->Decode(Encode(*tokenizer, text)), prefix + *expected) << name;
    }
  }
}

TEST(TokenizerPropertyTest, TokensAreBelowTheVocabulary) {
  std::mt19937 random(6);
  for (const std::string name : {"gpt2", "llama2", "sentencepiece"}) {
    const auto tokenizer = Load(name);
    ASSERT_NE(tokenizer, nullptr);
    for (int i = 0; i < 200; ++i) {
      for (const int32_t token : Encode(*tokenizer, RandomText(&random))) {
        EXPECT_GE(token, 0);
        EXPECT_LT(token, tokenizer->vocab());
      }
    }
    EXPECT_EQ(tokenizer->Decode({static_cast<int32_t>(tokenizer->vocab()), -1}), "");
  }
}

TEST(TokenizerFileTest, EndOfDocument) {
  const auto gpt2 = Load("gpt2");
  EXPECT_EQ(gpt2->EndOfDocument(), gpt2->FindToken("<|endoftext|>"));
  EXPECT_EQ(Load("llama3")->EndOfDocument(), Load("llama3")->FindToken("<|end_of_text|>"));
  EXPECT_EQ(Load("llama2")->EndOfDocument(), 2);
  EXPECT_EQ(Load("sentencepiece")->EndOfDocument(), 2);
  EXPECT_EQ(gpt2->FindToken("<|none|>"), std::nullopt);
}

TEST(TokenizerFileTest, TextThatIsNotUtf8IsRefused) {
  const auto tokenizer = Load("gpt2");
  for (const std::string text : {"ab\xff", "ab\xc3", "ab\xc0\x80", "ab\xed\xa0\x80",
                                 "ab\xf4\x90\x80\x80", "ab\xe0\x80\x80"}) {
    EncodeCache cache;
    std::vector<int32_t> tokens;
    EXPECT_EQ(std::string(tokenizer->Encode(text, &cache, &tokens).message()),
              "byte 2 is not UTF-8");
  }
}

// A small whole tokenizer.json, in which `change` is merged.
std::string ErrorOf(const std::string& change) {
  Json json = Json::parse(R"({"added_tokens": [{"id": 2, "content": "<e>", "special": true}],
    "normalizer": null, "pre_tokenizer": {"type": "ByteLevel"}, "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 3}, "merges": ["a b"]}})");
  json.merge_patch(Json::parse(change));
  const auto tokenizer = ParseTokenizerJson(json.dump());
  return std::string(tokenizer.status().message());
}

TEST(TokenizerFileTest, WhatIsNotCarriedOutIsRefusedByName) {
  struct Case {
    std::string change;
    std::string error;
  };
  const std::vector<Case> cases = {
      {"{}", ""},
      {R"({"model": {"type": "WordPiece"}})", "model.type WordPiece is not supported"},
      {R"({"model": {"type": "Unigram"}})", "model.type Unigram is not supported"},
      {R"({"model": {"dropout": 0.1}})", "model.dropout is not supported"},
      {R"({"model": {"end_of_word_suffix": "</w>"}})", "model.end_of_word_suffix is not supported"},
      {R"({"model": {"continuing_subword_prefix": "##"}})",
       "model.continuing_subword_prefix is not supported"},
      {R"({"model": {"merges": ["a c"]}})",
       "model.merges: `a` and `c` or what they make is not in the vocabulary"},
      {R"({"model": {"merges": ["ab"]}})", "model.merges: entry 0 is not a pair"},
      {R"({"model": {"vocab": {"a": "x"}}})", "model.vocab: `a` has no number"},
      {R"({"model": {"unk_token": "<u>"}})", "model.unk_token `<u>` is not in the vocabulary"},
      {R"({"model": {"vocab": null}})", "model.vocab and model.merges are missing"},
      {R"({"normalizer": {"type": "Lowercase"}})", "normalizer Lowercase is not supported"},
      {R"({"normalizer": {"type": "Sequence",
           "normalizers": [{"type": "NFC"}, {"type": "NFKC"}]}})",
       "normalizer NFKC is not supported"},
      {R"({"normalizer": {"type": "Replace", "pattern": {"Regex": "a"}, "content": ""}})",
       "normalizer Replace of a regular expression is not supported"},
      {R"({"pre_tokenizer": {"type": "BertPreTokenizer"}})",
       "pre_tokenizer BertPreTokenizer is not supported"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a"},
           "behavior": "MergedWithNext"}})",
       "pre_tokenizer Split with MergedWithNext is not supported"},
      {R"({"post_processor": {"type": "RobertaProcessing"}})",
       "post_processor RobertaProcessing is not supported"},
      {R"({"post_processor": {"type": "TemplateProcessing",
           "single": [{"SpecialToken": {"id": "<s>"}}], "special_tokens": {}}})",
       "post_processor: special token `<s>` has no ids"},
      {R"({"decoder": {"type": "WordPiece"}})", "decoder WordPiece is not supported"},
      {R"({"truncation": {"max_length": 5}})", "truncation of every text is not supported"},
      {R"({"padding": {"length": 5}})", "padding of every text is not supported"},
      {R"({"added_tokens": [{"id": 2, "content": "<e>", "single_word": true}]})",
       "added token `<e>` with single_word is not supported"},
      {R"({"added_tokens": [{"content": "<e>"}]})",
       "added_tokens: an entry has no content or no id"},
  };
  for (const Case& one : cases) EXPECT_EQ(ErrorOf(one.change), one.error) << one.change;
  EXPECT_THAT(ErrorOf(R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("},
                          "behavior": "Isolated"}})"),
              HasSubstr("the pattern `(` at offset 1: "));
  EXPECT_THAT(ErrorOf(R"({"model": null})"), HasSubstr("has no `model`"));
}

TEST(TokenizerFileTest, ACharacterWithoutATokenIsAnError) {
  const auto tokenizer =
      ParseTokenizerJson(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EncodeCache cache;
  std::vector<int32_t> tokens;
  EXPECT_THAT(std::string((*tokenizer)->Encode("abc", &cache, &tokens).message()),
              HasSubstr("no token stands for the character `c`"));
}

TEST(TokenizerFileTest, OtherFilesAreRefused) {
  const auto error = [](const std::string& bytes) {
    const std::string path = testing::TempDir() + "tokenizer";
    std::ofstream(path, std::ios::binary) << bytes;
    return std::string(LoadTokenizer(path).status().message());
  };
  EXPECT_THAT(error("{\"model\": "), HasSubstr("tokenizer: is not whole JSON"));
  for (const std::string bytes : {"", "some text", "PK\x03\x04"}) {
    EXPECT_THAT(error(bytes),
                HasSubstr("tokenizer: is neither a tokenizer.json nor a SentencePiece model"));
  }
  EXPECT_THAT(std::string(LoadTokenizer("none").status().message()), HasSubstr("none: "));
}

}  // namespace
}  // namespace planc
