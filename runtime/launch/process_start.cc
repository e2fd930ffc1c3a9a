#include "runtime/launch/process_start.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace planc {
namespace {

// Fields of proc(5) behind the name, which is in brackets and may hold anything.
constexpr size_t kState = 0;
constexpr size_t kStartTime = 19;

}  // namespace

absl::StatusOr<int64_t> ProcessStart(int64_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');
  const absl::Status unseen = absl::NotFoundError(absl::StrCat("process ", pid, " is not there"));
  if (name_end == std::string::npos) return unseen;
  const std::vector<std::string> fields =
      absl::StrSplit(text.substr(name_end + 1), ' ', absl::SkipEmpty());
  int64_t start = 0;
  if (fields.size() <= kStartTime || !absl::SimpleAtoi(fields[kStartTime], &start)) return unseen;
  if (fields[kState] == "Z" || fields[kState] == "X") {
    return absl::FailedPreconditionError(absl::StrCat("process ", pid, " has ended"));
  }
  return start;
}

}  // namespace planc
