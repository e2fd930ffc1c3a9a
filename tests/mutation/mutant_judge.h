#ifndef PLANC_TESTS_MUTATION_MUTANT_JUDGE_H_
#define PLANC_TESTS_MUTATION_MUTANT_JUDGE_H_

#include <optional>
#include <string>

#include "schemas/plan.h"
#include "schemas/plan.pb.h"
#include "schemas/verify.h"
#include "tests/mesh_run.h"
#include "tests/mutation/happens_before.h"

namespace planc {

// Mutants of one kind.
struct Count {
  int tried = 0;
  int refused = 0;
  // Accepted, each for a reason that holds:
  int same_operations = 0;  // every rank does the same, and nothing races
  int same_bits = 0;        // trains to the same results bit for bit
  int rounding = 0;         // trains to the same results but for the order of sums
  int other_job = 0;        // exactly the plan that the compiler makes of the job that it names
  // What the happens-before checker finds:
  int expanded = 0;    // of the mutants, those with operations on bytes of the arenas
  int disordered = 0;  // of all, with a race or a stream that never ends
  int disordered_refused = 0;
  int refused_for_order = 0;  // or for deadlock
  void Add(const Count& other);
};

// Looks at mutants of one plan. Failures of the test: a mutant that is accepted without a reason,
// and one on whose order verifier and happens-before checker do not agree.
class MutantJudge {
 public:
  // A failure where the plan itself is not right.
  MutantJudge(const std::string& name, const Plan& plan);

  void Look(const Plan& mutant, const std::string& text, Count* count);
  // The same for a plan file, whose reader may refuse it too. One that stands for the same plan is
  // no mutant.
  void LookAtFile(const proto::Plan& mutant, const std::string& text, Count* count);

  const proto::Plan& image() const { return image_; }

 private:
  void Compare(const OrderFindings& findings, const std::vector<Violation>& violations,
               const std::string& text, Count* count) const;
  void Justify(const Plan& mutant, const OrderFindings& findings, const std::string& text,
               Count* count);

  const std::string name_;
  const Plan& plan_;
  const proto::Plan image_;
  const std::string job_;
  std::string operations_;
  std::optional<MeshRun> run_;  // once a mutant is to be compared with it
};

}  // namespace planc

#endif  // PLANC_TESTS_MUTATION_MUTANT_JUDGE_H_
