#ifndef PLANC_PLANC_EXAMPLE_PLAN_H_
#define PLANC_PLANC_EXAMPLE_PLAN_H_

#include "schemas/plan.h"

namespace planc {

// A small hand-made plan for tests of the command line: pp 2, dp_shard 2, tp 2 on two nodes of four
// hosts; two layers a stage; four microbatches, all forward and then all backward; transfers
// between the stages, a gradient reduction and an optimizer step. Consistent, but not trainable.
Plan ExamplePlan();

}  // namespace planc

#endif  // PLANC_PLANC_EXAMPLE_PLAN_H_
