#ifndef PLANC_RUNTIME_METRICS_EVENT_FILE_H_
#define PLANC_RUNTIME_METRICS_EVENT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/metrics/append_file.h"

namespace planc {

// CRC-32C (Castagnoli) of `bytes`.
uint32_t Crc32c(const std::string& bytes);
// The checksum that TFRecord files store: the CRC rotated right by 15 bits, plus a constant.
uint32_t MaskedCrc32c(const std::string& bytes);
// One TFRecord: u64 length, masked CRC of these 8 bytes, data, masked CRC of the data.
std::string TfRecord(const std::string& data);

// Whether planc gives its event files such a name.
bool IsEventFileName(const std::string& name);

// A TensorBoard event file: TFRecords that hold Event messages.
class EventFile {
 public:
  // Creates `directory`/events.out.tfevents.<seconds>.planc, a file of its own: TensorBoard reads
  // the files of a directory by name, so where planc has written there before, the seconds are more
  // than those of every such file. `wall_time`: now, in seconds since 1970. `first_step`: of the
  // first scalars to come; TensorBoard drops what earlier files hold from that step on.
  // Errors: Internal naming the path.
  static absl::StatusOr<std::unique_ptr<EventFile>> Create(const std::string& directory,
                                                           double wall_time, int64_t first_step);

  // Writes the events that a full disk has left in memory. Errors: as AppendFile::AppendOrKeep.
  absl::Status Flush() { return file_->AppendOrKeep("", /*most_kept=*/0); }

  // Appends one event with these scalars, in this order, or keeps it while the disk is full.
  absl::Status WriteScalars(int64_t step, double wall_time,
                            const std::vector<std::pair<std::string, double>>& scalars);

 private:
  explicit EventFile(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}

  const std::unique_ptr<AppendFile> file_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_EVENT_FILE_H_
