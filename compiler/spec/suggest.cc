#include "compiler/spec/suggest.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/spec/job_schema.h"

namespace planc {
namespace {

// Words longer than this are no misspelt keys; the bound keeps the quadratic distance cheap.
constexpr size_t kLongestWord = 64;
constexpr size_t kMostKeys = 3;
constexpr size_t kMostNames = 4;

// How a word relates to a candidate, best first. An abbreviation adds the number of tokens that it
// leaves out, a misspelling its distance.
constexpr int kSame = 0;
constexpr int kSameTokens = 10;
constexpr int kAbbreviated = 20;
constexpr int kMisspelt = 40;

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

// Small letters, without separators other than the dots of numbers.
std::string Squeeze(const std::string& word) {
  std::string result;
  for (const char c : absl::AsciiStrToLower(word)) {
    if (c != '-' && c != '_' && c != ' ') result += c;
  }
  return result;
}

// "llama3.1-8b" -> llama, 3.1, 8, b.
std::vector<std::string> TokensOf(const std::string& word) {
  std::vector<std::string> tokens;
  const std::string text = absl::AsciiStrToLower(word);
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    if (IsLetter(text[at])) {
      while (end < text.size() && IsLetter(text[end])) ++end;
    } else if (IsDigit(text[at])) {
      const auto in_number = [&text](size_t i) {
        return IsDigit(text[i]) || (text[i] == '.' && i + 1 < text.size() && IsDigit(text[i + 1]));
      };
      while (end < text.size() && in_number(end)) ++end;
    } else {
      ++at;
      continue;
    }
    tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

// Whether the number `written` may be short for `number`: 3 for 3.1.
bool IsNumberOf(const std::string& written, const std::string& number) {
  return written == number || absl::StartsWith(number, absl::StrCat(written, "."));
}

// Whether all numbers of the word are those of the candidate.
bool SameNumbers(const std::vector<std::string>& word, const std::vector<std::string>& candidate) {
  const auto numbers = [](const std::vector<std::string>& tokens) {
    std::vector<std::string> found;
    std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(found),
                 [](const std::string& token) { return IsDigit(token[0]); });
    return found;
  };
  const std::vector<std::string> a = numbers(word);
  const std::vector<std::string> b = numbers(candidate);
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), IsNumberOf);
}

// Whether a short token, such as the letter in h100 or the bf of bf16, would become another one.
bool ChangesShortToken(const std::vector<std::string>& word,
                       const std::vector<std::string>& candidate) {
  if (word.size() < 2 || word.size() != candidate.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (IsLetter(word[i][0]) && word[i].size() <= 2 && word[i] != candidate[i]) return true;
  }
  return false;
}

// Whether the word leaves out tokens of the candidate, or ends of them, and changes none.
bool Abbreviates(const std::vector<std::string>& word, const std::vector<std::string>& candidate) {
  constexpr size_t kShortestStart = 4;
  size_t at = 0;
  bool telling = false;
  for (const std::string& token : word) {
    const auto stands_for = [&token](const std::string& full) {
      if (IsDigit(token[0])) return IsDigit(full[0]) && IsNumberOf(token, full);
      return token == full || (token.size() >= kShortestStart && absl::StartsWith(full, token));
    };
    while (at < candidate.size() && !stands_for(candidate[at])) ++at;
    if (at == candidate.size()) return false;
    telling = telling || (IsLetter(token[0]) && token.size() >= 2) || word.size() > 1;
    ++at;
  }
  return telling;
}

// Distances up to this count as a misspelling of a word of this length.
int Tolerance(const std::string& word) {
  if (word.size() <= 4) return 1;
  return word.size() <= 7 ? 2 : static_cast<int>(word.size()) / 3;
}

