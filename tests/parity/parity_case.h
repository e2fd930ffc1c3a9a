// One model on one mesh in one precision, and what PyTorch says about it.
#ifndef PLANC_TESTS_PARITY_PARITY_CASE_H_
#define PLANC_TESTS_PARITY_PARITY_CASE_H_

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/instruction_set.h"
#include "schemas/plan.h"
#include "tests/mesh_run.h"

namespace planc {

inline constexpr int kParityLayers = 4;

struct ParityCase {
  std::string family;
  std::string precision;
  std::string name;  // of the mesh, and of the instruction set
  std::vector<std::string> mesh;
  host::InstructionSet instruction_set = host::InstructionSet::kAvx2;
};

std::vector<std::string> ParityFamilies();

// Every family in fp32 and bf16, on one rank and on eight, with every instruction set that this
// machine has and that gives bits of its own.
std::vector<ParityCase> ParityCases();

// Those on the smallest instruction set: on one rank, or on eight.
std::vector<ParityCase> OneRankCases();
std::vector<ParityCase> MeshParityCases();

// "llama_bf16_one_rank_avx2", for names of tests and files.
std::string ParityCaseName(const ParityCase& one);
// For messages of GoogleTest.
void PrintTo(const ParityCase& one, std::ostream* out);

// The optimizer of the cases, also of make_fixtures.py. Every part of it shows in the first step,
// see parity_case.cc.
struct ParityOptimizer {
  double clip_norm = 0.25;
  double epsilon = 0.01;
  double lr = 1;
  double weight_decay = 0.1;
};

// The plan: GQA, Qwen 3's wide heads, ParityOptimizer.
Plan CompileParityCase(const ParityCase& one, const std::vector<std::string>& more);

// What PyTorch computes in float64 (make_fixtures.py). Tensors by planc's names, in planc's layout.
struct ParityReference {
  std::vector<double> losses;  // of every token of the global batch, in nats
  double logit_deviation = 0;  // root mean square of the logits, less each row's mean
  double grad_norm = 0;        // over all tensors, before clipping
  Tensors weights;
  Tensors gradients;                // before clipping
  double update_norm = 0;           // of all changes of weights by the first step of AdamW
  double update_along_weights = 0;  // their scalar product with the weights
  // Losses of the same model with one module left out, by its name.
  std::map<std::string, std::vector<double>> without;
};

// Where the fixture of a family is.
std::string FixtureFolder(const std::string& family);
ParityReference ReadParityReference(const std::string& family);

// Euclidean norms.
double Norm(const std::vector<float>& values);
double Distance(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace planc

#endif  // PLANC_TESTS_PARITY_PARITY_CASE_H_
