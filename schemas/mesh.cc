#include "schemas/mesh.h"

#include <algorithm>

namespace planc {

const char* AxisName(Axis axis) {
  switch (axis) {
#define PLANC_AXIS_NAME(name, text) \
  case Axis::name:                  \
    return text;
    PLANC_AXES(PLANC_AXIS_NAME)
#undef PLANC_AXIS_NAME
  }
  return "?";
}

int64_t Mesh::WorldSize() const {
  int64_t product = 1;
  for (int64_t s : size) product *= s;
  return product;
}

int64_t Mesh::RankOf(const Coordinates& coordinates) const {
  int64_t rank = 0;
  for (int a = 0; a < kAxisCount; ++a) rank = rank * size[a] + coordinates[a];
  return rank;
}

Coordinates Mesh::CoordinatesOf(int64_t rank) const {
  Coordinates coordinates{};
  for (int a = kAxisCount - 1; a >= 0; --a) {
    coordinates[a] = rank % size[a];
    rank /= size[a];
  }
  return coordinates;
}

namespace {

// The coordinates of the pp axis that belong to a group of this kind.
std::vector<int64_t> MemberPositions(const Mesh& mesh, const GroupKind& kind, Axis axis) {
  const int64_t n = mesh[axis];
  if (axis == Axis::kPp && kind.pipeline_ends) {
    return n == 1 ? std::vector<int64_t>{0} : std::vector<int64_t>{0, n - 1};
  }
  std::vector<int64_t> all(n);
  for (int64_t i = 0; i < n; ++i) all[i] = i;
  return all;
}

}  // namespace

int64_t GroupSize(const Mesh& mesh, const GroupKind& kind) {
  int64_t product = 1;
  for (Axis axis : kAllAxes) {
    if ((kind.axes & AxisBit(axis)) == 0) continue;
    const bool ends = axis == Axis::kPp && kind.pipeline_ends;
    product *= ends ? std::min<int64_t>(2, mesh[axis]) : mesh[axis];
  }
  return product;
}

std::vector<int64_t> GroupMembers(const Mesh& mesh, const GroupKind& kind, int64_t rank) {
  const Coordinates own = mesh.CoordinatesOf(rank);
  std::vector<Coordinates> members = {own};
  for (Axis axis : kAllAxes) {
    if ((kind.axes & AxisBit(axis)) == 0) continue;
    std::vector<Coordinates> next;
    for (const Coordinates& base : members) {
      for (int64_t position : MemberPositions(mesh, kind, axis)) {
        Coordinates c = base;
        c[static_cast<int>(axis)] = position;
        next.push_back(c);
      }
    }
    members = std::move(next);
  }
  std::vector<int64_t> ranks;
  ranks.reserve(members.size());
  for (const Coordinates& c : members) ranks.push_back(mesh.RankOf(c));
  std::sort(ranks.begin(), ranks.end());
  if (!std::binary_search(ranks.begin(), ranks.end(), rank)) ranks.clear();
  return ranks;
}

std::vector<std::vector<int64_t>> AllGroups(const Mesh& mesh, const GroupKind& kind) {
  std::vector<std::vector<int64_t>> groups;
  for (int64_t rank = 0; rank < mesh.WorldSize(); ++rank) {
    // Only the first member of a group lists it.
    const Coordinates own = mesh.CoordinatesOf(rank);
    bool first = true;
    for (Axis axis : kAllAxes) {
      if ((kind.axes & AxisBit(axis)) != 0 && own[static_cast<int>(axis)] != 0) first = false;
    }
    if (first) groups.push_back(GroupMembers(mesh, kind, rank));
  }
  return groups;
}

}  // namespace planc
