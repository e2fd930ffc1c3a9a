#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/catalog/devices.h"
#include "compiler/spec/include.h"
#include "compiler/spec/nearest.h"
#include "compiler/spec/resolve_job.h"
#include "compiler/spec/stage_layers.h"

namespace planc {
namespace {

// The five axes whose product is the world, outermost first.
constexpr const char* kWorldAxes[] = {"pp", "dp_replicate", "dp_shard", "cp", "tp"};

int64_t GetAxis(const proto::Mesh& mesh, const char* axis) {
  return mesh.GetReflection()->GetInt64(mesh, mesh.GetDescriptor()->FindFieldByName(axis));
}

class Deriver {
 public:
  Deriver(ParsedJob& parsed, DiagnosticList& diagnostics)
      : parsed_(parsed), job_(parsed.job), diagnostics_(diagnostics) {}

  std::set<std::string> Run() {
    Model();
    Memory();
    AutoAxis();
    Stages();
    Schedule();
    Directories();
    return std::move(unsolved_);
  }

 private:
  bool Given(const std::string& path) const { return parsed_.origins.count(path) > 0; }

  // Whether `path` is still to be computed, and everything that it follows from has a value.
  bool Derivable(const std::string& path, const std::vector<std::string>& inputs) const {
    if (Given(path) || parsed_.excused.count(path) > 0) return false;
    return std::all_of(inputs.begin(), inputs.end(), [this](const std::string& input) {
      return Given(input) && unsolved_.count(input) == 0;
    });
  }

  // Records that `path` was computed; `how` says from what.
  void Derived(const std::string& path, std::string how) {
    Origin origin;
    origin.kind = Origin::Kind::kDerived;
    origin.text = std::move(how);
    parsed_.origins[path] = std::move(origin);
  }

  void Model() {
    proto::Model& model = *job_.mutable_model();
    const bool gpt = model.family() == proto::GPT2 || model.family() == proto::GPT3;
    if (Derivable("model.kv_heads", {"model.heads"})) {
      model.set_kv_heads(model.heads());
      Derived("model.kv_heads", "equal to model.heads");
    }
    if (Derivable("model.head_dim", {"model.hidden", "model.heads"})) HeadDim(model);
    if (Derivable("model.max_sequence", {"batch.sequence"})) {
      model.set_max_sequence(job_.batch().sequence());
      Derived("model.max_sequence", "equal to batch.sequence");
    }
    if (Derivable("model.tie_embeddings", {"model.family"})) {
      model.set_tie_embeddings(gpt);
      Derived("model.tie_embeddings", "from model.family");
    }
    if (Derivable("model.rope_theta", {})) {
      model.set_rope_theta(10000);
      Derived("model.rope_theta", "10000");
    }
    if (Derivable("model.norm_epsilon", {})) {
      model.set_norm_epsilon(1e-5);
      Derived("model.norm_epsilon", "1e-5");
    }
  }

  void HeadDim(proto::Model& model) {
    if (model.hidden() % model.heads() == 0) {
      model.set_head_dim(model.hidden() / model.heads());
      return Derived("model.head_dim", "model.hidden / model.heads");
    }
    Diagnostic& diagnostic = diagnostics_.Add(
        DiagnosticCode::kHeadsDoNotDivideHidden, SpanOf(parsed_.origins.at("model.heads")),
        absl::StrCat("model.hidden ", model.hidden(), " is not a multiple of model.heads ",
                     model.heads(), ", so that model.head_dim cannot be derived"));
    diagnostic.secondary.push_back({SpanOf(parsed_.origins.at("model.hidden")), "hidden"});
    for (const int64_t heads : NearestDivisors(model.hidden(), model.heads())) {
      diagnostic.proposals.push_back({{"model.heads", absl::StrCat(heads)}});
    }
    for (const int64_t hidden : NearestMultiples(model.heads(), model.hidden())) {
      diagnostic.proposals.push_back({{"model.hidden", absl::StrCat(hidden)}});
    }
    diagnostic.fix = "give model.head_dim, or change hidden or heads";
  }

  void Memory() {
    if (!Derivable("cluster.memory", {"cluster.device"})) return;
    const DeviceSpec* device = FindDevice(job_.cluster().device());
    // A host has no bound unless the job gives one: the key stays unset.
    if (device == nullptr || device->memory_bytes == 0) return;
    job_.mutable_cluster()->set_memory(device->memory_bytes);
    Derived("cluster.memory", absl::StrCat("from the device ", device->name));
  }

  // Where no axis is written, dp_shard takes all ranks, as if it were auto.
  bool AllRanksShard() {
    for (const char* axis : kWorldAxes) {
      const auto origin = parsed_.origins.find(absl::StrCat("mesh.", axis));
      // An axis without origin was written, with an error that is reported.
      if (origin == parsed_.origins.end() || origin->second.kind != Origin::Kind::kDefault) {
        return false;
      }
    }
    if (!Given("cluster.nodes") || !Given("cluster.gpus_per_node")) {
      unsolved_.insert("mesh.dp_shard");
      return true;
    }
    const int64_t world = job_.cluster().nodes() * job_.cluster().gpus_per_node();
    if (world <= 1) return false;
    job_.mutable_mesh()->set_dp_shard(world);
    Derived("mesh.dp_shard", "all ranks, as no axis of the mesh is given");
    return true;
  }

