#ifndef PLANC_COMPILER_SPEC_SUGGEST_H_
#define PLANC_COMPILER_SPEC_SUGGEST_H_

#include <string>
#include <vector>

namespace planc {

// Fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
int EditDistance(const std::string& a, const std::string& b);

// The candidate closest to `word`, if it is close enough to be a misspelling; "" otherwise.
// Capitals, and dashes for underscores, cost nothing.
std::string Nearest(const std::string& word, const std::vector<std::string>& candidates);

// Keys that the unknown `key` of section `section` may stand for, as full paths, best first: a
// similar key of the same section, or the same or a similar name in another one. At most 3.
std::vector<std::string> SuggestKeys(const std::string& section, const std::string& key);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_SUGGEST_H_
