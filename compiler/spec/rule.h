#ifndef PLANC_COMPILER_SPEC_RULE_H_
#define PLANC_COMPILER_SPEC_RULE_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "schemas/job.pb.h"
#include "schemas/job_spec.h"

namespace planc {

// What a rule looks at: the resolved job and what several rules compute from it.
struct Facts {
  const proto::Job& job;
  const std::map<std::string, Origin>& origins;
  int64_t world = 0;          // nodes * gpus_per_node
  int64_t data_parallel = 0;  // dp_replicate * dp_shard
  // Microbatches of one step; 0 if batch.global is no multiple.
  int64_t accumulation = 0;

  // Whether the key is written in the job or in --set.
  bool IsWritten(const std::string& path) const;
};

// The facts of a job; `job` and `origins` must outlive them.
Facts FactsOf(const proto::Job& job, const std::map<std::string, Origin>& origins);

// How a rule failed.
struct Finding {
  std::string message;  // the whole equation with names and values
  std::string fix;      // what to do, in words, where no proposal passes all rules
  // Values next to the given ones that satisfy this rule. They need not satisfy the others: each is
  // tried before it is shown.
  std::vector<Proposal> proposals = {};
};

// The proposals that give `key` each of `values`.
std::vector<Proposal> Propose(const std::string& key, const std::vector<int64_t>& values);

// One rule between keys. `keys` are all keys it reads: the first that is written is the primary
// place, the others become secondary places; the rule is skipped if one of them has no usable
// value. Whether it fails, and the message, depend on nothing else (a test changes all others).
struct Rule {
  DiagnosticCode code;
  std::vector<std::string> keys;
  std::optional<Finding> (*check)(const Facts& facts);
  // Keys whose values are in doubt once the rule failed: later rules that read them are skipped.
  std::vector<std::string> doubts = {};
};

// The rules, by subject.
const std::vector<Rule>& MeshRules();          // mesh_rules.cc: the world, tensor parallelism
const std::vector<Rule>& PipelineRules();      // pipeline_rules.cc: chunks and schedules
const std::vector<Rule>& ModelRules();         // model_rules.cc: sizes of the model
const std::vector<Rule>& TrainingRules();      // training_rules.cc: batch, optimizer, data, run
const std::vector<Rule>& AvailabilityRules();  // availability_rules.cc: what does not run yet
const std::vector<Rule>& EffectRules();        // effect_rules.cc: keys that change nothing

// Whether the family rotates queries and keys.
bool IsRotary(proto::Family family);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_RULE_H_
