#ifndef PLANC_COMPILER_SPEC_SUGGEST_H_
#define PLANC_COMPILER_SPEC_SUGGEST_H_

#include <string>
#include <vector>

namespace planc {

// Fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
int EditDistance(const std::string& a, const std::string& b);

// The candidates that `word` may stand for, best first and all equally good; at most 4. In this
// order: the same but for capitals, dashes and underscores; the same words and numbers with other
// separators; an abbreviation that leaves some of them out (dp for dp_shard, llama3-8b for
// llama3.1-8b); a misspelling. Numbers are never changed: llama3-8b is no llama2-7b.
std::vector<std::string> NearestNames(const std::string& word,
                                      const std::vector<std::string>& candidates);

// The only candidate that `word` may stand for; "" if there is none, or more than one.
std::string Nearest(const std::string& word, const std::vector<std::string>& candidates);

// A key by the name that another program gives it; a row of other_names.def.
struct OtherName {
  std::string name;
  std::string key;   // path of our key; "" where planc has none
  std::string note;  // what to write where more than the name differs
};

// The row about `key` as it stands in `section`, or nullptr.
const OtherName* FindOtherName(const std::string& section, const std::string& key);

// All rows, one for each name.
const std::vector<OtherName>& OtherNames();

// Keys that the unknown `key` of section `section` may stand for, as full paths, best first: what
// other programs call so, a similar key of the same section, or the same or a similar name in
// another one. At most 3.
std::vector<std::string> SuggestKeys(const std::string& section, const std::string& key);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_SUGGEST_H_
