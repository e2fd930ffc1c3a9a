#ifndef PLANC_RUNTIME_PROCESS_GROUP_SHARED_RING_H_
#define PLANC_RUNTIME_PROCESS_GROUP_SHARED_RING_H_

#include <atomic>
#include <cstdint>

namespace planc {

// Slots in memory that several processes map: one writer fills them in turn, and every reader reads
// each once. Rounds count from 0; the slot of a round is used again kSlots rounds later. It is full
// when it is published, and free for a reader when that has released it. Waiting until a slot is
// full or free is left to the caller.
class SharedRing {
 public:
  static constexpr uint64_t kSlots = 4;

  // Zeros at first. `slot_bytes`: a multiple of 64.
  static int64_t Bytes(int64_t readers, int64_t slot_bytes);
  // `memory`: aligned to 64 bytes; must outlive the ring.
  SharedRing(uint8_t* memory, int64_t readers, int64_t slot_bytes);

  uint8_t* Slot(uint64_t round) const;

  // The writer's calls. The readers see `label` with the slot.
  bool IsFree(int64_t reader, uint64_t round) const {
    return released(reader).load() + kSlots > round;
  }
  void Publish(uint64_t round, uint64_t label);

  // The readers' calls.
  bool IsFull(uint64_t round) const { return lines_->count.load() > round; }
  uint64_t Label(uint64_t round) const { return lines_[1 + round % kSlots].label; }
  void Release(int64_t reader, uint64_t round) { released(reader).store(round + 1); }

 private:
  // Alone on its cache line: it changes hands without disturbing its neighbours.
  union alignas(64) Line {
    std::atomic<uint64_t> count;
    uint64_t label;
  };

  std::atomic<uint64_t>& released(int64_t reader) const {
    return lines_[1 + kSlots + reader].count;
  }

  Line* lines_;  // published rounds; labels of the slots; rounds released by each reader
  uint8_t* slots_;
  int64_t slot_bytes_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_SHARED_RING_H_
