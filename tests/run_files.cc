#include "tests/run_files.h"

#include <cstdint>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace planc {

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string LearnableText(int length) {
  std::string text;
  uint32_t state = 12345;
  for (int i = 0; i < length; ++i) {
    state = state * 1664525u + 1013904223u;
    text += static_cast<char>((state >> 28) == 0 ? 'A' + (state >> 20) % 26 : 'a' + i % 7);
  }
  return text;
}

std::vector<pid_t> RanksOf(pid_t launcher) {
  std::ifstream file(absl::StrCat("/proc/", launcher, "/task/", launcher, "/children"));
  std::vector<pid_t> ranks;
  for (pid_t rank = 0; file >> rank;) ranks.push_back(rank);
  return ranks;
}

}  // namespace planc
