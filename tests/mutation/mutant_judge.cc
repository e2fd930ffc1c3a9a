#include "tests/mutation/mutant_judge.h"

#include "absl/strings/str_cat.h"
#include "compiler/pipeline.h"
#include "compiler/spec/check_job.h"
#include "gtest/gtest.h"
#include "schemas/plan_io.h"
#include "tests/mutation/same_training.h"

namespace planc {
namespace {

constexpr int kSteps = 2;

// Everything of a plan but its programs, whose operations are compared as the ranks do them.
std::string Tables(Plan plan) {
  plan.blocks.clear();
  plan.groups.clear();
  plan.events.clear();
  for (RankClass& rank_class : plan.classes) rank_class.programs = {};
  return PlanToProto(plan).SerializeAsString();
}

// The job inside of a plan file is looked at first, as `planc` does.
std::vector<Violation> Violations(const Plan& mutant, bool same_job) {
  if (!same_job) {
    const std::vector<std::string> problems = CheckResolvedJob(mutant.job);
    if (!problems.empty()) return {{"job", problems.front()}};
  }
  return VerifyPlan(mutant).violations;
}

// Nothing differs from what is compiled for the job.
bool IsPlanOfItsJob(const Plan& mutant) {
  JobSpec spec;
  spec.job = mutant.job;
  const absl::StatusOr<Plan> plan = CompilePlan(spec);
  return plan.ok() &&
         PlanToProto(*plan).SerializeAsString() == PlanToProto(mutant).SerializeAsString();
}

}  // namespace

void Count::Add(const Count& other) {
  tried += other.tried;
  refused += other.refused;
  same_operations += other.same_operations;
  same_bits += other.same_bits;
  rounding += other.rounding;
  other_job += other.other_job;
  expanded += other.expanded;
  disordered += other.disordered;
  disordered_refused += other.disordered_refused;
  refused_for_order += other.refused_for_order;
}

MutantJudge::MutantJudge(const std::string& name, const Plan& plan)
    : name_(name), plan_(plan), image_(PlanToProto(plan)), job_(plan.job.SerializeAsString()) {
  for (const Violation& violation : Violations(plan, false)) {
    ADD_FAILURE() << name << ": " << violation.rule << ": " << violation.message;
  }
  const OrderFindings right = CheckHappensBefore(plan);
  EXPECT_EQ(right.malformed + right.race + right.stuck, "") << name;
  operations_ = right.operations;
}

void MutantJudge::Look(const Plan& mutant, const std::string& text, Count* count) {
  ++count->tried;
  const std::string what = absl::StrCat(name_, ", ", text);
  const std::vector<Violation> violations =
      Violations(mutant, mutant.job.SerializeAsString() == job_);
  const OrderFindings findings = CheckHappensBefore(mutant);
  Compare(findings, violations, what, count);
  if (violations.empty()) {
    Justify(mutant, findings, what, count);
  } else {
    ++count->refused;
  }
}

void MutantJudge::LookAtFile(const proto::Plan& mutant, const std::string& text, Count* count) {
  const absl::StatusOr<Plan> plan = PlanFromProto(mutant);
  if (plan.ok()) {
    const bool same = PlanToProto(*plan).SerializeAsString() == image_.SerializeAsString();
    if (!same) Look(*plan, text, count);
    return;
  }
  ++count->tried;
  ++count->refused;
}

// Verifier and happens-before checker agree: none is accepted that races or never ends, and none is
// refused for its order that does neither.
void MutantJudge::Compare(const OrderFindings& findings, const std::vector<Violation>& violations,
                          const std::string& text, Count* count) const {
  if (findings.malformed.empty()) ++count->expanded;
  const bool disordered = !findings.race.empty() || !findings.stuck.empty();
  if (disordered) ++count->disordered;
  if (disordered && !violations.empty()) ++count->disordered_refused;
  if (violations.empty()) {
    EXPECT_EQ(findings.malformed, "") << "accepted: " << text;
    EXPECT_EQ(findings.race, "") << "accepted: " << text;
    EXPECT_EQ(findings.stuck, "") << "accepted: " << text;
    return;
  }
  const Violation& first = violations[0];
  if (first.rule != "order" && first.rule != "deadlock") return;
  ++count->refused_for_order;
  EXPECT_NE(first.rule == "order" ? findings.race : findings.stuck, "")
      << first.message << ": " << text;
}

void MutantJudge::Justify(const Plan& mutant, const OrderFindings& findings,
                          const std::string& text, Count* count) {
  if (mutant.job.SerializeAsString() != job_) {
    EXPECT_TRUE(IsPlanOfItsJob(mutant)) << "accepted: " << text << ": not the plan of its job";
    ++count->other_job;
    return;
  }
  if (findings.operations == operations_ && Tables(mutant) == Tables(plan_)) {
    ++count->same_operations;
    return;
  }
  if (!run_.has_value()) {
    run_ = RunMesh(plan_, kSteps);
    EXPECT_TRUE(run_->errors.empty()) << name_ << ": " << run_->errors.front();
  }
  std::string difference;
  switch (CompareRuns(RunMesh(mutant, kSteps), *run_, &difference)) {
    case Sameness::kBits:
      ++count->same_bits;
      return;
    case Sameness::kRounding:
      ++count->rounding;
      return;
    case Sameness::kDifferent:
      ADD_FAILURE() << "accepted: " << text << ": another " << difference;
  }
}

}  // namespace planc
