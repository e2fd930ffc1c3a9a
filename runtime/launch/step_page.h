#ifndef PLANC_RUNTIME_LAUNCH_STEP_PAGE_H_
#define PLANC_RUNTIME_LAUNCH_STEP_PAGE_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/process_group/socket.h"

namespace planc {

// Memory that the launcher and its ranks share: the step that each rank is in, counted from 1; 0
// before the first. It outlives the ranks, so the launcher knows where one has died.
class StepPage {
 public:
  // A new page, all zero. Errors: Internal.
  static absl::StatusOr<StepPage> Create(int64_t ranks);
  // The page behind a descriptor that this process has inherited; -1 is a page that nobody reads.
  // Errors: Internal.
  static absl::StatusOr<StepPage> Open(int descriptor, int64_t ranks);
  ~StepPage();
  StepPage(StepPage&& other) noexcept;
  StepPage& operator=(StepPage&&) = delete;

  int descriptor() const { return descriptor_.get(); }
  void Publish(int64_t rank, int64_t step);
  int64_t StepOf(int64_t rank) const;

 private:
  StepPage(Socket descriptor, std::atomic<int64_t>* steps, int64_t ranks)
      : descriptor_(std::move(descriptor)), steps_(steps), ranks_(ranks) {}

  static absl::StatusOr<StepPage> Map(Socket descriptor, int64_t ranks);

  Socket descriptor_;
  std::atomic<int64_t>* steps_;  // by rank; null: not mapped
  int64_t ranks_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_STEP_PAGE_H_