bool IsMisspelling(const std::string& word, const std::string& candidate, int distance) {
  if (distance > Tolerance(word)) return false;
  if (word.size() > 2 && candidate.size() > 1) return true;
  // Of two letters none may be another one: tp is no pp, but pt may be tp.
  std::string a = word;
  std::string b = candidate;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

// How well `candidate` explains `word`, the smaller the better; nullopt: not at all.
std::optional<int> Score(const std::string& word, const std::string& candidate) {
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  const std::string squeezed = Squeeze(word);
  const std::string wanted = Squeeze(candidate);
  if (squeezed == wanted) return kSame;
  const std::vector<std::string> tokens = TokensOf(word);
  const std::vector<std::string> others = TokensOf(candidate);
  if (!tokens.empty() && tokens == others) return kSameTokens;
  if (!tokens.empty() && Abbreviates(tokens, others)) {
    return kAbbreviated + static_cast<int>(others.size() - tokens.size());
  }
  if (!SameNumbers(tokens, others) || ChangesShortToken(tokens, others)) return std::nullopt;
  const int distance = EditDistance(squeezed, wanted);
  if (!IsMisspelling(squeezed, wanted, distance)) return std::nullopt;
  // Of equal distances, names with the same first letter come first.
  return kMisspelt + distance * 2 + (squeezed[0] == wanted[0] ? 0 : 1);
}

std::string LeafOf(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// Paths of all keys and sections.
std::vector<std::string> AllPaths() {
  std::vector<std::string> paths;
  for (const JobSection& section : AllJobSections()) {
    if (!section.path.empty()) paths.push_back(section.path);
  }
  for (const JobKey& key : AllJobKeys()) paths.push_back(key.path);
  return paths;
}

// The best of `scored`, all those of the lowest score, at most `most`.
std::vector<std::string> Best(std::vector<std::pair<int, std::string>> scored, size_t most) {
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> best;
  for (const auto& [score, name] : scored) {
    if (score > scored.front().first || best.size() == most) break;
    best.push_back(name);
  }
  return best;
}

}  // namespace

int EditDistance(const std::string& a, const std::string& b) {
  std::vector<int> before(b.size() + 1);
  std::vector<int> previous(b.size() + 1);
  std::vector<int> current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replace, previous[j] + 1, current[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::vector<std::string> NearestNames(const std::string& word,
                                      const std::vector<std::string>& candidates) {
  std::vector<std::pair<int, std::string>> scored;
  for (const std::string& candidate : candidates) {
    const std::optional<int> score = Score(word, candidate);
    if (score.has_value()) scored.emplace_back(*score, candidate);
  }
  return Best(std::move(scored), kMostNames);
}

std::string Nearest(const std::string& word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> names = NearestNames(word, candidates);
  return names.size() == 1 ? names.front() : "";
}

const std::vector<OtherName>& OtherNames() {
  static const auto* const kNames = [] {
    auto* names = new std::vector<OtherName>();
    const auto add = [names](const char* key, const char* list, const char* note) {
      for (const absl::string_view name : absl::StrSplit(list, ' ')) {
        names->push_back({std::string(name), key, note});
      }
    };
#define PLANC_OTHER_NAMES(key, list, note) add(key, list, note);
#include "compiler/spec/other_names.def"
#undef PLANC_OTHER_NAMES
    return names;
  }();
  return *kNames;
}

const OtherName* FindOtherName(const std::string& section, const std::string& key) {
  const auto normal = [](std::string name) {
    name = absl::AsciiStrToLower(name);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  };
  for (const std::string& wanted : {normal(JoinPath(section, key)), normal(key)}) {
    for (const OtherName& other : OtherNames()) {
      if (other.name == wanted) return &other;
    }
  }
  return nullptr;
}

std::vector<std::string> SuggestKeys(const std::string& section, const std::string& key) {
  if (const OtherName* other = FindOtherName(section, key)) {
    return other->key.empty() ? std::vector<std::string>() : std::vector<std::string>{other->key};
  }
  constexpr int kElsewhere = 100;
  constexpr size_t kTellingWord = 5;
  std::vector<std::pair<int, std::string>> scored;
  for (const std::string& path : AllPaths()) {
    const std::optional<int> score = Score(key, LeafOf(path));
    if (!score.has_value()) continue;
    if (JoinPath(section, LeafOf(path)) == path) {
      scored.emplace_back(*score, path);
    } else if (*score <= kSameTokens) {
      // The right name in the wrong section says more than a similar one in this section.
      scored.emplace_back(*score + 1, path);
    } else if (key.size() >= kTellingWord && *score <= kMisspelt + 3) {
      // In other sections only nearly the same name is worth mentioning.
      scored.emplace_back(*score + kElsewhere, path);
    }
  }
  return Best(std::move(scored), kMostKeys);
}

}  // namespace planc
