#ifndef PLANC_RUNTIME_PROCESS_GROUP_SHARED_SEGMENT_H_
#define PLANC_RUNTIME_PROCESS_GROUP_SHARED_SEGMENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace planc {

// Memory without a name that the members of one group map, each from its own process, and the
// knowledge who of them is still there. The system keeps both: when a process ends, however it
// ends, its member is absent, and after the last one the memory is gone.
class SharedSegment {
 public:
  // Makes `bytes` of zeros for others to attach to; member `index` is present from now on.
  // Errors: Unavailable when the system refuses.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Create(int64_t bytes, int64_t index);

  // Attaches member `index` to the segment that a process of this machine and user has created;
  // `location` is its location().
  // Errors: Unavailable when it cannot be reached or is not the one that was meant.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Attach(const std::string& location,
                                                               int64_t bytes, int64_t index);

  // The same memory at the same address for another member in this process, for tests.
  absl::StatusOr<std::unique_ptr<SharedSegment>> AttachHere(int64_t index) const;

  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // Tells the creator's process, its descriptor and a random number that the segment begins with.
  std::string location() const;
  // Aligned to 64 bytes.
  uint8_t* memory() const;

  // Whether a member has attached and has not left.
  bool IsPresent(int64_t index) const;
  // Makes the own member absent, for ever. Thread-safe.
  void Leave();

 private:
  SharedSegment(int descriptor, int64_t index) : descriptor_(descriptor), index_(index) {}

  absl::Status Map(int64_t bytes);
  absl::Status Enter();

  const int descriptor_;  // of an open file of its own: presence is a lock that belongs to it
  const int64_t index_;
  std::shared_ptr<void> mapping_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_SHARED_SEGMENT_H_
