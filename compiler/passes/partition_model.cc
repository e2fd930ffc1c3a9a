// Splits the model over the mesh: process groups, stages, and the parameters of each stage packed
// into flat units that dp_shard divides evenly.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"
#include "schemas/status.h"

namespace planc {
namespace {

using proto::Job;

ModelDims DimsOf(const Job& job, const Mesh& mesh) {
  const proto::Model& m = job.model();
  const bool gpt = m.family() == proto::GPT2 || m.family() == proto::GPT3;
  ModelDims d;
  d.layers = m.layers();
  d.hidden = m.hidden();
  d.heads = m.heads();
  d.kv_heads = m.kv_heads();
  d.head_dim = m.head_dim();
  d.ffn = m.ffn_hidden();
  d.vocab = m.vocab();
  const int64_t tp = mesh[Axis::kTp];
  d.padded_vocab = (d.vocab + tp - 1) / tp * tp;
  d.positions = m.max_sequence();
  d.sequence = job.batch().sequence();
  d.micro = job.batch().micro();
  d.tokens = d.micro * d.sequence;
  d.layer_norm = gpt;
  d.rope = !gpt;
  d.qkv_bias = gpt || m.family() == proto::QWEN2;
  d.linear_bias = gpt;
  d.qk_norm = m.family() == proto::QWEN3;
  d.gated = !gpt;
  d.tied = m.tie_embeddings();
  d.norm_epsilon = m.norm_epsilon();
  d.rope_theta = m.rope_theta();
  d.init_std = m.init_std();
  return d;
}

void AddGroups(StepGraph& graph) {
  const auto add = [&](const std::string& name, AxisSet axes, bool ends = false) {
    GroupKind kind{name, axes, ends};
    if (GroupSize(graph.mesh, kind) > 1) graph.groups.push_back(kind);
  };
  const AxisSet pp = AxisBit(Axis::kPp);
  const AxisSet replicate = AxisBit(Axis::kDpReplicate);
  const AxisSet shard = AxisBit(Axis::kDpShard);
  const AxisSet tp = AxisBit(Axis::kTp);
  add("tp", tp);
  add("dp_shard", shard);
  add("dp_replicate", replicate);
  add("pp", pp);
  add("loss", pp | replicate | shard);
  add("norm", pp | shard | tp);
  if (graph.dims.tied && graph.mesh[Axis::kPp] > 1) add("embedding", pp, true);
}

void AddStages(StepGraph& graph) {
  const int64_t pp = graph.mesh[Axis::kPp];
  const auto& pipeline = graph.job.parallelism().pipeline();
  const int64_t chunks = pipeline.virtual_stages();
  graph.stages.resize(pp);
  int layer = 0;
  for (int64_t virtual_stage = 0; virtual_stage < pp * chunks; ++virtual_stage) {
    std::vector<int> layers;
    for (int64_t i = 0; i < pipeline.stage_layers(virtual_stage); ++i) layers.push_back(layer++);
    graph.stages[virtual_stage % pp].chunk_layers.push_back(layers);
  }
  graph.stages.front().has_embedding = true;
  graph.stages.back().has_head = true;
}

// One parameter of the model, before it has a place in a unit.
struct Spec {
  std::string view;  // short name: "q_proj"
  std::string name;  // in checkpoints
  std::vector<int64_t> shape;
  int tp_dim = -1;
  bool decay = true;
  double init_std = 0;
  bool ones = false;
  bool partial_on_tp = false;  // its gradient is a partial sum over tp although it is replicated
  std::vector<int64_t> padded_shape;
  bool transposed = false;  // published files hold the transpose
};

// Names and shapes of one family's tensors.
class ModelParameters {
 public:
  ModelParameters(const ModelDims& dims, bool sequence_parallel)
      : d_(dims), sequence_parallel_(sequence_parallel), gpt_(dims.layer_norm) {}

  Spec Table() const {
    Spec spec = Matrix("table", gpt_ ? "transformer.wte" : "model.embed_tokens",
                       {d_.vocab, d_.hidden}, 0, d_.init_std);
    spec.padded_shape = {d_.padded_vocab, d_.hidden};
    return spec;
  }
  Spec Position() const {
    Spec spec = Matrix("position", "transformer.wpe", {d_.positions, d_.hidden}, -1, d_.init_std);
    spec.partial_on_tp = sequence_parallel_;
    return spec;
  }
  std::vector<Spec> FinalNorm() const {
    return Norm("final_norm", gpt_ ? "transformer.ln_f" : "model.norm");
  }
  Spec Output() const {
    Spec spec = Matrix("output", "lm_head", {d_.vocab, d_.hidden}, 0, d_.init_std);
    spec.padded_shape = {d_.padded_vocab, d_.hidden};
    return spec;
  }
  std::vector<Spec> Layer() const { return gpt_ ? GptLayer() : LlamaLayer(); }

