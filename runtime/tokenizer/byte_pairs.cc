#include "runtime/tokenizer/byte_pairs.h"

#include <functional>
#include <queue>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/tokenizer/utf8.h"
#include "schemas/status.h"

namespace planc {
namespace {

uint64_t PairKey(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

}  // namespace

absl::StatusOr<BytePairModel> BytePairModel::Create(
    std::unordered_map<std::string, int32_t> vocab,
    const std::vector<std::pair<std::string, std::string>>& merges, Options options) {
  BytePairModel model;
  model.vocab_ = std::move(vocab);
  model.options_ = std::move(options);
  if (!model.options_.unknown.empty() && !model.Find(model.options_.unknown).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.unk_token `", model.options_.unknown, "` is not in the vocabulary"));
  }
  model.merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const std::optional<int32_t> first = model.Find(left);
    const std::optional<int32_t> second = model.Find(right);
    const std::optional<int32_t> both = model.Find(left + right);
    if (!first.has_value() || !second.has_value() || !both.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("model.merges: `", left, "` and `", right,
                                                     "` or what they make is not in the "
                                                     "vocabulary"));
    }
    // Of a pair that is listed twice the later place counts, as in Hugging Face's library.
    model.merges_[PairKey(*first, *second)] = {static_cast<int32_t>(rank), *both};
  }
  return model;
}

std::optional<int32_t> BytePairModel::Find(const std::string& piece) const {
  const auto found = vocab_.find(piece);
  return found == vocab_.end() ? std::nullopt : std::optional(found->second);
}

bool BytePairModel::AppendBytes(std::string_view character, std::vector<int32_t>* tokens) const {
  const size_t before = tokens->size();
  for (const char byte : character) {
    const auto token = Find(absl::StrFormat("<0x%02X>", static_cast<unsigned char>(byte)));
    if (!token.has_value()) {
      tokens->resize(before);
      return false;
    }
    tokens->push_back(*token);
  }
  return true;
}

absl::Status BytePairModel::Start(std::string_view word, std::vector<Symbol>* symbols) const {
  std::vector<int32_t> tokens;
  bool after_unknown = false;
  for (size_t at = 0; at < word.size();) {
    const std::string character(word.substr(at, CharacterBytes(word, at)));
    at += character.size();
    if (const auto token = Find(character); token.has_value()) {
      tokens.push_back(*token);
      after_unknown = false;
    } else if (options_.byte_fallback && AppendBytes(character, &tokens)) {
      after_unknown = false;
    } else if (options_.unknown.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("no token stands for the character `",
                                                     character,
                                                     "`, and the tokenizer has none for "
                                                     "unknown ones"));
    } else if (!after_unknown || !options_.fuse_unknown) {
      tokens.push_back(*Find(options_.unknown));
      after_unknown = true;
    }
  }
  const int32_t count = static_cast<int32_t>(tokens.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols->push_back({tokens[static_cast<size_t>(i)], i - 1, i + 1 == count ? -1 : i + 1});
  }
  return absl::OkStatus();
}

const BytePairModel::Merge* BytePairModel::FindMerge(int32_t left, int32_t right) const {
  const auto found = merges_.find(PairKey(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

absl::Status BytePairModel::Encode(std::string_view word, std::vector<int32_t>* tokens) const {
  if (options_.ignore_merges) {
    if (const auto whole = Find(std::string(word)); whole.has_value()) {
      tokens->push_back(*whole);
      return absl::OkStatus();
    }
  }
  std::vector<Symbol> symbols;
  PLANC_RETURN_IF_ERROR(Start(word, &symbols));
  using Candidate = std::tuple<int32_t, int32_t, int32_t>;  // rank, left symbol, result
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](int32_t left) {
    if (left < 0 || symbols[static_cast<size_t>(left)].next < 0) return;
    const Symbol& symbol = symbols[static_cast<size_t>(left)];
    const Merge* const merge =
        FindMerge(symbol.token, symbols[static_cast<size_t>(symbol.next)].token);
    if (merge != nullptr) queue.emplace(merge->rank, left, merge->result);
  };
  for (size_t i = 0; i < symbols.size(); ++i) offer(static_cast<int32_t>(i));
  while (!queue.empty()) {
    const auto [rank, left, result] = queue.top();
    queue.pop();
    Symbol& symbol = symbols[static_cast<size_t>(left)];
    if (symbol.token < 0 || symbol.next < 0) continue;
    Symbol& next = symbols[static_cast<size_t>(symbol.next)];
    // Either part may have been merged since the pair was found.
    const Merge* const merge = FindMerge(symbol.token, next.token);
    if (merge == nullptr || merge->rank != rank || merge->result != result) continue;
    symbol.token = result;
    next.token = -1;
    symbol.next = next.next;
    if (next.next >= 0) symbols[static_cast<size_t>(next.next)].previous = left;
    offer(symbol.previous);
    offer(left);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.token >= 0) tokens->push_back(symbol.token);
  }
  return absl::OkStatus();
}

}  // namespace planc
