#ifndef PLANC_TESTS_MUTATION_PLAN_FIELDS_H_
#define PLANC_TESTS_MUTATION_PLAN_FIELDS_H_

#include <set>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "schemas/plan.pb.h"
#include "tests/mutation/mutations.h"

namespace planc {

// A field of a plan file.
struct PlanField {
  std::string path;  // from the plan on: "blocks.instructions.waits", "job.model.hidden"
  std::vector<const google::protobuf::FieldDescriptor*> steps;  // the last one is the field
  bool in_job = false;
};

// Every field of every message of a plan file, by its descriptors, sections of the job included.
const std::vector<PlanField>& AllPlanFields();

// Changes the field in one of the messages that have it, at random: another number, number of
// another message, out of range, unset, an entry more or less, two exchanged.
Mutated ChangeField(const PlanField& field, proto::Plan& image, Choice& choice);

// Paths of the fields whose values differ, without the messages that they are in; of a message that
// only one of them has, its own path alone.
std::set<std::string> FieldsThatDiffer(const proto::Plan& a, const proto::Plan& b);

}  // namespace planc

#endif  // PLANC_TESTS_MUTATION_PLAN_FIELDS_H_
