#include "compiler/spec/suggest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "compiler/spec/job_schema.h"

namespace planc {
namespace {

// Words longer than this are no misspelt keys; the bound keeps the quadratic distance cheap.
constexpr size_t kLongestWord = 64;
constexpr size_t kMostSuggestions = 3;

std::string Normalize(const std::string& word) {
  std::string result = absl::AsciiStrToLower(word);
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

// Distances up to this count as a misspelling of a word of this length.
int Tolerance(const std::string& word) {
  if (word.size() <= 2) return 1;
  return word.size() <= 5 ? 2 : static_cast<int>(word.size()) / 3;
}

bool IsClose(const std::string& word, const std::string& candidate, int distance) {
  // Of a two-letter word at least one letter must be right.
  return distance <= Tolerance(word) &&
         distance < static_cast<int>(std::max(word.size(), candidate.size()));
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

std::string Nearest(const std::string& word, const std::vector<std::string>& candidates) {
  if (word.size() > kLongestWord) return "";
  const std::string normal = Normalize(word);
  std::string best;
  int best_distance = static_cast<int>(kLongestWord) + 1;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(normal, Normalize(candidate));
    if (!IsClose(normal, candidate, distance) || distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::vector<std::string> SuggestKeys(const std::string& section, const std::string& key) {
  if (key.size() > kLongestWord) return {};
  const std::string normal = Normalize(key);
  std::vector<std::pair<int, std::string>> scored;
  for (const std::string& path : AllPaths()) {
    const std::string leaf = LeafOf(path);
    const bool sibling = JoinPath(section, leaf) == path;
    const int distance = EditDistance(normal, leaf);
    // In other sections only nearly the same name is worth mentioning.
    const bool close = sibling ? IsClose(normal, leaf, distance)
                               : distance == 0 || (normal.size() > 4 && distance <= 1);
    // Of equal distances, siblings and names with the same first letter come first.
    const bool same_start = !leaf.empty() && !normal.empty() && leaf[0] == normal[0];
    if (close) scored.emplace_back(distance * 4 + (sibling ? 0 : 2) + (same_start ? 0 : 1), path);
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> suggestions;
  for (const auto& [score, path] : scored) {
    // Only those as close as the best one.
    if (score / 4 > scored.front().first / 4 || suggestions.size() == kMostSuggestions) break;
    suggestions.push_back(path);
  }
  return suggestions;
}

}  // namespace planc
