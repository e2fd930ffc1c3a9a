#include "runtime/process_group/shared_bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace planc {

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4,
              "the system waits on a plain word");

uint32_t SharedBell::Expect(int64_t member) {
  const uint32_t rings = rings_.load();
  awaited_.store(static_cast<uint32_t>(1 + member));
  return rings;
}

void SharedBell::Sleep(uint32_t expected, absl::Duration longest) {
  const timespec time = absl::ToTimespec(longest);
  // Returns at once when the bell was rung meanwhile; what woke the owner is for it to find out.
  syscall(SYS_futex, &rings_, FUTEX_WAIT, expected, &time, nullptr, 0);
}

void SharedBell::RingFrom(int64_t member) {
  auto awaited = static_cast<uint32_t>(1 + member);
  if (awaited_.load() == awaited && awaited_.compare_exchange_strong(awaited, 0)) Ring();
}

void SharedBell::Ring() {
  rings_.fetch_add(1);
  syscall(SYS_futex, &rings_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace planc
