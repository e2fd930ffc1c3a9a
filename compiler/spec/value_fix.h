#ifndef PLANC_COMPILER_SPEC_VALUE_FIX_H_
#define PLANC_COMPILER_SPEC_VALUE_FIX_H_

#include <string>

#include "compiler/spec/job_schema.h"
#include "compiler/spec/node.h"

namespace planc {

// What to write for `node`, which is no value of `key`: "write `layers: 4`" for "4" in quotes, `16
// gb`, `10 minutes`, `yes`, one path where a list is due. Made from what was written, and accepted
// by the key; "" if nothing can be made of it.
std::string ValueFix(const JobKey& key, const Node& node);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_VALUE_FIX_H_
