#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planc/show/show.h"
#include "planc/text.h"
#include "schemas/counted.h"

namespace planc {
namespace {

constexpr int64_t kRanksShown = 32;

std::string LayersText(const RankClass& rank_class) {
  const std::vector<int64_t> layers(rank_class.layers.begin(), rank_class.layers.end());
  std::string text = layers.empty() ? "none" : RangesText(layers);
  if (rank_class.has_embedding) text += " +embedding";
  if (rank_class.has_head) text += " +head";
  return text;
}

std::string ShardText(int64_t position, int64_t count) {
  return count == 1 ? "-" : absl::StrCat(position, " of ", count);
}

std::vector<std::string> RankRow(const Plan& plan, int64_t rank) {
  const Coordinates c = plan.mesh.CoordinatesOf(rank);
  const auto at = [&](Axis axis) { return c[static_cast<int>(axis)]; };
  const int64_t shards = plan.mesh[Axis::kDpShard];
  const int64_t data = at(Axis::kDpReplicate) * shards + at(Axis::kDpShard);
  return {absl::StrCat(rank),
          PlaceOfRank(plan, rank),
          ShardText(at(Axis::kPp), plan.mesh[Axis::kPp]),
          LayersText(ClassOfRank(plan, rank)),
          ShardText(data, plan.mesh[Axis::kDpReplicate] * shards),
          ShardText(at(Axis::kDpShard), shards),
          ShardText(at(Axis::kTp), plan.mesh[Axis::kTp])};
}

nlohmann::ordered_json RankData(const Plan& plan, int64_t rank) {
  const Coordinates c = plan.mesh.CoordinatesOf(rank);
  nlohmann::ordered_json data = {{"rank", rank}};
  for (Axis axis : kAllAxes) data[AxisName(axis)] = c[static_cast<int>(axis)];
  data["layers"] = ClassOfRank(plan, rank).layers;
  return data;
}

}  // namespace

ShowSection ShowRanks(const ShowInput& input) {
  const Plan& plan = input.plan;
  const int64_t world = plan.mesh.WorldSize();
  ShowSection section{"ranks", "", nlohmann::ordered_json::array()};
  TextTable table(
      {">rank", "place", ">stage", "layers", ">data shard", ">state shard", ">tensor shard"});
  const auto add = [&](int64_t rank) {
    table.Add(RankRow(plan, rank));
    section.data.push_back(RankData(plan, rank));
  };
  if (input.rank >= 0) {
    add(input.rank);
  } else if (world <= 2 * kRanksShown) {
    for (int64_t rank = 0; rank < world; ++rank) add(rank);
  } else {
    // One rank of each stage says what the stage holds; the others differ in shards only.
    const int64_t stride = world / plan.mesh[Axis::kPp];
    for (int64_t rank = 0; rank < world; rank += stride) add(rank);
  }
  section.text = Wrap(table.Text(2), 4);
  const int64_t left_out = world - static_cast<int64_t>(section.data.size());
  if (left_out > 0 && input.rank < 0) {
    absl::StrAppend(&section.text, "  ... and ", Counted(left_out, "more rank"),
                    ", which differ from the one of their stage in shards only\n");
  }
  return section;
}

}  // namespace planc