 private:
  static Spec Matrix(const std::string& view, const std::string& name, std::vector<int64_t> shape,
                     int tp_dim, double std) {
    return {view, name + ".weight", shape, tp_dim, true, std, false, false, shape, false};
  }
  Spec Vector(const std::string& view, const std::string& name, int64_t size, int tp_dim,
              bool ones) const {
    return {view,   name, {size}, tp_dim, false, 0, ones, tp_dim < 0 && sequence_parallel_,
            {size}, false};
  }
  std::vector<Spec> Norm(const std::string& view, const std::string& name) const {
    std::vector<Spec> specs = {Vector(view, name + ".weight", d_.hidden, -1, true)};
    if (d_.layer_norm)
      specs.push_back(Vector(view + "_bias", name + ".bias", d_.hidden, -1, false));
    return specs;
  }
  double ResidualStd() const {
    return d_.init_std / std::sqrt(2.0 * static_cast<double>(d_.layers));
  }

  std::vector<Spec> LlamaLayer() const {
    const std::string p = "model.layers.{layer}.";
    const int64_t q = d_.heads * d_.head_dim;
    const int64_t kv = d_.kv_heads * d_.head_dim;
    std::vector<Spec> s = {
        Matrix("q_proj", p + "self_attn.q_proj", {q, d_.hidden}, 0, d_.init_std),
        Matrix("k_proj", p + "self_attn.k_proj", {kv, d_.hidden}, 0, d_.init_std),
        Matrix("v_proj", p + "self_attn.v_proj", {kv, d_.hidden}, 0, d_.init_std),
        Matrix("o_proj", p + "self_attn.o_proj", {d_.hidden, q}, 1, ResidualStd()),
        Matrix("gate_proj", p + "mlp.gate_proj", {d_.ffn, d_.hidden}, 0, d_.init_std),
        Matrix("up_proj", p + "mlp.up_proj", {d_.ffn, d_.hidden}, 0, d_.init_std),
        Matrix("down_proj", p + "mlp.down_proj", {d_.hidden, d_.ffn}, 1, ResidualStd())};
    if (d_.qkv_bias) {
      s.push_back(Vector("q_bias", p + "self_attn.q_proj.bias", q, 0, false));
      s.push_back(Vector("k_bias", p + "self_attn.k_proj.bias", kv, 0, false));
      s.push_back(Vector("v_bias", p + "self_attn.v_proj.bias", kv, 0, false));
    }
    for (Spec& spec : Norm("norm1", p + "input_layernorm")) s.push_back(spec);
    for (Spec& spec : Norm("norm2", p + "post_attention_layernorm")) s.push_back(spec);
    if (d_.qk_norm) {
      // Every tp rank sees its own heads only.
      Spec qn = Vector("q_norm", p + "self_attn.q_norm.weight", d_.head_dim, -1, true);
      Spec kn = Vector("k_norm", p + "self_attn.k_norm.weight", d_.head_dim, -1, true);
      qn.partial_on_tp = kn.partial_on_tp = true;
      s.push_back(qn);
      s.push_back(kn);
    }
    return s;
  }

  std::vector<Spec> GptLayer() const {
    const std::string p = "transformer.h.{layer}.";
    const int64_t q = d_.heads * d_.head_dim;
    const int64_t kv = d_.kv_heads * d_.head_dim;
    std::vector<Spec> s = {
        Matrix("q_proj", p + "attn.c_attn.q", {q, d_.hidden}, 0, d_.init_std),
        Matrix("k_proj", p + "attn.c_attn.k", {kv, d_.hidden}, 0, d_.init_std),
        Matrix("v_proj", p + "attn.c_attn.v", {kv, d_.hidden}, 0, d_.init_std),
        Matrix("o_proj", p + "attn.c_proj", {d_.hidden, q}, 1, ResidualStd()),
        Matrix("up_proj", p + "mlp.c_fc", {d_.ffn, d_.hidden}, 0, d_.init_std),
        Matrix("down_proj", p + "mlp.c_proj", {d_.hidden, d_.ffn}, 1, ResidualStd()),
        Vector("q_bias", p + "attn.c_attn.q.bias", q, 0, false),
        Vector("k_bias", p + "attn.c_attn.k.bias", kv, 0, false),
        Vector("v_bias", p + "attn.c_attn.v.bias", kv, 0, false),
        Vector("up_bias", p + "mlp.c_fc.bias", d_.ffn, 0, false),
        Vector("o_bias", p + "attn.c_proj.bias", d_.hidden, -1, false),
        Vector("down_bias", p + "mlp.c_proj.bias", d_.hidden, -1, false)};
    for (Spec& spec : s) spec.transposed = spec.shape.size() == 2;
    for (Spec& spec : Norm("norm1", p + "ln_1")) s.push_back(spec);
    for (Spec& spec : Norm("norm2", p + "ln_2")) s.push_back(spec);
    return s;
  }

