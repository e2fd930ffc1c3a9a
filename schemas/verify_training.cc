// The plan trains the model of its job: layers, parameters, batch and constants.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/verify_report.h"

namespace planc::verifying {
namespace {

class TrainingCheck {
 public:
  TrainingCheck(const Plan& plan, Report& report) : plan_(plan), report_(report) {}

  void Run() {
    Axes();
    Layers();
    for (size_t u = 0; u < plan_.units.size(); ++u) UnitOf(static_cast<int>(u));
    Parameters();
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      for (size_t i = 0; i < plan_.blocks[b].instructions.size() && !report_.full(); ++i) {
        Constants(static_cast<int>(b), static_cast<int>(i));
      }
    }
  }

 private:
  void Bad(const std::string& message) { report_.Add("training", message); }

  void Axes() {
    const proto::Mesh& mesh = plan_.job.mesh();
    const std::array<int64_t, kAxisCount> asked = {mesh.pp(), mesh.dp_replicate(), mesh.dp_shard(),
                                                   mesh.cp(), mesh.tp()};
    if (plan_.job.has_mesh() && asked != plan_.mesh.size) Bad("the mesh is not that of the job");
    if (plan_.job.has_cluster() && plan_.job.cluster().gpus_per_node() != plan_.ranks_per_node) {
      Bad(absl::StrCat("the plan has ", plan_.ranks_per_node, " ranks on a node, the job asks for ",
                       plan_.job.cluster().gpus_per_node()));
    }
    if (!plan_.job.has_batch()) return;
    const proto::Batch& batch = plan_.job.batch();
    const int64_t step = Times(Times(batch.micro(), plan_.microbatches),
                               Times(plan_.mesh[Axis::kDpReplicate], plan_.mesh[Axis::kDpShard]));
    if (step != batch.global()) {
      Bad(absl::StrCat(Counted(plan_.microbatches, "microbatch"), " on each rank make ",
                       Counted(step, "sequence"), ", the job asks for ", batch.global()));
    }
  }

