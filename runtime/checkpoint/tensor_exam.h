#ifndef PLANC_RUNTIME_CHECKPOINT_TENSOR_EXAM_H_
#define PLANC_RUNTIME_CHECKPOINT_TENSOR_EXAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

struct XXH3_state_s;

namespace planc {

// What is found out about a float32 tensor while its bytes pass by, in pieces small enough to stay
// in the processor's cache, so that memory is read once: its XXH3-64, and the first value that is
// NaN or infinite.
class TensorExam {
 public:
  // Bytes of a good piece.
  static constexpr int64_t kPieceBytes = int64_t{1} << 18;

  TensorExam();
  ~TensorExam();
  TensorExam(const TensorExam&) = delete;
  TensorExam& operator=(const TensorExam&) = delete;

  // The next `count` values.
  void Add(const float* values, int64_t count);
  // All of a tensor, cut into pieces.
  void AddAll(const float* values, int64_t count);

  uint64_t Checksum() const;                           // of all values so far
  int64_t first_non_finite() const { return first_; }  // its index; -1 when all are finite
  float non_finite_value() const { return value_; }    // that value

 private:
  struct Release {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Release> state_;
  int64_t count_ = 0;
  int64_t first_ = -1;
  float value_ = 0;
};

// Index of the first of `count` values that is NaN or infinite; -1 when all are finite.
int64_t FirstNonFinite(const float* values, int64_t count);

// OutOfRange "<what>: element [3, 5] is nan": of a tensor of `shape` that begins at `offset` in a
// whole one (empty: it is the whole), where `index` counts row-major in the part. The element is
// named by its place in the whole.
absl::Status NonFiniteElement(const std::string& what, const std::vector<int64_t>& shape,
                              const std::vector<int64_t>& offset, int64_t index, float value);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_TENSOR_EXAM_H_
