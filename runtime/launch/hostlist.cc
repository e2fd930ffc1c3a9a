#include "runtime/launch/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr uint64_t kMostTasks = 1'000'000'000;  // of one node

absl::Status Malformed(const std::string& list) {
  return absl::InvalidArgumentError(absl::StrCat("malformed host list \"", list, "\""));
}

// Digits with any number of zeros in front. Slurm counts in 64 bits, and takes the largest number
// for an overflow.
bool ReadNumber(const std::string& text, uint64_t* number) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         absl::SimpleAtoi(text, number) && *number < std::numeric_limits<uint64_t>::max();
}

// Splits at the commas outside brackets.
absl::StatusOr<std::vector<std::string>> SplitNames(const std::string& list) {
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : list) {
    if (c == '[' && ++depth > 1) return Malformed(list);
    if (c == ']' && --depth < 0) return Malformed(list);
    if (c == ',' && depth == 0) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  if (depth != 0) return Malformed(list);
  return names;
}

// The numbers of one bracket, as text: "01-03,7" is 01 02 03 7.
absl::StatusOr<std::vector<std::string>> ExpandBracket(const std::string& ranges) {
  std::vector<std::string> numbers;
  for (const std::string& range : std::vector<std::string>(absl::StrSplit(ranges, ','))) {
    const std::vector<std::string> bounds = absl::StrSplit(range, '-');
    uint64_t low = 0;
    uint64_t high = 0;
    if (bounds.size() > 2 || !ReadNumber(bounds.front(), &low) ||
        !ReadNumber(bounds.back(), &high) || high < low || high - low >= kMaximumHosts ||
        numbers.size() + (high - low) >= kMaximumHosts) {
      return Malformed(ranges);
    }
    for (uint64_t number = low; number <= high; ++number) {
      numbers.push_back(absl::StrFormat("%0*d", static_cast<int>(bounds.front().size()), number));
    }
  }
  return numbers;
}

absl::StatusOr<std::vector<std::string>> ExpandName(const std::string& name) {
  std::vector<std::string> expanded = {""};
  size_t position = 0;
  bool had_bracket = false;
  while (position < name.size()) {
    const size_t open = name.find('[', position);
    const std::string literal = name.substr(position, open - position);
    if (open == std::string::npos && had_bracket) return Malformed(name);
    for (std::string& prefix : expanded) prefix += literal;
    if (open == std::string::npos) return expanded;
    const size_t close = name.find(']', open);
    PLANC_ASSIGN_OR_RETURN(const std::vector<std::string> numbers,
                           ExpandBracket(name.substr(open + 1, close - open - 1)));
    if (expanded.size() * numbers.size() > kMaximumHosts) return Malformed(name);
    std::vector<std::string> longer;
    for (const std::string& prefix : expanded) {
      for (const std::string& number : numbers) longer.push_back(prefix + number);
    }
    expanded = std::move(longer);
    position = close + 1;
    had_bracket = true;
  }
  return expanded;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostlist(const std::string& list) {
  std::vector<std::string> hosts;
  if (list.empty()) return hosts;
  PLANC_ASSIGN_OR_RETURN(const std::vector<std::string> names, SplitNames(list));
  for (const std::string& name : names) {
    if (name.empty()) return Malformed(list);
    const absl::StatusOr<std::vector<std::string>> expanded = ExpandName(name);
    if (!expanded.ok() || hosts.size() + expanded->size() > kMaximumHosts) return Malformed(list);
    hosts.insert(hosts.end(), expanded->begin(), expanded->end());
  }
  return hosts;
}

absl::StatusOr<std::vector<int64_t>> ExpandTaskCounts(const std::string& list) {
  std::vector<int64_t> counts;
  for (const std::string& item : std::vector<std::string>(absl::StrSplit(list, ','))) {
    const size_t open = item.find("(x");
    const std::string count = item.substr(0, open);
    const std::string times =
        open == std::string::npos ? "1" : item.substr(open + 2, item.size() - open - 3);
    const bool closed = open == std::string::npos || (item.size() > open + 3 && item.back() == ')');
    uint64_t tasks = 0;
    uint64_t nodes = 0;
    if (!closed || !ReadNumber(count, &tasks) || !ReadNumber(times, &nodes) || tasks > kMostTasks ||
        nodes > kMaximumHosts || counts.size() + nodes > kMaximumHosts) {
      return absl::InvalidArgumentError(absl::StrCat("malformed task counts \"", list, "\""));
    }
    counts.insert(counts.end(), nodes, static_cast<int64_t>(tasks));
  }
  return counts;
}

}  // namespace planc
