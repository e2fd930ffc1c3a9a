#include "runtime/tokenizer/huggingface_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/tokenizer/utf8.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Longer words hardly occur twice, and so many words are most of those of a language.
constexpr size_t kCachedBytes = 64;
constexpr size_t kCachedWords = 1 << 18;

// How well-known tokenizers write the token that ends a document.
constexpr const char* kEndOfDocument[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>",
                                          "<｜end▁of▁sentence｜>"};

absl::StatusOr<std::string> Normalize(const std::vector<NormalizeStep>& steps, std::string text) {
  for (const NormalizeStep& step : steps) {
    switch (step.kind) {
      case NormalizeStep::Kind::kCompose: {
        PLANC_ASSIGN_OR_RETURN(text, ComposeUtf8(text));
        break;
      }
      case NormalizeStep::Kind::kPrepend:
        if (!text.empty()) text = step.text + text;
        break;
      case NormalizeStep::Kind::kReplace:
        text = ReplaceAll(text, step.from, step.text);
        break;
    }
  }
  return text;
}

// The byte that a token <0x41> stands for.
std::optional<char> FallbackByte(const std::string& token) {
  if (token.size() != 6 || token.compare(0, 3, "<0x") != 0 || token[5] != '>') return std::nullopt;
  const std::string digits = token.substr(3, 2);
  int byte = 0;
  for (const char digit : digits) {
    const size_t value = std::string("0123456789ABCDEF").find(digit);
    if (value == std::string::npos) return std::nullopt;
    byte = byte * 16 + static_cast<int>(value);
  }
  return static_cast<char>(byte);
}

std::string Stripped(std::string text, const DecodeStep& step) {
  const auto begins = [&] { return text.compare(0, step.from.size(), step.from) == 0; };
  for (int64_t i = 0; i < step.start && !text.empty() && begins(); ++i) {
    text.erase(0, step.from.size());
  }
  for (int64_t i = 0; i < step.stop && text.size() >= step.from.size(); ++i) {
    const size_t last = text.size() - step.from.size();
    if (text.compare(last, step.from.size(), step.from) != 0) break;
    text.erase(last);
  }
  return text;
}

void DecodeOne(const DecodeStep& step, std::vector<std::string>* tokens) {
  for (size_t i = 0; i < tokens->size(); ++i) {
    std::string& token = (*tokens)[i];
    switch (step.kind) {
      case DecodeStep::Kind::kByteLevel:
        token = BytesOfLevel(token);
        break;
      case DecodeStep::Kind::kReplace:
        token = ReplaceAll(token, step.from, step.text);
        break;
      case DecodeStep::Kind::kByteFallback:
        if (const auto byte = FallbackByte(token); byte.has_value()) token.assign(1, *byte);
        break;
      case DecodeStep::Kind::kStrip:
        token = Stripped(std::move(token), step);
        break;
      case DecodeStep::Kind::kMetaspace:
        token = ReplaceAll(token, step.from, i == 0 && step.drops ? "" : " ");
        break;
      case DecodeStep::Kind::kFuse:
        *tokens = {absl::StrJoin(*tokens, "")};
        return;
    }
  }
}

}  // namespace

HuggingFaceTokenizer::HuggingFaceTokenizer(TokenizerParts parts, AddedTokens raw,
                                           AddedTokens normalized)
    : parts_(std::move(parts)), raw_(std::move(raw)), normalized_(std::move(normalized)) {
  for (const auto& [text, token] : parts_.model.vocab()) texts_[token] = text;
  for (const auto* const list : {&parts_.raw_tokens, &parts_.normalized_tokens}) {
    for (const AddedToken& token : *list) {
      texts_[token.token] = token.text;
      added_[token.text] = token.token;
    }
  }
  for (const auto& [token, text] : texts_) vocab_ = std::max<int64_t>(vocab_, int64_t{token} + 1);
}

