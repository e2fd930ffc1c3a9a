#ifndef PLANC_RUNTIME_LAUNCH_RANK_OUTPUT_H_
#define PLANC_RUNTIME_LAUNCH_RANK_OUTPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/process_group/socket.h"

namespace planc {

// The path of a rank's log file.
std::string RankLogPath(const std::string& directory, int64_t rank);
// Writes to a descriptor. Output that cannot be written (a closed terminal, a full disk) is lost:
// it must not stop the training.
void WriteAll(int descriptor, const std::string& text);
// The last `lines` lines of a file; empty when it cannot be read.
std::vector<std::string> LastLines(const std::string& path, int lines);

// A pipe whose writing end a rank gets as its output. What arrives goes to the log file and to a
// descriptor of this process.
class OutputTee {
 public:
  // `log` and `terminal` are descriptors that stay open longer than the tee.
  static absl::StatusOr<OutputTee> Create(int log, int terminal);

  int reading_end() const { return reading_.get(); }
  int writing_end() const { return writing_.get(); }
  // After the rank was started: only it may hold the pipe open.
  void CloseWritingEnd() { writing_.Close(); }
  // Passes on what is there. False at the end of the output.
  bool Pass();

 private:
  OutputTee(Socket reading, Socket writing, int log, int terminal)
      : reading_(std::move(reading)),
        writing_(std::move(writing)),
        log_(log),
        terminal_(terminal) {}

  Socket reading_;
  Socket writing_;
  int log_;
  int terminal_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_RANK_OUTPUT_H_