  ModelDims d_;
  bool sequence_parallel_;
  bool gpt_;
};

// Adds a unit of the parameters in `specs`, decayed ones first, and their places in it.
void AddUnit(StepGraph& graph, const std::string& name, bool per_layer, std::vector<Spec> specs) {
  if (specs.empty()) return;
  const int64_t tp = graph.mesh[Axis::kTp];
  std::stable_sort(specs.begin(), specs.end(),
                   [](const Spec& a, const Spec& b) { return a.decay > b.decay; });
  Unit unit;
  unit.name = name;
  unit.per_layer = per_layer;
  unit.tp_sharded = tp > 1 && specs.front().tp_dim >= 0;
  const int index = static_cast<int>(graph.units.size());
  for (const Spec& spec : specs) {
    Parameter p;
    p.name = spec.name;
    p.shape = spec.shape;
    p.unit = index;
    p.unit_offset = unit.elements;
    p.local_shape = spec.padded_shape;
    p.tp_dim = unit.tp_sharded ? spec.tp_dim : -1;
    if (p.tp_dim >= 0) p.local_shape[p.tp_dim] /= tp;
    p.ones = spec.ones;
    p.init_std = spec.init_std;
    p.transposed = spec.transposed;
    graph.param_views.push_back(spec.view);
    int64_t local = 1;
    int64_t total = 1;
    for (int64_t n : p.local_shape) local *= n;
    for (int64_t n : p.shape) total *= n;
    unit.elements += local;
    if (spec.decay) unit.decay_elements += local;
    graph.parameters += total * (per_layer ? graph.dims.layers : 1);
    graph.params.push_back(std::move(p));
  }
  // Shards of equal size whose bytes are a multiple of the alignment for every dtype.
  const int64_t multiple = graph.mesh[Axis::kDpShard] * (kAlignment / 2);
  unit.elements = (unit.elements + multiple - 1) / multiple * multiple;
  UnitStorage storage;
  storage.gradient_partial_on_tp = tp > 1 && !unit.tp_sharded && specs.front().partial_on_tp;
  graph.units.push_back(std::move(unit));
  graph.unit_storage.push_back(storage);
}

// Parameters of one unit lie the same way on tp, so that each collective covers the unit whole.
void AddUnits(StepGraph& graph, const std::string& name, bool per_layer,
              const std::vector<Spec>& specs) {
  if (!graph.Split(Axis::kTp)) return AddUnit(graph, name, per_layer, specs);
  std::vector<Spec> sharded;
  std::vector<Spec> replicated;
  std::vector<Spec> partial;
  for (const Spec& spec : specs) {
    (spec.tp_dim >= 0 ? sharded : spec.partial_on_tp ? partial : replicated).push_back(spec);
  }
  AddUnit(graph, sharded.size() == specs.size() ? name : name + ".sharded", per_layer, sharded);
  AddUnit(graph, name + ".replicated", per_layer, replicated);
  AddUnit(graph, name + ".partial", per_layer, partial);
}

void MarkUnitsOfStages(StepGraph& graph) {
  for (StageLayout& stage : graph.stages) {
    bool has_layers = false;
    for (const auto& layers : stage.chunk_layers) has_layers = has_layers || !layers.empty();
    for (const Unit& unit : graph.units) {
      const bool table = HoldsTable(unit);
      const bool embedding = table || HoldsPositions(unit);
      const bool held = unit.per_layer ? has_layers
                        : embedding
                            ? stage.has_embedding || (table && graph.dims.tied && stage.has_head)
                            : stage.has_head;
      stage.has_unit.push_back(held);
    }
  }
}

}  // namespace

absl::Status PartitionModel(StepGraph& graph) {
  const Job& job = graph.job;
  const proto::Mesh& m = job.mesh();
  graph.mesh.size = {m.pp(), m.dp_replicate(), m.dp_shard(), m.cp(), m.tp()};
  graph.dims = DimsOf(job, graph.mesh);
  graph.compute = job.precision().compute() == proto::BF16 ? DType::kBF16 : DType::kF32;
  graph.gradient = job.precision().gradient_reduce() == proto::BF16 ? DType::kBF16 : DType::kF32;
  graph.zero = graph.Split(Axis::kDpShard) ? static_cast<int>(job.parallelism().zero()) : 1;
  graph.sequence_parallel = job.parallelism().sequence_parallel() && graph.Split(Axis::kTp);
  graph.microbatches =
      job.batch().global() / (job.batch().micro() * m.dp_replicate() * m.dp_shard());
  AddGroups(graph);
  AddStages(graph);
  const ModelParameters parameters(graph.dims, graph.sequence_parallel);
  AddUnits(graph, "table", false, {parameters.Table()});
  if (!graph.dims.rope) AddUnits(graph, "position", false, {parameters.Position()});
  AddUnits(graph, "layer", true, parameters.Layer());
  AddUnits(graph, "final_norm", false, parameters.FinalNorm());
  if (!graph.dims.tied) AddUnits(graph, "output", false, {parameters.Output()});
  MarkUnitsOfStages(graph);
  return absl::OkStatus();
}

}  // namespace planc
