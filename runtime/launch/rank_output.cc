#include "runtime/launch/rank_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "schemas/fault.h"

namespace planc {
namespace {

void WriteAll(int descriptor, const char* data, ssize_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(descriptor, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    data += written;
    bytes -= written;
  }
}

}  // namespace

void WriteAll(int descriptor, const std::string& text) {
  WriteAll(descriptor, text.data(), static_cast<ssize_t>(text.size()));
}

std::string RankLogPath(const std::string& directory, int64_t rank) {
  return absl::StrCat(directory, "/rank-", rank, ".log");
}

std::vector<std::string> LastLines(const std::string& path, int lines) {
  std::ifstream file(path);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back(line);
    if (static_cast<int>(last.size()) > lines) last.pop_front();
  }
  return {last.begin(), last.end()};
}

absl::StatusOr<OutputTee> OutputTee::Create(int log, int terminal) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return SystemError("pipe", errno);
  }
  return OutputTee(Socket(ends[0]), Socket(ends[1]), log, terminal);
}

bool OutputTee::Pass() {
  char buffer[65536];
  ssize_t bytes;
  do {
    bytes = read(reading_.get(), buffer, sizeof(buffer));
  } while (bytes < 0 && errno == EINTR);
  if (bytes <= 0) return false;
  WriteAll(log_, buffer, bytes);
  WriteAll(terminal_, buffer, bytes);
  return true;
}

}  // namespace planc
