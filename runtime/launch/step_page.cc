#include "runtime/launch/step_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "schemas/fault.h"

namespace planc {
namespace {

static_assert(std::atomic<int64_t>::is_always_lock_free, "processes share them");

absl::Status PageError() { return SystemError("page of steps", errno); }

size_t PageBytes(int64_t ranks) {
  return static_cast<size_t>(ranks) * sizeof(std::atomic<int64_t>);
}

}  // namespace

absl::StatusOr<StepPage> StepPage::Create(int64_t ranks) {
  Socket memory(memfd_create("planc-steps", MFD_CLOEXEC));
  if (memory.get() < 0 || ftruncate(memory.get(), static_cast<off_t>(PageBytes(ranks))) != 0) {
    return PageError();
  }
  return Map(std::move(memory), ranks);
}

absl::StatusOr<StepPage> StepPage::Open(int descriptor, int64_t ranks) {
  if (descriptor < 0) return StepPage(Socket(-1), nullptr, ranks);
  return Map(Socket(descriptor), ranks);
}

absl::StatusOr<StepPage> StepPage::Map(Socket descriptor, int64_t ranks) {
  void* const memory =
      mmap(nullptr, PageBytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (memory == MAP_FAILED) return PageError();
  return StepPage(std::move(descriptor), static_cast<std::atomic<int64_t>*>(memory), ranks);
}

StepPage::StepPage(StepPage&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      steps_(std::exchange(other.steps_, nullptr)),
      ranks_(other.ranks_) {}

StepPage::~StepPage() {
  if (steps_ != nullptr) munmap(steps_, PageBytes(ranks_));
}

void StepPage::Publish(int64_t rank, int64_t step) {
  if (steps_ != nullptr) steps_[rank].store(step, std::memory_order_relaxed);
}

int64_t StepPage::StepOf(int64_t rank) const {
  return steps_ == nullptr ? 0 : steps_[rank].load(std::memory_order_relaxed);
}

}  // namespace planc
