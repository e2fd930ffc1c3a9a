#ifndef PLANC_SCHEMAS_JOB_VALUE_H_
#define PLANC_SCHEMAS_JOB_VALUE_H_

#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace planc {

// The value of a field of the job, or of one of its sections, as a job file spells it: "8", "bf16",
// "[0.9, 0.95]"; "unset" when it has none.
// REQUIRES: `field` belongs to `section`'s type and is no section itself.
std::string FieldText(const google::protobuf::Message& section,
                      const google::protobuf::FieldDescriptor& field);

}  // namespace planc

#endif  // PLANC_SCHEMAS_JOB_VALUE_H_
