// The mesh as boxes: one picture per node, cells of equal coordinates joined.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planc/show/show.h"
#include "planc/text.h"
#include "schemas/counted.h"

namespace planc {
namespace {

constexpr int64_t kNodesShown = 4;
constexpr int kLabelWidth = 14;
constexpr int64_t kMostCells = 12;  // devices side by side

std::string Centered(const std::string& text, size_t width) {
  if (text.size() >= width) return text;
  const size_t left = (width - text.size()) / 2;
  return std::string(left, ' ') + text + std::string(width - text.size() - left, ' ');
}

// Draws ranks [begin, end), which lie on one node.
class NodePicture {
 public:
  NodePicture(const Plan& plan, int64_t begin, int64_t end)
      : plan_(plan), begin_(begin), end_(end) {
    const size_t widest = absl::StrCat(plan.mesh.WorldSize() - 1).size();
    cell_ = std::max<size_t>(5, widest + 2);
  }

  std::string Text(const std::string& title) const {
    std::string text = absl::StrFormat("  %-*s%s\n", kLabelWidth, title, Border());
    for (Axis axis : kAllAxes) {
      if (plan_.mesh[axis] > 1) AppendAxis(axis, &text);
    }
    const int64_t per_node = std::max<int64_t>(1, plan_.ranks_per_node);
    AppendRow(
        "device", [&](int64_t rank) { return absl::StrCat(rank % per_node); }, &text);
    AppendRow(
        "rank", [&](int64_t rank) { return absl::StrCat(rank); }, &text);
    absl::StrAppend(&text, std::string(kLabelWidth + 2, ' '), Border(), "\n");
    return text;
  }

 private:
  std::string Border() const {
    std::string text = "+";
    for (int64_t rank = begin_; rank < end_; ++rank) text += std::string(cell_, '-') + "+";
    return text;
  }

  // Neighbours with equal coordinates on this and all outer axes share one box.
  bool SameBox(int64_t rank, Axis axis) const {
    const Coordinates a = plan_.mesh.CoordinatesOf(rank);
    const Coordinates b = plan_.mesh.CoordinatesOf(rank + 1);
    return std::equal(a.begin(), a.begin() + static_cast<int>(axis) + 1, b.begin());
  }

  void AppendAxis(Axis axis, std::string* text) const {
    absl::StrAppendFormat(text, "  %-*s|", kLabelWidth, AxisName(axis));
    for (int64_t first = begin_; first < end_;) {
      int64_t last = first;
      while (last + 1 < end_ && SameBox(last, axis)) ++last;
      const size_t width = static_cast<size_t>(last - first + 1) * (cell_ + 1) - 1;
      const int64_t position = plan_.mesh.CoordinatesOf(first)[static_cast<int>(axis)];
      absl::StrAppend(text, Centered(absl::StrCat(position), width), "|");
      first = last + 1;
    }
    absl::StrAppend(text, "\n");
  }

  template <typename CellText>
  void AppendRow(const char* label, CellText cell_text, std::string* text) const {
    absl::StrAppendFormat(text, "  %-*s|", kLabelWidth, label);
    for (int64_t rank = begin_; rank < end_; ++rank) {
      absl::StrAppend(text, Centered(cell_text(rank), cell_), "|");
    }
    absl::StrAppend(text, "\n");
  }

  const Plan& plan_;
  const int64_t begin_;
  const int64_t end_;
  size_t cell_ = 5;
};

std::string NodeText(const Plan& plan, int64_t node) {
  const int64_t begin = node * plan.ranks_per_node;
  const int64_t end = std::min(begin + plan.ranks_per_node, plan.mesh.WorldSize());
  std::string text;
  for (int64_t from = begin; from < end; from += kMostCells) {
    const std::string title = from == begin ? absl::StrCat("node ", node) : "";
    text += NodePicture(plan, from, std::min(from + kMostCells, end)).Text(title);
  }
  return text;
}

}  // namespace

ShowSection ShowMesh(const ShowInput& input) {
  const Plan& plan = input.plan;
  ShowSection section{"mesh", "", {}};
  for (Axis axis : kAllAxes) section.data["axes"][AxisName(axis)] = plan.mesh[axis];
  section.data["ranks"] = plan.mesh.WorldSize();
  section.data["ranks_per_node"] = plan.ranks_per_node;
  const int64_t per_node = std::max<int64_t>(1, plan.ranks_per_node);
  const int64_t nodes = (plan.mesh.WorldSize() + per_node - 1) / per_node;
  section.data["nodes"] = nodes;
  absl::StrAppend(&section.text, "  outermost axis first; joined cells share a coordinate\n");
  const bool elide = nodes > 2 * kNodesShown;
  for (int64_t node = 0; node < nodes; ++node) {
    if (elide && node == kNodesShown) {
      absl::StrAppend(&section.text, "  ... ", Counted(nodes - kNodesShown - 1, "more node"),
                      " ...\n");
      node = nodes - 1;
    }
    section.text += NodeText(plan, node);
  }
  return section;
}

}  // namespace planc