absl::StatusOr<std::unique_ptr<HuggingFaceTokenizer>> HuggingFaceTokenizer::Create(
    TokenizerParts parts) {
  // Tokens that are looked for in normalized text are normalized themselves.
  std::vector<AddedToken> normalized = parts.normalized_tokens;
  for (AddedToken& token : normalized) {
    PLANC_ASSIGN_OR_RETURN(token.text, Normalize(parts.normalizers, token.text));
  }
  AddedTokens raw(parts.raw_tokens);
  return std::unique_ptr<HuggingFaceTokenizer>(
      new HuggingFaceTokenizer(std::move(parts), std::move(raw), AddedTokens(normalized)));
}

absl::Status HuggingFaceTokenizer::EncodeWord(const std::string& word, EncodeCache* cache,
                                              std::vector<int32_t>* tokens) const {
  if (word.size() > kCachedBytes) return parts_.model.Encode(word, tokens);
  const auto found = cache->words.find(word);
  if (found != cache->words.end()) {
    tokens->insert(tokens->end(), found->second.begin(), found->second.end());
    return absl::OkStatus();
  }
  std::vector<int32_t> encoded;
  PLANC_RETURN_IF_ERROR(parts_.model.Encode(word, &encoded));
  tokens->insert(tokens->end(), encoded.begin(), encoded.end());
  if (cache->words.size() < kCachedWords) cache->words[word] = std::move(encoded);
  return absl::OkStatus();
}

absl::Status HuggingFaceTokenizer::EncodePart(const TextPart& part, EncodeCache* cache,
                                              std::vector<int32_t>* tokens) const {
  std::vector<Piece> pieces = {{part.text, part.first}};
  for (const auto& splitter : parts_.splitters) {
    std::vector<Piece> cut;
    for (const Piece& piece : pieces) PLANC_RETURN_IF_ERROR(splitter->Split(piece, &cut));
    pieces = std::move(cut);
  }
  for (const Piece& piece : pieces) {
    PLANC_RETURN_IF_ERROR(EncodeWord(piece.text, cache, tokens));
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceTokenizer::Encode(const std::string& text, EncodeCache* cache,
                                          std::vector<int32_t>* tokens) const {
  PLANC_RETURN_IF_ERROR(CheckUtf8(text));
  tokens->insert(tokens->end(), parts_.before.begin(), parts_.before.end());
  for (const TextPart& raw : raw_.Split(text, true)) {
    if (raw.token >= 0) {
      tokens->push_back(raw.token);
      continue;
    }
    PLANC_ASSIGN_OR_RETURN(const std::string normal, Normalize(parts_.normalizers, raw.text));
    for (const TextPart& part : normalized_.Split(normal, raw.first)) {
      if (part.token >= 0) {
        tokens->push_back(part.token);
      } else {
        PLANC_RETURN_IF_ERROR(EncodePart(part, cache, tokens));
      }
    }
  }
  tokens->insert(tokens->end(), parts_.after.begin(), parts_.after.end());
  return absl::OkStatus();
}

std::string HuggingFaceTokenizer::Decode(const std::vector<int32_t>& tokens) const {
  std::vector<std::string> texts;
  for (const int32_t token : tokens) {
    const auto found = texts_.find(token);
    if (found != texts_.end()) texts.push_back(found->second);
  }
  if (!parts_.decoders.has_value()) return absl::StrJoin(texts, " ");
  for (const DecodeStep& step : *parts_.decoders) DecodeOne(step, &texts);
  return absl::StrJoin(texts, "");
}

std::optional<int32_t> HuggingFaceTokenizer::FindToken(const std::string& text) const {
  const auto found = added_.find(text);
  return found != added_.end() ? std::optional(found->second) : parts_.model.Find(text);
}

std::optional<int32_t> HuggingFaceTokenizer::EndOfDocument() const {
  std::optional<int32_t> end;
  for (const char* const text : kEndOfDocument) {
    const auto found = added_.find(text);
    if (found == added_.end()) continue;
    if (end.has_value()) return std::nullopt;  // the file does not say which
    end = found->second;
  }
  return end;
}

}  // namespace planc
