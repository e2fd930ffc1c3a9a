#include "runtime/process_group/shared_ring.h"

namespace planc {

int64_t SharedRing::Bytes(int64_t readers, int64_t slot_bytes) {
  const auto slots = static_cast<int64_t>(kSlots);
  return (1 + slots + readers) * static_cast<int64_t>(sizeof(Line)) + slots * slot_bytes;
}

SharedRing::SharedRing(uint8_t* memory, int64_t readers, int64_t slot_bytes)
    : lines_(reinterpret_cast<Line*>(memory)),
      slots_(reinterpret_cast<uint8_t*>(lines_ + 1 + kSlots + readers)),
      slot_bytes_(slot_bytes) {}

uint8_t* SharedRing::Slot(uint64_t round) const {
  return slots_ + static_cast<int64_t>(round % kSlots) * slot_bytes_;
}

void SharedRing::Publish(uint64_t round, uint64_t label) {
  lines_[1 + round % kSlots].label = label;
  lines_->count.store(round + 1);
}

}  // namespace planc
