#include "planc/go_on.h"

#include <cctype>
#include <cstddef>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace planc {
namespace {

// As one word of a POSIX shell.
std::string Quoted(const std::string& word) {
  constexpr std::string_view kPlain = "%+,-./:=@_";
  bool plain = !word.empty();
  for (const char letter : word) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
                      kPlain.find(letter) != std::string_view::npos);
  }
  if (plain) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::string GoOnCommand(const std::vector<std::string>& arguments, const std::string& resume) {
  std::string command = "planc run";
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--resume") {
      ++i;  // its value
    } else if (arguments[i] != "--fresh" && !absl::StartsWith(arguments[i], "--resume=")) {
      absl::StrAppend(&command, " ", Quoted(arguments[i]));
    }
  }
  if (resume != "auto") absl::StrAppend(&command, " --resume=auto");
  return command;
}

}  // namespace planc
