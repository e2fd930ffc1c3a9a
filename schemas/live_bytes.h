#ifndef PLANC_SCHEMAS_LIVE_BYTES_H_
#define PLANC_SCHEMAS_LIVE_BYTES_H_

#include <array>
#include <cstdint>

#include "schemas/plan.h"

namespace planc {

// Per memory kind: the most bytes that a rank of the class needs at one time when its programs run
// in program order: bytes whose value is read later, what the instruction in progress touches
// (scratch lives only there), and snapshots, which no program touches. No arena that carries out
// the programs in this order can be smaller. Bytes are those of the ranks with dp_shard coordinate
// 0; shards are equal. Programs run as init, publish, then step and eval in any order and number.
// REQUIRES: operands lie in the slots of their pools, as VerifyPlan proves.
std::array<int64_t, kMemoryKindCount> LiveBytes(const Plan& plan, const RankClass& rank_class);

}  // namespace planc

#endif  // PLANC_SCHEMAS_LIVE_BYTES_H_
