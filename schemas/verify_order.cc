// Happens-before on one rank: every access of memory against the accesses it conflicts with.
#include <algorithm>

#include "schemas/verify_memory.h"

namespace planc::verifying {

ValueStore::ValueStore() {
  values_.resize(3);
  values_[kZeroIndex].kind = ValueKind::kZero;
  values_[kZeroIndex].layout.fill(kAnyLayout);
  values_[kScratchIndex].kind = ValueKind::kScratch;
}

int ValueStore::Add(const Value& value) {
  int index = 0;
  if (free_.empty()) {
    index = static_cast<int>(values_.size());
    values_.push_back(value);
  } else {
    index = free_.back();
    free_.pop_back();
    values_[index] = value;
  }
  values_[index].references = 0;
  return index;
}

void ValueStore::Release(int index) {
  if (index <= kScratchIndex) return;  // these stay
  if (--values_[index].references == 0) free_.push_back(index);
}

Memory::Memory(const FlatPlan& flat, const RankClass& rank_class, ValueStore& store)
    : flat_(flat), store_(store) {
  int64_t total = 0;
  for (size_t p = 0; p < flat.pool_cells.size(); ++p) {
    base_.push_back(total);
    total += static_cast<int64_t>(flat.pool_cells[p]) * rank_class.pool_slots[p];
  }
  cells_.resize(total);
}

void Memory::BeginProgram(int program, bool repeats) {
  program_ = program;
  repeats_ = repeats;
  for (Clock& clock : clocks_) clock = done_;
}

void Memory::Wait(int stream, const Clock& clock) {
  for (int s = 0; s < kStreamCount; ++s) {
    clocks_[stream][s] = std::max(clocks_[stream][s], clock[s]);
  }
}

const Clock& Memory::Complete(int stream) {
  clocks_[stream][stream] = ++done_[stream];
  return clocks_[stream];
}

bool Memory::Read(int stream, int64_t first, int count) {
  const Clock& clock = clocks_[stream];
  bool ordered = true;
  for (int64_t c = first; c < first + count; ++c) {
    Cell& cell = cells_[c];
    if (cell.write > clock[cell.write_stream]) {
      conflict_ = cell.write_stream;
      ordered = false;
    }
    cell.reads[stream] = done_[stream] + 1;
    if (repeats_ && cell.written_in != program_) cell.live_in = true;
  }
  return ordered;
}

bool Memory::Write(int stream, int64_t first, int count, int value) {
  const Clock& clock = clocks_[stream];
  bool ordered = true;
  const uint32_t number = done_[stream] + 1;
  for (int64_t c = first; c < first + count; ++c) {
    Cell& cell = cells_[c];
    // Reads and writes of the instruction itself carry its own number.
    if (cell.write > clock[cell.write_stream] &&
        !(cell.write_stream == stream && cell.write == number)) {
      conflict_ = cell.write_stream;
      ordered = false;
    }
    for (int s = 0; s < kStreamCount; ++s) {
      if (cell.reads[s] > clock[s] && s != stream) {
        conflict_ = s;
        ordered = false;
      }
    }
    cell.write = number;
    cell.write_stream = static_cast<uint8_t>(stream);
    cell.written_in = program_;
    if (cell.value == value) continue;
    store_.Retain(value);
    store_.Release(cell.value);
    cell.value = value;
  }
  return ordered;
}

void Memory::SetInitial(int64_t cell, int value) {
  store_.Retain(value);
  store_.Release(cells_[cell].value);
  cells_[cell].value = value;
}

std::pair<int, int> Memory::PoolOf(int64_t cell) const {
  int pool =
      static_cast<int>(std::upper_bound(base_.begin(), base_.end(), cell) - base_.begin()) - 1;
  while (pool > 0 && flat_.pool_cells[pool] == 0) --pool;
  const int cells = std::max(flat_.pool_cells[pool], 1);
  return {pool, static_cast<int>((cell - base_[pool]) % cells)};
}

}  // namespace planc::verifying
