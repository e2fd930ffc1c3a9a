#ifndef PLANC_SCHEMAS_LAYOUT_H_
#define PLANC_SCHEMAS_LAYOUT_H_

#include <array>
#include <cstdint>
#include <string>

#include "schemas/mesh.h"

namespace planc {

// How one logical tensor lies on one mesh axis.
struct AxisLayout {
  enum class Kind : uint8_t {
    kReplicated,  // every coordinate holds the same values
    kShard,       // coordinate i holds the i-th equal slice of dimension `dim`
    kPartialSum,  // the tensor is the sum over coordinates
    kPartialMax,  // the tensor is the elementwise maximum over coordinates
  };
  Kind kind = Kind::kReplicated;
  int8_t dim = 0;  // kShard only

  static AxisLayout Replicated() { return {Kind::kReplicated, 0}; }
  static AxisLayout Shard(int dim) { return {Kind::kShard, static_cast<int8_t>(dim)}; }
  static AxisLayout PartialSum() { return {Kind::kPartialSum, 0}; }
  static AxisLayout PartialMax() { return {Kind::kPartialMax, 0}; }
  bool IsPartial() const { return kind == Kind::kPartialSum || kind == Kind::kPartialMax; }
  friend bool operator==(const AxisLayout&, const AxisLayout&) = default;
};

// One AxisLayout per mesh axis, indexed by Axis. An axis of size 1 is always Replicated. The pp
// axis is Replicated for everything that lives on one stage; sums over stages are partial there.
struct Layout {
  std::array<AxisLayout, kAxisCount> axes{};

  AxisLayout& operator[](Axis axis) { return axes[static_cast<int>(axis)]; }
  const AxisLayout& operator[](Axis axis) const { return axes[static_cast<int>(axis)]; }
  friend bool operator==(const Layout&, const Layout&) = default;
};

// "R", "S0", "P", "M".
std::string AxisLayoutText(const AxisLayout& layout);
// The axes that are not replicated, e.g. "dp_shard:S0 tp:P"; "R" when all are.
std::string LayoutText(const Layout& layout);

}  // namespace planc

#endif  // PLANC_SCHEMAS_LAYOUT_H_
