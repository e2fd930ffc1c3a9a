#include "planc/text.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace planc {
namespace {

// Three significant digits of a number below 1024.
std::string ThreeDigits(double value) {
  if (value < 9.995) return absl::StrFormat("%.2f", value);
  if (value < 99.95) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.0f", value);
}

// Characters of UTF-8 text.
size_t Width(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; });
}

std::string Padded(const std::string& text, size_t width, bool right) {
  const std::string blanks(width - std::min(width, Width(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::string WrapLine(const std::string& line, int indent) {
  std::string result;
  std::string rest = line;
  const size_t first = line.find_first_not_of(' ');
  const std::string blanks((first == std::string::npos ? 0 : first) + indent, ' ');
  while (Width(rest) > static_cast<size_t>(kColumns)) {
    size_t cut = rest.rfind(' ', kColumns);
    if (cut == std::string::npos || rest.find_first_not_of(' ') >= cut) {
      cut = rest.find(' ', kColumns);
      if (cut == std::string::npos) break;
    }
    const size_t next = rest.find_first_not_of(' ', cut);
    if (next == std::string::npos) break;
    std::string head = rest.substr(0, cut);
    head.erase(head.find_last_not_of(' ') + 1);
    absl::StrAppend(&result, head, "\n");
    rest = blanks + rest.substr(next);
  }
  return result + rest;
}

}  // namespace

std::string BytesText(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (std::llabs(bytes) < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (std::abs(value) >= 1023.5 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  return absl::StrCat(value < 0 ? "-" : "", ThreeDigits(std::abs(value)), " ", kUnits[unit]);
}

std::string CountText(double count) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P", " E"};
  if (std::abs(count) < 1000) return absl::StrFormat("%.0f", count);
  int unit = 0;
  while (std::abs(count) >= 999.995 && unit < 6) {
    count /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.2f%s", count, kUnits[unit]);
}

std::string GroupedText(int64_t number) {
  std::string digits = absl::StrCat(number);
  const size_t begin = number < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > begin + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string SecondsText(double seconds) {
  if (seconds >= 1) return ThreeDigits(seconds) + " s";
  if (seconds >= 1e-3) return ThreeDigits(seconds * 1e3) + " ms";
  return ThreeDigits(seconds * 1e6) + " us";
}

std::string RangesText(const std::vector<int64_t>& ascending) {
  std::string text;
  for (size_t i = 0; i < ascending.size();) {
    size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    if (!text.empty()) text += ',';
    absl::StrAppend(&text, ascending[i]);
    if (last > i) absl::StrAppend(&text, "-", ascending[last]);
    i = last + 1;
  }
  return text;
}

std::string Wrap(const std::string& text, int indent) {
  std::string result;
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    absl::StrAppend(&result, WrapLine(lines[i], indent), i + 1 < lines.size() ? "\n" : "");
  }
  return result;
}

TextTable::TextTable(std::vector<std::string> header) : header_(std::move(header)) {
  for (std::string& name : header_) {
    right_.push_back(!name.empty() && name[0] == '>');
    if (right_.back()) name.erase(0, 1);
  }
}

void TextTable::Add(std::vector<std::string> cells) {
  cells.resize(header_.size());
  rows_.push_back(std::move(cells));
}

void TextTable::AddRule() { rows_.emplace_back(); }

std::string TextTable::Text(int indent) const {
  std::vector<size_t> widths;
  for (const std::string& name : header_) widths.push_back(Width(name));
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  const auto append = [&](const std::vector<std::string>& cells) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < header_.size(); ++i) {
      const std::string cell = cells.empty() ? std::string(widths[i], '-') : cells[i];
      absl::StrAppend(&line, i == 0 ? "" : "  ", Padded(cell, widths[i], right_[i]));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  };
  append(header_);
  for (const std::vector<std::string>& row : rows_) append(row);
  return text;
}

namespace {

// The place of the setting among the numbers that a stream keeps for its users.
int ColourIndex() {
  static const int index = std::ios_base::xalloc();
  return index;
}

}  // namespace

bool ShowsColour(std::ostream& out) { return out.iword(ColourIndex()) != 0; }

void SetColour(std::ostream& out, bool colour) { out.iword(ColourIndex()) = colour ? 1 : 0; }

bool IsTerminal(const std::ostream& out) {
  if (out.rdbuf() == std::cout.rdbuf()) return isatty(STDOUT_FILENO) == 1;
  return out.rdbuf() == std::cerr.rdbuf() && isatty(STDERR_FILENO) == 1;
}

}  // namespace planc
