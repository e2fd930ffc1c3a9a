#ifndef PLANC_PLANC_TEXT_H_
#define PLANC_PLANC_TEXT_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace planc {

// Widest line of human output.
inline constexpr int kColumns = 100;

// "1.50 GiB", "384 B": three significant digits, binary units.
std::string BytesText(int64_t bytes);
// "405.85 G", "7": two decimals, decimal units; for elements, FLOPs.
std::string CountText(double count);
// "12,345,678".
std::string GroupedText(int64_t number);
// "1.25 ms": three significant digits.
std::string SecondsText(double seconds);
// "0-3,7,9-10" for ascending numbers.
std::string RangesText(const std::vector<int64_t>& ascending);

// Breaks each line of `text` that is wider than kColumns at blanks; continuations are indented by
// `indent` blanks more than the line they continue. A word that is wider than a line stays whole.
std::string Wrap(const std::string& text, int indent);

// Columns of text, aligned when printed.
class TextTable {
 public:
  // `header` names the columns; a name that starts with '>' is right-aligned (the '>' is dropped).
  explicit TextTable(std::vector<std::string> header);
  // REQUIRES: as many cells as columns.
  void Add(std::vector<std::string> cells);
  // A line of dashes, e.g. above a total.
  void AddRule();
  bool empty() const { return rows_.empty(); }
  // Every line begins with `indent` blanks; no trailing blanks.
  std::string Text(int indent) const;

 private:
  std::vector<std::string> header_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

// True when `out` is the process's standard output or error and that is a terminal.
bool IsTerminal(const std::ostream& out);

// Whether text for people that goes to `out` is coloured: as SetColour last said; at first it is
// not.
bool ShowsColour(std::ostream& out);
void SetColour(std::ostream& out, bool colour);

}  // namespace planc

#endif  // PLANC_PLANC_TEXT_H_
