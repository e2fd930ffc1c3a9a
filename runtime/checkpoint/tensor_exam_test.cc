#include "runtime/checkpoint/tensor_exam.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/safetensors.h"

namespace planc {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Finite(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    // The largest, the smallest, a denormal and zeros among them.
    constexpr float kSpecial[] = {std::numeric_limits<float>::max(),
                                  std::numeric_limits<float>::lowest(),
                                  std::numeric_limits<float>::denorm_min(), -0.0f, 0.0f};
    values.push_back(i % 3 == 0 ? kSpecial[i / 3 % 5] : static_cast<float>(i));
  }
  return values;
}

TEST(TensorExamTest, FindsTheFirstValueThatIsNotFiniteAtEveryPlace) {
  for (const int64_t count : {1, 2, 63, 64, 65, 127, 128, 200}) {
    const std::vector<float> finite = Finite(count);
    EXPECT_EQ(FirstNonFinite(finite.data(), count), -1);
    for (int64_t at = 0; at < count; ++at) {
      for (const float value : {kInfinity, -kInfinity, kNan, -kNan}) {
        std::vector<float> values = finite;
        values[at] = value;
        EXPECT_EQ(FirstNonFinite(values.data(), count), at) << count;
        values.back() = kNan;
        EXPECT_EQ(FirstNonFinite(values.data(), count), at) << count;
      }
    }
  }
  EXPECT_EQ(FirstNonFinite(nullptr, 0), -1);
}

TEST(TensorExamTest, TakesTheChecksumOfTheWholeAndCountsOverPieces) {
  constexpr int64_t kCount = 3 * TensorExam::kPieceBytes / 4 + 7;
  std::vector<float> values = Finite(kCount);
  TensorExam whole;
  whole.AddAll(values.data(), kCount);
  EXPECT_EQ(whole.Checksum(), Checksum(values.data(), kCount * 4));
  EXPECT_EQ(whole.first_non_finite(), -1);

  values[kCount - 2] = -kInfinity;
  values[kCount - 1] = kNan;
  TensorExam poisoned;
  poisoned.Add(values.data(), 11);
  poisoned.AddAll(values.data() + 11, kCount - 11);
  EXPECT_EQ(poisoned.Checksum(), Checksum(values.data(), kCount * 4));
  EXPECT_EQ(poisoned.first_non_finite(), kCount - 2);
  EXPECT_EQ(poisoned.non_finite_value(), -kInfinity);
}

TEST(TensorExamTest, NamesTheElementByItsPlaceInTheWhole) {
  EXPECT_EQ(NonFiniteElement("tensor w", {4, 5}, {}, 13, kInfinity).message(),
            "tensor w: element [2, 3] is inf");
  EXPECT_EQ(NonFiniteElement("tensor w", {4, 5}, {10, 20}, 13, -kInfinity).message(),
            "tensor w: element [12, 23] is -inf");
  EXPECT_EQ(NonFiniteElement("tensor w", {4, 5}, {}, 0, kNan).code(),
            absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace planc
