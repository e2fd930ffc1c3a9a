#ifndef PLANC_KERNELS_AMX_MATMUL_H_
#define PLANC_KERNELS_AMX_MATMUL_H_

#include <memory>

#include "kernels/matmul.h"

namespace planc::host {

// The product of bf16 operands on AMX, blocked as planc's packed product is (Goto and van de Geijn
// 2008): pieces of B and then of A are rearranged into tiles in the workspace; blocks of 32 x 32
// elements of C stay in tile registers while strips of A pass a pair of panels of B that stays in
// the first-level cache. fp32 sums go straight into C, or, where C is bf16, through the workspace
// and are rounded once. Never allocates.
//
// Every element of C is summed over the depth 32 products at a time (kernels/amx/tile.h), in order,
// so that it depends on its row of A and its column of B alone: not on the threads, the blocks or
// the rest of the matrices.
// REQUIRES: a shape that Matmul::Create has checked, with its leading dimensions filled in and bf16
// operands; a machine that offers InstructionSet::kAmxBf16.
std::unique_ptr<Matmul> MakeAmxMatmul(const MatmulShape& shape);

}  // namespace planc::host

#endif  // PLANC_KERNELS_AMX_MATMUL_H_