  void Layers() {
    std::vector<int> all;
    for (const RankClass& rank_class : plan_.classes) {
      all.insert(all.end(), rank_class.layers.begin(), rank_class.layers.end());
    }
    std::sort(all.begin(), all.end());
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] == static_cast<int>(i)) continue;
      Bad("the stages do not hold every layer once");
      break;
    }
    layers_ = static_cast<int64_t>(all.size());
    if (plan_.job.has_model() && plan_.job.model().layers() != layers_) {
      Bad(absl::StrCat("the stages hold ", Counted(layers_, "layer"), ", the model has ",
                       plan_.job.model().layers()));
    }
    for (size_t c = 0; c < plan_.classes.size(); ++c) {
      const bool first = c == 0, last = c + 1 == plan_.classes.size();
      if (plan_.classes[c].has_embedding != first || plan_.classes[c].has_head != last) {
        Bad(absl::StrCat("stage ", c, " is wrong about having the embedding or the head"));
      }
    }
  }

  // Parameters lie in the unit one after another, decayed ones first; the stages that hold the unit
  // have memory for it.
  void UnitOf(int u) {
    const Unit& unit = plan_.units[u];
    std::vector<const Parameter*> parameters;
    for (const Parameter& p : plan_.params) {
      if (p.unit == u) parameters.push_back(&p);
    }
    std::sort(parameters.begin(), parameters.end(), [](const Parameter* a, const Parameter* b) {
      return a->unit_offset < b->unit_offset;
    });
    int64_t at = 0, decay = 0;
    for (const Parameter* p : parameters) {
      if (p->unit_offset != at) {
        Bad(absl::StrCat("parameter ", p->name, " does not follow the one before it in its unit"));
      }
      int64_t elements = 1;
      for (int64_t n : p->local_shape) elements = n < 1 ? kMaxNumber : Times(elements, n);
      at = Plus(at, elements);
      if (p->shape.size() == 2) decay = decay + elements == at ? at : kMaxNumber;
    }
    if (at > unit.elements || parameters.empty()) {
      Bad(absl::StrCat("unit ", unit.name, " has ", Counted(unit.elements, "element"), " for ",
                       at));
    }
    if (unit.decay_elements != decay) {
      Bad(absl::StrCat("unit ", unit.name, " decays ", Counted(unit.decay_elements, "element"),
                       ", its matrices have ", decay));
    }
    Holders(unit);
  }

  void Holders(const Unit& unit) {
    int holders = 0;
    for (const RankClass& rank_class : plan_.classes) {
      const int64_t wanted = unit.per_layer ? static_cast<int64_t>(rank_class.layers.size()) : 1;
      const int64_t slots = rank_class.pool_slots[plan_.buffers[unit.master].pool];
      if (slots > 0) ++holders;
      if (slots != wanted && (unit.per_layer || slots != 0)) {
        Bad(absl::StrCat("stage ", rank_class.stage, " has ", Counted(slots, "slot"), " for unit ",
                         unit.name, ", not ", wanted));
      }
    }
    if (holders == 0) Bad(absl::StrCat("no stage holds unit ", unit.name));
  }

  void Parameters() {
    int64_t total = 0;
    const int64_t tp = plan_.mesh[Axis::kTp];
    for (const Parameter& p : plan_.params) {
      const Unit& unit = plan_.units[p.unit];
      int64_t elements = unit.per_layer ? layers_ : 1;
      for (size_t d = 0; d < p.shape.size(); ++d) {
        const int64_t parts = static_cast<int>(d) == p.tp_dim ? tp : 1;
        if (p.shape[d] < 1 || p.shape[d] > kMaxNumber ||
            p.local_shape[d] != (p.shape[d] + parts - 1) / parts) {
          Bad(absl::StrCat("parameter ", p.name, " has ", p.local_shape[d], " of ", p.shape[d],
                           " along dimension ", d, " on one of ", Counted(parts, "rank")));
        }
        elements = Times(elements, std::max<int64_t>(p.shape[d], 0));
      }
      total = Plus(total, elements);
      if ((p.tp_dim >= 0) != unit.tp_sharded) {
        Bad(absl::StrCat("parameter ", p.name, " lies on tp in another way than its unit"));
      }
    }
    if (total != plan_.parameters) {
      Bad(absl::StrCat("the plan counts ", Counted(plan_.parameters, "parameter"),
                       ", its tensors have ", total));
    }
  }

  void Expect(const std::string& where, const char* what, double found, double expected) {
    if (found == expected) return;
    if (std::abs(found - expected) <= 1e-12 * std::abs(expected)) return;
    Bad(absl::StrCat(where, ": ", what, " is ", found, ", the job makes it ", expected));
  }

  // Attributes by name that the job determines.
  void Constants(int b, int i) {
    const Instruction& instruction = plan_.blocks[b].instructions[i];
    const OpcodeTraits& traits = TraitsOf(instruction.opcode);
    const proto::Job& job = plan_.job;
    const double tp = static_cast<double>(plan_.mesh[Axis::kTp]);
    if (instruction.opcode == Opcode::kInitParameters) Master(b, i);
    if (!job.has_batch() || !job.has_model()) return;
    const auto expect = [&](const char* what, double found, double expected) {
      if (found != expected) Expect(Where(plan_, b, i), what, found, expected);
    };
    for (size_t k = 0; k < traits.integers.size(); ++k) {
      const std::string& name = traits.integers[k];
      const auto value = static_cast<double>(instruction.integers[k]);
      if (name == "sequence") expect("sequence", value, job.batch().sequence());
      if (name == "batch") expect("batch", value, job.batch().micro());
      if (name == "valid_vocab") expect("valid_vocab", value, job.model().vocab());
      if (name == "heads") expect("heads", value * tp, job.model().heads());
      if (name == "kv_heads") expect("kv_heads", value * tp, job.model().kv_heads());
      if (name == "head_dim") expect("head_dim", value, job.model().head_dim());
      if (name == "rows" && traits.kind == OpcodeKind::kHost) {
        expect("rows", value,
               static_cast<double>(Times(job.batch().micro(), job.batch().sequence())));
      }
    }
    for (size_t k = 0; k < traits.reals.size(); ++k) {
      const std::string& name = traits.reals[k];
      const double value = instruction.reals[k];
      if (name == "epsilon") expect("epsilon", value, job.model().norm_epsilon());
      if (name == "theta") expect("theta", value, job.model().rope_theta());
      if (name == "clip_norm") expect("clip_norm", value, job.optimizer().clip_norm());
      if (name == "scale") {
        expect("scale", value,
               1.0 / (static_cast<double>(job.batch().global()) *
                      static_cast<double>(job.batch().sequence())));
      }
    }
  }

  // The unit says how its master shards lie; checkpoints go by it.
  void Master(int b, int i) {
    const Instruction& instruction = plan_.blocks[b].instructions[i];
    const Unit& unit = plan_.units[instruction.integers[0]];
    if (plan_.mesh[Axis::kDpShard] > 1 &&
        instruction.operands[0].shard_stride != unit.master_shard_stride) {
      Bad(absl::StrCat(Where(plan_, b, i), ": master shards lie ",
                       Counted(instruction.operands[0].shard_stride, "byte"), " apart, unit ",
                       unit.name, " says ", unit.master_shard_stride));
    }
  }

  const Plan& plan_;
  Report& report_;
  int64_t layers_ = 0;
};

}  // namespace

void CheckTraining(const Plan& plan, Report& report) { TrainingCheck(plan, report).Run(); }

}  // namespace planc::verifying
