// print_windows JOB STEPS: the training windows that planc deals out, one line for each step with
// the first token of every sequence of the global batch. For train_curve.py.
#include <filesystem>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "compiler/pipeline.h"
#include "compiler/spec/load_job.h"
#include "runtime/data/token_loader.h"

int main(int argc, char** argv) {
  int64_t steps = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[2], &steps)) {
    std::cerr << "usage: print_windows JOB STEPS\n";
    return 2;
  }
  const std::string path = argv[1];
  const planc::LoadResult loaded = planc::LoadJob(path, {});
  if (!loaded.ok) {
    std::cerr << path << " is no valid job; planc check says why\n";
    return 2;
  }
  const absl::StatusOr<planc::Plan> plan = planc::CompilePlan(loaded.spec);
  if (!plan.ok()) {
    std::cerr << plan.status() << "\n";
    return 1;
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const auto loader = planc::TokenLoader::OpenTraining(*plan, folder);
  if (!loader.ok()) {
    std::cerr << loader.status() << "\n";
    return 2;
  }
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < plan->job.batch().global(); ++i) {
      std::cout << (i == 0 ? "" : " ")
                << (*loader)->WindowOf(step, i) * plan->job.batch().sequence();
    }
    std::cout << "\n";
  }
  return 0;
}
