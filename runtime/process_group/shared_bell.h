#ifndef PLANC_RUNTIME_PROCESS_GROUP_SHARED_BELL_H_
#define PLANC_RUNTIME_PROCESS_GROUP_SHARED_BELL_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace planc {

// Where one member of a group sleeps until another one rings, in memory that both map; zeros at
// first. A member that does not sleep costs the others one read.
class alignas(64) SharedBell {
 public:
  // The owner is about to sleep for `member`; looks once more whether it has to; sleeps for
  // `longest` at most, and not at all if the bell was rung since Expect; and tells, at last, that
  // it is awake.
  uint32_t Expect(int64_t member);
  void Sleep(uint32_t expected, absl::Duration longest);
  void Awake() { awaited_.store(0); }

  // Wakes the owner if it sleeps until `member` has done something: called by that member after
  // it. What it wrote before, sequentially consistent, is seen by the owner.
  void RingFrom(int64_t member);
  // Wakes the owner in any case.
  void Ring();

 private:
  std::atomic<uint32_t> rings_;
  std::atomic<uint32_t> awaited_;  // 1 + the member that the owner sleeps for; 0: it is awake
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_SHARED_BELL_H_
