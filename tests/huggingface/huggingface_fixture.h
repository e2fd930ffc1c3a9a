// Small models of every architecture with known weights, saved, exported and imported.
#ifndef PLANC_TESTS_HUGGINGFACE_HUGGINGFACE_FIXTURE_H_
#define PLANC_TESTS_HUGGINGFACE_HUGGINGFACE_FIXTURE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/checkpoint/manifest.h"
#include "schemas/plan.h"

namespace planc {

struct ModelCase {
  std::string name;
  std::string model;  // YAML
  int tp = 1;
};
const std::vector<ModelCase>& ModelCases();
// The case of that name.
const ModelCase& ModelCaseOf(const std::string& name);

// The weight that Save gives to an element of a parameter; all bits of the mantissa are in use.
float WeightOf(const std::string& parameter, int64_t index);
uint32_t BitsOf(float value);

// One state of all parameters of a checkpoint, by full name.
std::map<std::string, std::vector<float>> ReadState(const std::string& checkpoint, StateKind kind);

// A folder of its own for each test, with text to train on.
class HuggingFaceTest : public testing::Test {
 protected:
  void SetUp() override;

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // Writes the job of a model and returns its path.
  std::string WriteJob(const ModelCase& one) const;
  Plan Compile(const ModelCase& one) const;
  // Saves known weights on all ranks of the model's mesh; returns the checkpoint.
  std::string Save(const ModelCase& one) const;
  // Runs planc checkpoint and keeps what it prints, unwrapped.
  int Checkpoint(const std::vector<std::string>& args);
  // Exports a model into Path(to), with more flags.
  void Export(const ModelCase& one, const std::string& to,
              const std::vector<std::string>& flags = {});
  // Imports Path(from) as Path(to); returns the exit code.
  int Import(const ModelCase& one, const std::string& from, const std::string& to);

  std::string folder_;
  std::string output_;
};

}  // namespace planc

#endif  // PLANC_TESTS_HUGGINGFACE_HUGGINGFACE_FIXTURE_H_
