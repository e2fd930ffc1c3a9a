#include "compiler/spec/stage_layers.h"

#include <cstddef>

namespace planc {

std::vector<int64_t> SplitLayers(int64_t layers, int64_t pp, int64_t virtual_stages) {
  // At most the first and the last chunk are empty. Also bounds the size of the result.
  if (pp > layers || virtual_stages > layers + 2 || pp * virtual_stages > layers + 2) return {};
  const int64_t chunks = pp * virtual_stages;
  const int64_t most = (layers + chunks - 1) / chunks;
  std::vector<int64_t> result(static_cast<size_t>(chunks), most);
  size_t first = 0;
  size_t last = result.size() - 1;
  for (int64_t excess = most * chunks - layers; excess > 0; --excess) {
    // Alternate between the ends, moving inwards; the last chunk goes first.
    const bool from_end = (result.size() - 1 - last) <= first;
    --result[from_end ? last-- : first++];
  }
  for (size_t chunk = 1; chunk + 1 < result.size(); ++chunk) {
    if (result[chunk] == 0) return {};
  }
  if (RankWithoutLayers(result, pp) >= 0) return {};
  return result;
}

int64_t RankWithoutLayers(const std::vector<int64_t>& stage_layers, int64_t pp) {
  const auto ranks = static_cast<size_t>(pp);
  for (size_t rank = 0; rank < ranks && rank < stage_layers.size(); ++rank) {
    int64_t layers = 0;
    for (size_t chunk = rank; chunk < stage_layers.size(); chunk += ranks) {
      layers += stage_layers[chunk];
    }
    if (layers == 0) return static_cast<int64_t>(rank);
  }
  return -1;
}

}  // namespace planc
