#include "compiler/spec/rule.h"

#include "absl/strings/str_cat.h"

namespace planc {

Facts FactsOf(const proto::Job& job, const std::map<std::string, Origin>& origins) {
  Facts facts{job, origins};
  facts.world = job.cluster().nodes() * job.cluster().gpus_per_node();
  facts.data_parallel = job.mesh().dp_replicate() * job.mesh().dp_shard();
  const int64_t per_round = job.batch().micro() * facts.data_parallel;
  const bool divides = per_round > 0 && job.batch().global() % per_round == 0;
  facts.accumulation = divides ? job.batch().global() / per_round : 0;
  return facts;
}

bool Facts::IsWritten(const std::string& path) const {
  const auto found = origins.find(path);
  return found != origins.end() &&
         (found->second.kind == Origin::Kind::kFile || found->second.kind == Origin::Kind::kSet);
}

std::vector<Proposal> Propose(const std::string& key, const std::vector<int64_t>& values) {
  std::vector<Proposal> proposals;
  for (const int64_t value : values) proposals.push_back({{key, absl::StrCat(value)}});
  return proposals;
}

bool IsRotary(proto::Family family) { return family != proto::GPT2 && family != proto::GPT3; }

}  // namespace planc
