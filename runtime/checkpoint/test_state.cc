#include "runtime/checkpoint/test_state.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/load.h"
#include "runtime/checkpoint/test_plan.h"

namespace planc {
namespace {

// The value that element `index` of a parameter's state is given; `salt` tells checkpoints apart.
float ValueOf(const Plan& plan, int parameter, int layer, int state, int64_t index, int salt) {
  const bool per_layer = plan.units[plan.params[parameter].unit].per_layer;
  return static_cast<float>(salt * 1000000 + state * 300000 + parameter * 10000 +
                            (per_layer ? layer : 0) * 1000 + index);
}

}  // namespace

absl::Status ThreadAgreement::AllOk(const absl::Status& mine) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (verdict_.ok()) verdict_ = mine;
  }
  barrier_.arrive_and_wait();
  const absl::Status verdict = verdict_;
  barrier_.arrive_and_wait();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    verdict_ = absl::OkStatus();
  }
  barrier_.arrive_and_wait();
  return verdict;
}

absl::Status ThreadAgreement::SameEverywhere(const std::string&, const std::string& value) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.push_back(value);
  }
  barrier_.arrive_and_wait();
  bool same = true;
  for (const std::string& other : values_) same = same && other == value;
  barrier_.arrive_and_wait();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.clear();
  }
  barrier_.arrive_and_wait();
  return same ? absl::OkStatus() : absl::FailedPreconditionError("values differ");
}

absl::Status OnAllRanks(const Plan& plan,
                        const std::function<absl::Status(int64_t, Agreement&)>& body) {
  const int64_t ranks = plan.mesh.WorldSize();
  ThreadAgreement agreement(ranks);
  std::vector<absl::Status> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { results[static_cast<size_t>(rank)] = body(rank, agreement); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) EXPECT_EQ(result.code(), results[0].code());
  return results[0];
}

int64_t TpOf(const Plan& plan, int64_t rank) {
  return plan.mesh.CoordinatesOf(rank)[static_cast<int>(Axis::kTp)];
}

void VisitState(const Plan& plan, int64_t tp, const std::vector<ShardView>& views, int salt,
                const std::function<void(float&, float)>& visit) {
  for (const ShardView& view : views) {
    for (int64_t i = 0; i < view.count; ++i) {
      const ElementPlace place = PlaceOf(plan, view.unit, tp, view.begin + i);
      int state = 0;
      for (float* const values : {view.master, view.m, view.v}) {
        const bool padding = place.parameter < 0;
        visit(
            values[i],
            padding ? 0.0f : ValueOf(plan, place.parameter, view.layer, state, place.index, salt));
        ++state;
      }
    }
  }
}

absl::Status SaveState(const Plan& plan, const std::string& directory, int64_t step, int salt,
                       const SaveOptions& options) {
  return OnAllRanks(plan, [&](int64_t rank, Agreement& agreement) {
    TestShards shards(plan, rank);
    VisitState(plan, TpOf(plan, rank), shards.Views(), salt,
               [](float& value, float expected) { value = expected; });
    return SaveCheckpoint(plan, rank, shards.Views(), step, directory, agreement, options);
  });
}

absl::Status LoadState(const Plan& plan, const std::string& checkpoint, int salt) {
  for (int64_t rank = 0; rank < plan.mesh.WorldSize(); ++rank) {
    TestShards shards(plan, rank);
    const auto step = LoadCheckpoint(plan, TpOf(plan, rank), checkpoint, shards.Views());
    if (!step.ok()) return step.status();
    int64_t wrong = 0;
    VisitState(plan, TpOf(plan, rank), shards.Views(), salt, [&](float& value, float expected) {
      wrong += static_cast<int64_t>(value != expected);
    });
    if (wrong == 0) continue;
    return absl::OutOfRangeError(
        absl::StrCat(checkpoint, ": ", wrong, " values of rank ", rank, " are not of ", salt));
  }
  return absl::OkStatus();
}

}  // namespace planc
