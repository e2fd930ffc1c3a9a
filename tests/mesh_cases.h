#ifndef PLANC_TESTS_MESH_CASES_H_
#define PLANC_TESTS_MESH_CASES_H_

#include <string>
#include <vector>

#include "compiler/spec/load_job.h"
#include "schemas/plan.h"

namespace planc {

// One way to spread the same small training job over ranks.
struct MeshCase {
  std::string name;               // identifier, e.g. "pp2_ds2_z3_tp2_sp_1f1b"
  std::string family;             // llama, llama_wide, qwen2, qwen3 or gpt2
  std::vector<std::string> sets;  // overrides of the base job
};

// The base job of a family as YAML: 4 layers, vocabulary not divisible by tp, global batch 8, fp32,
// one rank. `llama_wide` is a Llama with so large a vocabulary that several sequences on a rank get
// their logits and loss in chunks of tokens.
std::string BaseJob(const std::string& family);

// Meshes of up to 8 ranks over pp, dp_replicate, dp_shard with ZeRO 1 to 3, tp with and without
// sequence parallelism, all schedules and recompute policies, for every family. The first case of
// each family is one rank.
std::vector<MeshCase> AllMeshCases();

// Loads the base job of the case's family with its overrides and `more`.
LoadResult LoadMeshCase(const MeshCase& mesh_case, const std::vector<std::string>& more = {});

// The plan of the same; a failure of the test where there is none.
Plan CompileMeshCase(const MeshCase& mesh_case, const std::vector<std::string>& more = {});

}  // namespace planc

#endif  // PLANC_TESTS_MESH_CASES_H_
