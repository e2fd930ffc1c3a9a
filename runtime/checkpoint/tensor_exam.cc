#include "runtime/checkpoint/tensor_exam.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planc {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffff;
constexpr uint32_t kInfinity = 0x7f800000;  // as bits; those of NaNs are above
constexpr int64_t kLanes = 64;              // a fixed number, so that the loop becomes vectors

uint32_t MagnitudeBits(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits & kMagnitude;
}

// Whether all of `blocks` times kLanes values are finite. Compares bits: compilers may take a
// comparison of values with themselves for true.
bool AllFinite(const float* values, int64_t blocks) {
  std::array<uint32_t, kLanes> largest{};
  for (int64_t block = 0; block < blocks; ++block, values += kLanes) {
    std::array<uint32_t, kLanes> bits;
    std::memcpy(bits.data(), values, sizeof(bits));
    for (size_t lane = 0; lane < kLanes; ++lane) {
      largest[lane] = std::max(largest[lane], bits[lane] & kMagnitude);
    }
  }
  return *std::max_element(largest.begin(), largest.end()) < kInfinity;
}

}  // namespace

int64_t FirstNonFinite(const float* values, int64_t count) {
  const int64_t blocks = count / kLanes;
  const int64_t first = AllFinite(values, blocks) ? blocks * kLanes : 0;
  for (int64_t i = first; i < count; ++i) {
    if (MagnitudeBits(values[i]) >= kInfinity) return i;
  }
  return -1;
}

void TensorExam::Release::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

TensorExam::TensorExam() : state_(XXH3_createState()) { XXH3_64bits_reset(state_.get()); }

TensorExam::~TensorExam() = default;

void TensorExam::Add(const float* values, int64_t count) {
  XXH3_64bits_update(state_.get(), values, static_cast<size_t>(count) * sizeof(float));
  if (first_ < 0) {
    const int64_t found = FirstNonFinite(values, count);
    if (found >= 0) {
      first_ = count_ + found;
      value_ = values[found];
    }
  }
  count_ += count;
}

void TensorExam::AddAll(const float* values, int64_t count) {
  constexpr int64_t kPiece = kPieceBytes / static_cast<int64_t>(sizeof(float));
  for (int64_t done = 0; done < count; done += kPiece) {
    Add(values + done, std::min(count - done, kPiece));
  }
}

uint64_t TensorExam::Checksum() const { return XXH3_64bits_digest(state_.get()); }

absl::Status NonFiniteElement(const std::string& what, const std::vector<int64_t>& shape,
                              const std::vector<int64_t>& offset, int64_t index, float value) {
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = index % shape[d] + (offset.empty() ? 0 : offset[d]);
    index /= shape[d];
  }
  return absl::OutOfRangeError(
      absl::StrCat(what, ": element [", absl::StrJoin(at, ", "), "] is ", value));
}

}  // namespace planc
