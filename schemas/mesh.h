#ifndef PLANC_SCHEMAS_MESH_H_
#define PLANC_SCHEMAS_MESH_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace planc {

// Mesh axes from outermost to innermost. X(enumerator, text).
#define PLANC_AXES(X)             \
  X(kPp, "pp")                    \
  X(kDpReplicate, "dp_replicate") \
  X(kDpShard, "dp_shard")         \
  X(kCp, "cp")                    \
  X(kTp, "tp")

enum class Axis : uint8_t {
#define PLANC_AXIS_ENUM(name, text) name,
  PLANC_AXES(PLANC_AXIS_ENUM)
#undef PLANC_AXIS_ENUM
};
inline constexpr int kAxisCount = 5;
inline constexpr std::array<Axis, kAxisCount> kAllAxes = {Axis::kPp, Axis::kDpReplicate,
                                                          Axis::kDpShard, Axis::kCp, Axis::kTp};

// "pp", "dp_replicate", ...
const char* AxisName(Axis axis);

// A set of axes, one bit per Axis.
using AxisSet = uint8_t;
constexpr AxisSet AxisBit(Axis axis) { return static_cast<AxisSet>(1u << static_cast<int>(axis)); }

// Position of one rank on every axis, indexed by Axis.
using Coordinates = std::array<int64_t, kAxisCount>;

// The sizes of the five axes. rank = (((pp*DR + dr)*DS + ds)*CP + cp)*TP + tp.
struct Mesh {
  std::array<int64_t, kAxisCount> size = {1, 1, 1, 1, 1};

  int64_t operator[](Axis axis) const { return size[static_cast<int>(axis)]; }
  // Product of all sizes.
  int64_t WorldSize() const;
  int64_t RankOf(const Coordinates& coordinates) const;
  // REQUIRES: 0 <= rank < WorldSize().
  Coordinates CoordinatesOf(int64_t rank) const;
};

// A communicator pattern: the ranks that differ from each other only on `axes`.
struct GroupKind {
  std::string name;
  AxisSet axes = 0;
  bool pipeline_ends = false;  // of the pp axis only the first and the last coordinate belong
};

// Number of members of each group of this kind.
int64_t GroupSize(const Mesh& mesh, const GroupKind& kind);
// Members of the group of `rank` in ascending rank order. Empty when pipeline_ends excludes `rank`.
std::vector<int64_t> GroupMembers(const Mesh& mesh, const GroupKind& kind, int64_t rank);
// Every group of this kind, ordered by first member.
std::vector<std::vector<int64_t>> AllGroups(const Mesh& mesh, const GroupKind& kind);

}  // namespace planc

#endif  // PLANC_SCHEMAS_MESH_H_
