#include "runtime/checkpoint/test_plan.h"

#include <string>

namespace planc {
namespace {

constexpr int kLayers = 3;
constexpr int64_t kHidden = 6;
constexpr int64_t kWide = 12;
constexpr int64_t kVocab = 13;

class PlanBuilder {
 public:
  explicit PlanBuilder(Plan* plan) : plan_(*plan) {}

  void BeginUnit(const std::string& name, bool per_layer, bool tp_sharded) {
    Unit unit;
    unit.name = name;
    unit.per_layer = per_layer;
    unit.tp_sharded = tp_sharded && plan_.mesh[Axis::kTp] > 1;
    const int pool = static_cast<int>(plan_.pools.size());
    plan_.pools.push_back({"master." + name, MemoryKind::kOptimizer, 0});
    unit.master = unit.first_moment = unit.second_moment = static_cast<int>(plan_.buffers.size());
    Buffer buffer;
    buffer.name = "master." + name;
    buffer.pool = pool;
    plan_.buffers.push_back(buffer);
    plan_.units.push_back(unit);
  }

  void Add(const std::string& name, std::vector<int64_t> shape, int tp_dim, double init_std) {
    Unit& unit = plan_.units.back();
    const int64_t tp = plan_.mesh[Axis::kTp];
    Parameter p;
    p.name = name;
    p.shape = shape;
    p.unit = static_cast<int>(plan_.units.size()) - 1;
    p.unit_offset = unit.elements;
    p.tp_dim = unit.tp_sharded ? tp_dim : -1;
    p.local_shape = shape;
    if (p.tp_dim >= 0) p.local_shape[p.tp_dim] = (shape[p.tp_dim] + tp - 1) / tp;
    p.ones = init_std == 1;
    p.init_std = init_std == 1 ? 0 : init_std;
    int64_t elements = 1;
    for (const int64_t size : p.local_shape) elements *= size;
    unit.elements += elements;
    plan_.params.push_back(p);
  }

  void EndUnit() {
    Unit& unit = plan_.units.back();
    const int64_t shards = plan_.mesh[Axis::kDpShard];
    unit.elements = (unit.elements + shards * 4 - 1) / (shards * 4) * (shards * 4);
  }

 private:
  Plan& plan_;
};

}  // namespace

Plan CheckpointTestPlan(int64_t pp, int64_t dp_replicate, int64_t dp_shard, int64_t tp) {
  Plan plan;
  plan.job.set_job("test");
  plan.job.mutable_model()->set_layers(kLayers);
  plan.job.mutable_checkpoint()->set_keep(2);
  plan.job.mutable_checkpoint()->set_resume("auto");
  plan.job.mutable_run()->set_steps(100);
  plan.job.mutable_optimizer()->set_lr(0.1);
  plan.mesh.size = {pp, dp_replicate, dp_shard, 1, tp};
  PlanBuilder build(&plan);
  build.BeginUnit("table", false, true);
  build.Add("model.embed_tokens.weight", {kVocab, kHidden}, 0, 0.02);
  build.EndUnit();
  build.BeginUnit("layer.sharded", true, true);
  build.Add("model.layers.{layer}.up_proj.weight", {kWide, kHidden}, 0, 0.02);
  build.Add("model.layers.{layer}.down_proj.weight", {kHidden, kWide}, 1, 0.01);
  build.Add("model.layers.{layer}.up_proj.bias", {kWide}, 0, 0);
  build.EndUnit();
  build.BeginUnit("layer.replicated", true, false);
  build.Add("model.layers.{layer}.norm.weight", {kHidden}, -1, 1);
  build.EndUnit();
  for (int64_t stage = 0; stage < pp; ++stage) {
    RankClass rank_class;
    rank_class.stage = stage;
    for (int layer = 0; layer < kLayers; ++layer) {
      if (layer % pp == stage) rank_class.layers.push_back(layer);
    }
    const int32_t layers = static_cast<int32_t>(rank_class.layers.size());
    const bool table = stage == 0 || stage == pp - 1;
    rank_class.pool_slots = {table ? 1 : 0, layers, layers};
    rank_class.pool_bases = {0, 0, 0};
    plan.classes.push_back(rank_class);
  }
  return plan;
}

ElementPlace PlaceOf(const Plan& plan, int unit, int64_t tp, int64_t element) {
  for (size_t p = 0; p < plan.params.size(); ++p) {
    const Parameter& parameter = plan.params[p];
    if (parameter.unit != unit) continue;
    int64_t elements = 1;
    for (const int64_t size : parameter.local_shape) elements *= size;
    int64_t rest = element - parameter.unit_offset;
    if (rest < 0 || rest >= elements) continue;
    int64_t index = 0;
    int64_t stride = 1;
    for (size_t d = parameter.shape.size(); d-- > 0;) {
      const int64_t local = parameter.local_shape[d];
      int64_t at = rest % local;
      if (static_cast<int>(d) == parameter.tp_dim) at += tp * local;
      if (at >= parameter.shape[d]) return {};
      index += at * stride;
      stride *= parameter.shape[d];
      rest /= local;
    }
    return {static_cast<int>(p), index};
  }
  return {};
}

TestShards::TestShards(const Plan& plan, int64_t rank) {
  const Coordinates at = plan.mesh.CoordinatesOf(rank);
  const RankClass& rank_class = plan.classes[at[static_cast<int>(Axis::kPp)]];
  for (size_t u = 0; u < plan.units.size(); ++u) {
    const Unit& unit = plan.units[u];
    if (rank_class.pool_slots[plan.buffers[unit.master].pool] == 0) continue;
    const std::vector<int> layers = unit.per_layer ? rank_class.layers : std::vector<int>{-1};
    for (const int layer : layers) {
      Storage storage;
      storage.view.unit = static_cast<int>(u);
      storage.view.layer = layer;
      storage.view.count = unit.elements / plan.mesh[Axis::kDpShard];
      storage.view.begin = at[static_cast<int>(Axis::kDpShard)] * storage.view.count;
      storage.master.assign(static_cast<size_t>(storage.view.count), -1.0f);
      storage.m = storage.v = storage.master;
      if (plan.job.checkpoint().async()) storage.snapshot.assign(3 * storage.master.size(), -2.0f);
      storage_.push_back(storage);
    }
  }
}

std::vector<ShardView> TestShards::Views() {
  std::vector<ShardView> views;
  for (Storage& storage : storage_) {
    views.push_back(storage.view);
    views.back().master = storage.master.data();
    views.back().m = storage.m.data();
    views.back().v = storage.v.data();
    if (!storage.snapshot.empty()) views.back().snapshot = storage.snapshot.data();
  }
  return views;
}

}  // namespace planc
