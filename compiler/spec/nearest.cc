#include "compiler/spec/nearest.h"

#include <algorithm>
#include <cmath>

namespace planc {
namespace {

// Both, the one closer to `wanted` first; either may be 0 for none.
std::vector<int64_t> CloserFirst(int64_t below, int64_t above, int64_t wanted) {
  if (below == 0 && above == 0) return {};
  if (below == 0) return {above};
  if (above == 0) return {below};
  const bool below_first = wanted - below <= above - wanted;
  return below_first ? std::vector<int64_t>{below, above} : std::vector<int64_t>{above, below};
}

}  // namespace

std::vector<int64_t> NearestDivisors(int64_t number, int64_t wanted) {
  int64_t below = 0;
  int64_t above = 0;
  const auto consider = [&](int64_t divisor) {
    if (divisor < wanted && divisor > below) below = divisor;
    if (divisor > wanted && (above == 0 || divisor < above)) above = divisor;
  };
  for (int64_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    consider(divisor);
    consider(number / divisor);
  }
  return CloserFirst(below, above, wanted);
}

std::vector<int64_t> DivisorsByDistance(int64_t number, int64_t wanted) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    divisors.push_back(divisor);
    if (divisor * divisor != number) divisors.push_back(number / divisor);
  }
  const auto distance = [wanted](int64_t divisor) {
    return std::abs(std::log2(static_cast<double>(divisor)) -
                    std::log2(static_cast<double>(wanted)));
  };
  std::sort(divisors.begin(), divisors.end(), [&distance](int64_t a, int64_t b) {
    return distance(a) != distance(b) ? distance(a) < distance(b) : a < b;
  });
  return divisors;
}

std::vector<int64_t> NearestMultiples(int64_t factor, int64_t wanted) {
  const int64_t below = wanted / factor * factor;
  return CloserFirst(below, below + factor, wanted);
}

}  // namespace planc
