#include "runtime/tokenizer/pieces.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/utf8.h"

namespace planc {

// From the source of GPT-2 (encoder.py).
const char kGpt2Pattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

std::string RegexReason(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDeleter {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

class RegexSplitter : public PieceSplitter {
 public:
  RegexSplitter(std::unique_ptr<pcre2_code, CodeDeleter> code, SplitBehavior behavior)
      : code_(std::move(code)), behavior_(behavior) {}

  absl::Status Split(const Piece& piece, std::vector<Piece>* pieces) const override {
    const std::unique_ptr<pcre2_match_data, MatchDeleter> match(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    const auto text = reinterpret_cast<PCRE2_SPTR>(piece.text.data());
    const auto add = [&](size_t begin, size_t end, bool is_match) {
      const bool kept = behavior_ == SplitBehavior::kIsolated ||
                        is_match == (behavior_ == SplitBehavior::kMatches);
      if (begin == end || !kept) return;
      pieces->push_back({piece.text.substr(begin, end - begin), piece.first && begin == 0});
    };
    size_t done = 0;
    for (size_t at = 0; at < piece.text.size();) {
      const int found = pcre2_match(code_.get(), text, piece.text.size(), at, PCRE2_NO_UTF_CHECK,
                                    match.get(), nullptr);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the pre-tokenizer's pattern: ", RegexReason(found)));
      }
      const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(match.get());
      if (ends[0] == ends[1]) {  // an empty match cuts nothing off
        at = ends[1] < piece.text.size() ? ends[1] + CharacterBytes(piece.text, ends[1])
                                         : piece.text.size();
        continue;
      }
      add(done, ends[0], false);
      add(ends[0], ends[1], true);
      done = at = ends[1];
    }
    add(done, piece.text.size(), false);
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<pcre2_code, CodeDeleter> code_;
  const SplitBehavior behavior_;
};

// Printable bytes stand for themselves, the others for characters from 256 on.
struct ByteAlphabet {
  std::array<uint32_t, 256> characters{};
  std::array<int, 324> bytes{};  // by character; -1: not of the alphabet
};

constexpr ByteAlphabet MakeAlphabet() {
  ByteAlphabet alphabet;
  for (int& byte : alphabet.bytes) byte = -1;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174);
    const uint32_t character = printable ? byte : next++;
    alphabet.characters[byte] = character;
    alphabet.bytes[character] = static_cast<int>(byte);
  }
  return alphabet;
}

constexpr ByteAlphabet kAlphabet = MakeAlphabet();

class ByteLevelSplitter : public PieceSplitter {
 public:
  ByteLevelSplitter() = default;

  absl::Status Split(const Piece& piece, std::vector<Piece>* pieces) const override {
    Piece mapped{"", piece.first};
    for (const char byte : piece.text) {
      AppendCharacter(kAlphabet.characters[static_cast<unsigned char>(byte)], &mapped.text);
    }
    pieces->push_back(std::move(mapped));
    return absl::OkStatus();
  }
};

class SpaceBefore : public PieceSplitter {
 public:
  absl::Status Split(const Piece& piece, std::vector<Piece>* pieces) const override {
    const bool blank = piece.text[0] == ' ';
    pieces->push_back({blank ? piece.text : " " + piece.text, piece.first});
    return absl::OkStatus();
  }
};

class MetaspaceSplitter : public PieceSplitter {
 public:
  MetaspaceSplitter(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {}

  absl::Status Split(const Piece& piece, std::vector<Piece>* pieces) const override {
    std::string text = ReplaceAll(piece.text, " ", replacement_);
    const bool begins = text.compare(0, replacement_.size(), replacement_) == 0;
    const bool prepend =
        scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && piece.first);
    if (!begins && prepend) text = replacement_ + text;
    if (!split_) {
      pieces->push_back({std::move(text), piece.first});
      return absl::OkStatus();
    }
    for (size_t begin = 0; begin < text.size();) {
      size_t end = text.find(replacement_, begin + 1);
      if (end == std::string::npos) end = text.size();
      pieces->push_back({text.substr(begin, end - begin), piece.first && begin == 0});
      begin = end;
    }
    return absl::OkStatus();
  }

 private:
  const std::string replacement_;
  const PrependScheme scheme_;
  const bool split_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PieceSplitter>> MakeRegexSplitter(const std::string& pattern,
                                                                 SplitBehavior behavior) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  std::unique_ptr<pcre2_code, CodeDeleter> compiled(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP, &code, &offset, nullptr));
  if (compiled == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the pattern `", pattern, "` at offset ",
                                                   static_cast<int64_t>(offset), ": ",
                                                   RegexReason(code)));
  }
  // Without the just-in-time compiler it is slower, not different.
  pcre2_jit_compile(compiled.get(), PCRE2_JIT_COMPLETE);
  return std::make_unique<RegexSplitter>(std::move(compiled), behavior);
}

std::unique_ptr<PieceSplitter> MakeByteLevel() { return std::make_unique<ByteLevelSplitter>(); }

std::unique_ptr<PieceSplitter> MakeSpaceBefore() { return std::make_unique<SpaceBefore>(); }

std::unique_ptr<PieceSplitter> MakeMetaspace(const std::string& replacement, PrependScheme scheme,
                                             bool split) {
  return std::make_unique<MetaspaceSplitter>(replacement, scheme, split);
}

std::string BytesOfLevel(const std::string& text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += CharacterBytes(text, at)) {
    const uint32_t character = CharacterAt(text, at);
    if (character >= kAlphabet.bytes.size() || kAlphabet.bytes[character] < 0) return text;
    bytes.push_back(static_cast<char>(kAlphabet.bytes[character]));
  }
  return bytes;
}

std::string ReplaceAll(const std::string& text, const std::string& from, const std::string& to) {
  std::string result;
  size_t done = 0;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, done)) {
    result.append(text, done, at - done);
    result += to;
    done = at + from.size();
  }
  return result.append(text, done);
}

}  // namespace planc
