#ifndef PLANC_SCHEMAS_PLAN_IO_H_
#define PLANC_SCHEMAS_PLAN_IO_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/plan.h"
#include "schemas/plan.pb.h"

namespace planc {

// Version of the plan file, the number in its header line.
inline constexpr int kPlanFormatVersion = 2;

// A plan file starts with these characters.
inline constexpr char kPlanMagic[] = "planc-plan ";

// Limits that SerializePlan and ParsePlan enforce, far above any real plan, so that a reader of a
// plan may expand it without fear.
inline constexpr int64_t kMaximumPlanBytes = int64_t{64} << 20;
inline constexpr int64_t kMaximumWorld = int64_t{1} << 20;
inline constexpr int64_t kMaximumTableEntries = int64_t{1} << 20;
inline constexpr int64_t kMaximumExpandedCalls = 50'000'000;  // of one program

// True when `bytes` starts as a plan file does; says nothing about the rest.
bool LooksLikePlan(const std::string& bytes);

// A plan file with this body: puts the header line before it. Makes no checks.
std::string SealPlanBody(const std::string& body);

// The image of `plan`, field by field. Total: makes no checks.
proto::Plan PlanToProto(const Plan& plan);

// The plan that `image` stands for. Errors: InvalidArgument when an enumeration, the mesh, a column
// length or a count is out of its range. Indices into the plan's tables are left to VerifyPlan.
absl::StatusOr<Plan> PlanFromProto(const proto::Plan& image);

}  // namespace planc

#endif  // PLANC_SCHEMAS_PLAN_IO_H_
