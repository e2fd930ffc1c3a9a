#include "compiler/spec/nearest.h"

#include "absl/strings/str_cat.h"

namespace planc {
namespace {

// "a or b", the one closer to `wanted` first; either may be 0 for none.
std::string CloserFirst(int64_t below, int64_t above, int64_t wanted) {
  if (below == 0 && above == 0) return "";
  if (below == 0) return absl::StrCat(above);
  if (above == 0) return absl::StrCat(below);
  const bool below_first = wanted - below <= above - wanted;
  return below_first ? absl::StrCat(below, " or ", above) : absl::StrCat(above, " or ", below);
}

}  // namespace

std::string NearestDivisors(int64_t number, int64_t wanted) {
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

std::string NearestMultiples(int64_t factor, int64_t wanted) {
  const int64_t below = wanted / factor * factor;
  return CloserFirst(below, below + factor, wanted);
}

}  // namespace planc
