#include "runtime/process_group/ordered_reduce.h"

#include <algorithm>

#include "glog/logging.h"
#include "kernels/bf16.h"

namespace planc {
namespace {

// Elements summed at a time: the partial sums stay in the first-level cache.
constexpr int64_t kBlock = 1024;

template <typename Element>
struct Arithmetic;

template <>
struct Arithmetic<float> {
  using Sum = float;
  static float Load(float value) { return value; }
  static float Store(float value) { return value; }
};

template <>
struct Arithmetic<double> {
  using Sum = double;
  static double Load(double value) { return value; }
  static double Store(double value) { return value; }
};

template <>
struct Arithmetic<Bf16> {
  using Sum = float;
  static float Load(Bf16 value) { return ToFloat(value); }
  static Bf16 Store(float value) { return ToBf16(value); }
};

struct Sum {
  template <typename T>
  static T Combine(T a, T b) {
    return a + b;
  }
};

struct Maximum {
  // The second test is true for a NaN in b; a NaN in a fails both and stays.
  template <typename T>
  static T Combine(T a, T b) {
    return a < b || b != b ? b : a;
  }
};

// All of a few arrays at once, each element in a register from its first load to its only store.
template <typename Element, typename Combination, int kMembers>
void ReduceFew(const void* const* inputs, void* out, int64_t count) {
  using Traits = Arithmetic<Element>;
  const Element* arrays[kMembers];
  for (int member = 0; member < kMembers; ++member) {
    arrays[member] = static_cast<const Element*>(inputs[member]);
  }
  Element* const result = static_cast<Element*>(out);
  // An input is the same array as the result or disjoint from it.
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    typename Traits::Sum sum = Traits::Load(arrays[0][i]);
#pragma GCC unroll 8
    for (int member = 1; member < kMembers; ++member) {
      sum = Combination::Combine(sum, Traits::Load(arrays[member][i]));
    }
    result[i] = Traits::Store(sum);
  }
}

// Any number of arrays, one after the other into partial sums.
template <typename Element, typename Combination>
void ReduceBlock(const void* const* inputs, int64_t members, void* out, int64_t begin,
                 int64_t count) {
  using Traits = Arithmetic<Element>;
  alignas(64) typename Traits::Sum sums[kBlock];
  const Element* const first = static_cast<const Element*>(inputs[0]) + begin;
  for (int64_t i = 0; i < count; ++i) sums[i] = Traits::Load(first[i]);
  for (int64_t member = 1; member < members; ++member) {
    const Element* const next = static_cast<const Element*>(inputs[member]) + begin;
    for (int64_t i = 0; i < count; ++i) {
      sums[i] = Combination::Combine(sums[i], Traits::Load(next[i]));
    }
  }
  Element* const result = static_cast<Element*>(out) + begin;
  for (int64_t i = 0; i < count; ++i) result[i] = Traits::Store(sums[i]);
}

template <typename Element, typename Combination>
void ReduceElements(const void* const* inputs, int64_t members, void* out, int64_t count) {
  switch (members) {
    case 2:
      return ReduceFew<Element, Combination, 2>(inputs, out, count);
    case 3:
      return ReduceFew<Element, Combination, 3>(inputs, out, count);
    case 4:
      return ReduceFew<Element, Combination, 4>(inputs, out, count);
    case 8:
      return ReduceFew<Element, Combination, 8>(inputs, out, count);
    default:
      for (int64_t begin = 0; begin < count; begin += kBlock) {
        const int64_t block = std::min(kBlock, count - begin);
        ReduceBlock<Element, Combination>(inputs, members, out, begin, block);
      }
  }
}

template <typename Element>
void ReduceBy(ReduceOp op, const void* const* inputs, int64_t members, void* out, int64_t count) {
  if (op == ReduceOp::kSum) return ReduceElements<Element, Sum>(inputs, members, out, count);
  ReduceElements<Element, Maximum>(inputs, members, out, count);
}

}  // namespace

bool IsReducible(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF64;
}

void OrderedReduce(ReduceOp op, DType dtype, const void* const* inputs, int64_t members, void* out,
                   int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return ReduceBy<float>(op, inputs, members, out, count);
    case DType::kBF16:
      return ReduceBy<Bf16>(op, inputs, members, out, count);
    case DType::kF64:
      return ReduceBy<double>(op, inputs, members, out, count);
    case DType::kI32:
    case DType::kU8:
      break;
  }
  LOG(FATAL) << "no reduction of " << DTypeName(dtype);
}

}  // namespace planc