  void AutoAxis() {
    if (AllRanksShard()) return;
    proto::Mesh& mesh = *job_.mutable_mesh();
    std::vector<std::string> autos;
    __int128 product = 1;
    bool all_known = Given("cluster.nodes") && Given("cluster.gpus_per_node");
    for (const char* axis : kWorldAxes) {
      if (!Given(absl::StrCat("mesh.", axis))) {
        all_known = false;
      } else if (GetAxis(mesh, axis) == 0) {
        autos.push_back(axis);
      } else {
        product *= GetAxis(mesh, axis);
      }
    }
    if (autos.empty()) return;
    const std::string path = absl::StrCat("mesh.", autos.back());
    const Span span = SpanOf(parsed_.origins.at(path));
    const int64_t world = job_.cluster().nodes() * job_.cluster().gpus_per_node();
    if (autos.size() > 1) {
      Diagnostic& diagnostic =
          diagnostics_.Add(DiagnosticCode::kTwoAutoAxes, span,
                           absl::StrCat("only one mesh axis may be auto, but these are: ",
                                        absl::StrJoin(autos, " ")));
      diagnostic.fix = "give all but one of them";
      for (const std::string& axis : autos) {
        Proposal proposal;
        for (const std::string& other : autos) {
          if (other != axis) proposal.push_back({absl::StrCat("mesh.", other), "1"});
        }
        diagnostic.proposals.push_back(std::move(proposal));
      }
    } else if (!all_known) {
      // What would decide it has no value, for which an error accounts.
    } else if (product > world || world % static_cast<int64_t>(product) != 0) {
      AutoDoesNotDivide(autos.front(), span, world);
    } else {
      mesh.GetReflection()->SetInt64(&mesh, mesh.GetDescriptor()->FindFieldByName(autos.front()),
                                     world / static_cast<int64_t>(product));
      // The origin stays where `auto` is written; its text shows that it was chosen.
      return;
    }
    for (const std::string& axis : autos) unsolved_.insert(absl::StrCat("mesh.", axis));
  }

  void AutoDoesNotDivide(const std::string& unknown, const Span& span, int64_t world) {
    std::vector<std::string> factors;
    for (const char* axis : kWorldAxes) {
      const int64_t size = GetAxis(job_.mesh(), axis);
      if (size > 1) factors.push_back(absl::StrCat(axis, " ", size));
    }
    Diagnostic& diagnostic = diagnostics_.Add(
        DiagnosticCode::kAutoDoesNotDivide, span,
        absl::StrCat("mesh.", unknown, " is auto, but ", absl::StrJoin(factors, " * "),
                     " does not divide nodes ", job_.cluster().nodes(), " * gpus_per_node ",
                     job_.cluster().gpus_per_node(), " = ", world));
    diagnostic.secondary.push_back(
        {SpanOf(parsed_.origins.at("cluster.gpus_per_node")), "gpus_per_node"});
    diagnostic.fix = "change the given axes so that their product divides";
    ProposeAxes(world, &diagnostic.proposals);
  }

  // Values of single axes that let the auto axis take the rest.
  void ProposeAxes(int64_t world, std::vector<Proposal>* proposals) const {
    for (const char* changed : kWorldAxes) {
      __int128 others = 1;
      for (const char* axis : kWorldAxes) {
        if (axis != changed) others *= std::max<int64_t>(GetAxis(job_.mesh(), axis), 1);
      }
      const int64_t size = GetAxis(job_.mesh(), changed);
      if (size <= 1 || others > world || world % static_cast<int64_t>(others) != 0) continue;
      for (const int64_t value : NearestDivisors(world / static_cast<int64_t>(others), size)) {
        proposals->push_back({{absl::StrCat("mesh.", changed), absl::StrCat(value)}});
      }
    }
  }

  void Stages() {
    const std::string path = "parallelism.pipeline.stage_layers";
    if (!Derivable(path, {"model.layers", "mesh.pp", "parallelism.pipeline.virtual_stages"}))
      return;
    const proto::Pipeline& pipeline = job_.parallelism().pipeline();
    const std::vector<int64_t> layers =
        SplitLayers(job_.model().layers(), job_.mesh().pp(), pipeline.virtual_stages());
    // No split exists: kTooFewLayers says why.
    if (layers.empty()) return;
    auto* field = job_.mutable_parallelism()->mutable_pipeline()->mutable_stage_layers();
    field->Assign(layers.begin(), layers.end());
    Derived(path, "even split of model.layers");
  }

  void Schedule() {
    if (!Derivable("lr_schedule.decay_steps", {"run.steps"})) return;
    job_.mutable_lr_schedule()->set_decay_steps(job_.run().steps());
    Derived("lr_schedule.decay_steps", "equal to run.steps");
  }

  void Directories() {
    if (Derivable("run.directory", {"job"})) {
      job_.mutable_run()->set_directory(absl::StrCat("runs/", job_.job()));
      Derived("run.directory", "runs/<job>");
    }
    if (Derivable("checkpoint.directory", {"run.directory"})) {
      job_.mutable_checkpoint()->set_directory(
          absl::StrCat(job_.run().directory(), "/checkpoints"));
      Derived("checkpoint.directory", "run.directory/checkpoints");
    }
    // `none` is a word, and so are `auto` and `never`; anything else is a path.
    const std::string& initial = job_.checkpoint().initial();
    if (Given("checkpoint.initial") && initial != "none") {
      job_.mutable_checkpoint()->set_initial(
          PathFrom(parsed_.origins.at("checkpoint.initial").file, initial));
    }
    const std::string& resume = job_.checkpoint().resume();
    if (!Given("checkpoint.resume") || resume == "auto" || resume == "never") return;
    job_.mutable_checkpoint()->set_resume(
        PathFrom(parsed_.origins.at("checkpoint.resume").file, resume));
  }

  ParsedJob& parsed_;
  proto::Job& job_;
  DiagnosticList& diagnostics_;
  std::set<std::string> unsolved_;
};

}  // namespace

std::set<std::string> DeriveKeys(ParsedJob& parsed, DiagnosticList& diagnostics) {
  return Deriver(parsed, diagnostics).Run();
}

}  // namespace planc
