#ifndef PLANC_SCHEMAS_PLAN_TEXT_H_
#define PLANC_SCHEMAS_PLAN_TEXT_H_

#include <string>

#include "schemas/plan.h"

namespace planc {

// Pieces of PlanText. Each takes any Plan value, checked or not: an index without a row is printed
// as `?index`. Lines end with '\n' where a function returns several.

// The shortest decimal text that reads back as `value`.
std::string RealText(double value);

// "name" or "?index".
std::string PoolName(const Plan& plan, int pool);
std::string BlockName(const Plan& plan, int block);

// Largest number of slots that any rank class gives the pool.
int64_t MaximumSlots(const Plan& plan, int pool);

// One line: "layer_forward  layer=3 mb=0  acts[1] weights[3]"; pools of one slot are left out.
std::string CallText(const Plan& plan, const Call& call);

// Header line of the block, then one line for each instruction.
std::string BlockText(const Plan& plan, const Block& block);

// One line for each call; a repeat of more than one run is an indented group.
std::string ProgramText(const Plan& plan, const Program& program);

// Tables of the plan (groups, pools, buffers, events, units, parameters).
std::string TablesText(const Plan& plan);

// Layers, pools, arenas and programs of one rank class.
std::string ClassText(const Plan& plan, const RankClass& rank_class);

}  // namespace planc

#endif  // PLANC_SCHEMAS_PLAN_TEXT_H_
