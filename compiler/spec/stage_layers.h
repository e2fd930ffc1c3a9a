#ifndef PLANC_COMPILER_SPEC_STAGE_LAYERS_H_
#define PLANC_COMPILER_SPEC_STAGE_LAYERS_H_

#include <cstdint>
#include <vector>

namespace planc {

// Layers of each of pp * virtual_stages model chunks, in model order. Where layers do not divide,
// chunks at the ends take one less than those in the middle, the last chunk first, since the ends
// also hold the head and the embedding: 126 layers in 128 chunks are 0 1 1 ... 1 0.
// Returns an empty list if a chunk between the ends, or a pipeline rank, would have no layer.
// REQUIRES: all arguments are positive.
std::vector<int64_t> SplitLayers(int64_t layers, int64_t pp, int64_t virtual_stages);

// The first pipeline rank without any layer, or -1. Chunk c runs on rank c % pp.
int64_t RankWithoutLayers(const std::vector<int64_t>& stage_layers, int64_t pp);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_STAGE_LAYERS_H_
