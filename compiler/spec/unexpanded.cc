#include "compiler/spec/unexpanded.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace planc {

std::optional<Unexpanded> FindUnexpanded(const std::string& path) {
  const size_t scheme = path.find("://");
  if (scheme != std::string::npos) {
    return Unexpanded{absl::StrCat(path.substr(0, scheme + 3), " is not opened: planc reads files"),
                      "copy the files to this machine or mount the storage, and write that path"};
  }
  if (absl::StrContains(path, "{{") || absl::StrContains(path, "${{")) {
    return Unexpanded{"templates are not expanded", "write the path itself"};
  }
  const size_t dollar = path.find('$');
  if (dollar != std::string::npos && dollar + 1 < path.size()) {
    size_t end = dollar + 1;
    const bool brace = path[end] == '{' || path[end] == '(';
    while (end < path.size() &&
           (brace
                ? path[end - 1] != '}' && path[end - 1] != ')'
                : path[end] == '_' || absl::ascii_isalnum(static_cast<unsigned char>(path[end])))) {
      ++end;
    }
    return Unexpanded{absl::StrCat(path.substr(dollar, end - dollar), " is not expanded"),
                      "write the path itself; relative paths start at the folder of the job file"};
  }
  if (absl::StartsWith(path, "~")) {
    return Unexpanded{absl::StrCat(path.substr(0, path.find('/')), " is not expanded"),
                      "write the whole path, such as /home/NAME/..."};
  }
  if (path.find_first_of("*?") != std::string::npos) {
    return Unexpanded{"patterns are not expanded", "list the files: [a.bin, b.bin]"};
  }
  return std::nullopt;
}

}  // namespace planc
