#include "schemas/layout.h"

namespace planc {

std::string AxisLayoutText(const AxisLayout& layout) {
  switch (layout.kind) {
    case AxisLayout::Kind::kReplicated:
      return "R";
    case AxisLayout::Kind::kShard:
      return "S" + std::to_string(layout.dim);
    case AxisLayout::Kind::kPartialSum:
      return "P";
    case AxisLayout::Kind::kPartialMax:
      return "M";
  }
  return "?";
}

std::string LayoutText(const Layout& layout) {
  std::string text;
  for (Axis axis : kAllAxes) {
    if (layout[axis].kind == AxisLayout::Kind::kReplicated) continue;
    if (!text.empty()) text += ' ';
    text += std::string(AxisName(axis)) + ":" + AxisLayoutText(layout[axis]);
  }
  return text.empty() ? "R" : text;
}

}  // namespace planc
