// What must hold where programs begin and end.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/verify_execute.h"

namespace planc::verifying {
namespace {

bool Repeats(ProgramKind kind) { return kind == ProgramKind::kStep || kind == ProgramKind::kEval; }

}  // namespace

void Executor::BeginProgram(ProgramKind kind) {
  program_ = kind;
  definitions_.Clear();
  loss_function_ = 0;
  repeated_products_ = repeated_others_ = 0;
  in_flight_.assign(memories_.size(), {});
  if (kind == ProgramKind::kStep) {
    for (auto& units : units_) {
      for (std::vector<UnitState>& slots : units) {
        for (UnitState& state : slots) state.gathers = state.reduces = 0;
      }
    }
  }
  for (std::vector<Contributions>& layers : contributions_) {
    std::fill(layers.begin(), layers.end(), Contributions());
  }
  for (size_t stage = 0; stage < memories_.size(); ++stage) {
    if (kind == ProgramKind::kInit) SetInitialMoments(static_cast<int>(stage));
    memories_[stage].BeginProgram(static_cast<int>(kind), Repeats(kind));
  }
}

// Arenas start as zeros, and zeros are the initial moments; or a checkpoint fills them.
void Executor::SetInitialMoments(int stage) {
  for (size_t u = 0; u < plan_.units.size(); ++u) {
    const planc::Unit& unit = plan_.units[u];
    for (const bool first : {true, false}) {
      const Buffer& buffer = plan_.buffers[first ? unit.first_moment : unit.second_moment];
      const std::vector<int64_t>& cuts = flat_.cuts[buffer.pool];
      const auto cell = [&](int64_t at) {
        return static_cast<int>(std::lower_bound(cuts.begin(), cuts.end(), at) - cuts.begin());
      };
      const RankClass& rank_class = plan_.classes[stage];
      for (int slot = 0; slot < rank_class.pool_slots[buffer.pool]; ++slot) {
        if (unit.per_layer && slot >= static_cast<int>(rank_class.layers.size())) continue;
        Value value;
        value.kind = ValueKind::kParameter;
        value.role = first ? ValueRole::kFirstMoment : ValueRole::kSecondMoment;
        value.unit = static_cast<int>(u);
        value.layer = unit.per_layer ? rank_class.layers[slot] : -1;
        value.elements = unit.elements / plan_.mesh[Axis::kDpShard];
        if (plan_.mesh[Axis::kDpShard] > 1) {
          value.layout[static_cast<int>(Axis::kDpShard)] = kRows;
        }
        if (plan_.mesh[Axis::kTp] > 1 && unit.tp_sharded) {
          value.layout[static_cast<int>(Axis::kTp)] = kAsUnit;
        }
        value.dtype = buffer.dtype;
        value.begin = buffer.offset;
        value.end = buffer.offset + buffer.bytes;
        const int index = store_.Add(value);
        for (int c = cell(value.begin); c < cell(value.end); ++c) {
          memories_[stage].SetInitial(memories_[stage].PoolCell(buffer.pool, slot, c), index);
        }
      }
    }
  }
}

void Executor::EndProgram(ProgramKind kind) {
  if (!report_.ok()) return;
  const int stages = static_cast<int>(memories_.size());
  switch (kind) {
    case ProgramKind::kInit:
      return CheckUnits(/*updated=*/false);
    case ProgramKind::kPublish:
      published_ = Snapshot();
      return;
    case ProgramKind::kStep:
      for (int stage = 0; stage < stages; ++stage) {
        CheckScalar(stage, plan_.scalars.loss, ValueRole::kLoss, "loss");
        CheckScalar(stage, plan_.scalars.grad_norm, ValueRole::kNorm, "gradient norm");
      }
      CheckUnits(/*updated=*/true);
      stepped_ = Snapshot();
      step_loss_function_ = loss_function_;
      CheckRecompute();
      CheckZero();
      CheckSchedule();
      return;
    case ProgramKind::kEval:
      for (int stage = 0; stage < stages; ++stage) {
        CheckScalar(stage, plan_.scalars.eval_loss, ValueRole::kLoss, "eval loss");
      }
      if (loss_function_ != step_loss_function_) {
        report_.Add("training", "the evaluation computes another loss than the step does");
      }
      return CheckRepeatable();
  }
}

// The scalar is there, the same on every rank, and stands for every microbatch once.
void Executor::CheckScalar(int stage, int buffer, ValueRole role, const char* name) {
  const Buffer& b = plan_.buffers[buffer];
  const auto bad = [&](const std::string& why) {
    report_.Add("training", absl::StrCat("stage ", stage, ", ", ProgramName(program_), ": the ",
                                         name, " (buffer ", b.name, ") ", why));
  };
  const std::vector<int64_t>& cuts = flat_.cuts[b.pool];
  const auto found = std::lower_bound(cuts.begin(), cuts.end(), b.offset);
  if (plan_.classes[stage].pool_slots[b.pool] != 1 || found == cuts.end() || *found != b.offset ||
      found + 1 == cuts.end()) {
    return bad("is not in memory");
  }
  const int cell = static_cast<int>(found - cuts.begin());
  const Cell& state = memories_[stage].cells()[memories_[stage].PoolCell(b.pool, 0, cell)];
  const Value& value = store_[state.value];
  if (state.written_in != static_cast<int>(program_) || value.kind != ValueKind::kScalar ||
      value.role != role || value.begin != b.offset || value.end != b.offset + b.bytes) {
    return bad("is not computed");
  }
  for (uint8_t code : value.layout) {
    if (code != kReplicated) return bad("is not summed over all ranks");
  }
  if (role != ValueRole::kLoss) return;
  uint64_t expected = 0;
  if (value.count == plan_.microbatches) {
    for (int64_t m = 1; m <= plan_.microbatches; ++m) {
      expected += Mix(1, static_cast<uint64_t>(m));
    }
  }
  if (value.count != plan_.microbatches || value.contributions != expected) {
    bad(absl::StrCat("has ", value.count, " contributions, not one of each of ",
                     Counted(plan_.microbatches, "microbatch")));
  }
}

// Every unit of every stage has initial values; at the end of a step it was updated once.
void Executor::CheckUnits(bool updated) {
  for (size_t stage = 0; stage < units_.size(); ++stage) {
    for (size_t u = 0; u < units_[stage].size(); ++u) {
      for (size_t slot = 0; slot < units_[stage][u].size(); ++slot) {
        UnitState& state = units_[stage][u][slot];
        if (updated ? state.updates == 1 : state.ready) continue;
        report_.Add(
            "training",
            absl::StrCat(
                "stage ", stage, ": unit ", plan_.units[u].name, " in slot ", slot,
                updated ? absl::StrCat(" is updated ", Counted(state.updates, "time"), " in a step")
                        : std::string(" has no initial values")));
      }
    }
  }
}

std::vector<std::vector<int>> Executor::Snapshot() {
  std::vector<std::vector<int>> snapshot;
  for (const Memory& memory : memories_) {
    std::vector<int> values;
    values.reserve(memory.cells().size());
    for (const Cell& cell : memory.cells()) {
      values.push_back(cell.value);
      store_.Retain(cell.value);
    }
    snapshot.push_back(std::move(values));
  }
  return snapshot;
}

// Whether a program that was found right with `before` is right with `after` too: the same value,
// or the same parameters after an update.
bool Executor::SameState(int stage, int before, int after) {
  const Value& a = store_[before];
  Value b = store_[after];
  if (before == after && b.kind != ValueKind::kParameter) return true;
  // A reader of the own shard may as well find the whole unit.
  const int64_t shards = plan_.mesh[Axis::kDpShard];
  uint8_t& shard = b.layout[static_cast<int>(Axis::kDpShard)];
  if (a.tile && !b.tile && shard == kReplicated && a.end - a.begin == a.stride * shards) {
    b.tile = true;
    b.stride = a.stride;
    b.elements /= shards;
    shard = kRows;
  }
  if (a.kind != ValueKind::kParameter || b.kind != ValueKind::kParameter || a.role != b.role ||
      a.unit != b.unit || a.layer != b.layer || a.first_element != b.first_element ||
      a.elements != b.elements || a.layout != b.layout || a.tile != b.tile ||
      a.stride != b.stride || a.begin != b.begin || a.end != b.end || a.dtype != b.dtype) {
    return false;
  }
  if (b.role != ValueRole::kMaster && b.role != ValueRole::kWeight) return true;
  const UnitState* state = StateOf(stage, b.unit, b.layer);
  return state != nullptr && state->version == b.version;
}

// The backward pass computes again what the job's `recompute` says: nothing, what is cheap, or
// whole layers.
void Executor::CheckRecompute() {
  const bool products = repeated_products_ > 0, others = repeated_others_ > 0;
  bool same = true;
  switch (plan_.job.recompute()) {
    case proto::RECOMPUTE_UNSET:  // a plan of no job
      return;
    case proto::RECOMPUTE_NONE:
      same = !products && !others;
      break;
    case proto::RECOMPUTE_SELECTIVE:
      same = !products && others;
      break;
    case proto::RECOMPUTE_FULL:
      same = products;
      break;
  }
  if (same) return;
  report_.Add("training", absl::StrCat("a step computes ", repeated_products_, " products and ",
                                       repeated_others_,
                                       " other operations of the forward pass again, which is not "
                                       "the job's recompute"));
}

// What dp_shard shards, as far as it can be told from what is exchanged: gradients go out once for
// a step (zero 1) or for every microbatch (2 and 3), weights come in once (1 and 2) or, unless all
// of them fit into the window of prefetched layers, more often (3). Shards lie in whole gradients
// (1) and whole weights (1 and 2) that stay, or alone. The weights of a stage's layers have memory
// for all of them, or for the window.
void Executor::CheckZero() {
  const proto::Parallelism& job = plan_.job.parallelism();
  if (!plan_.job.has_parallelism() || plan_.mesh[Axis::kDpShard] == 1) return;
  for (size_t stage = 0; stage < units_.size(); ++stage) {
    const RankClass& rank_class = plan_.classes[stage];
    const auto layers = static_cast<int64_t>(rank_class.layers.size());
    const int64_t window = job.zero() == 3 ? std::min(layers, Plus(job.prefetch(), 1)) : layers;
    for (size_t u = 0; u < units_[stage].size(); ++u) {
      for (const UnitState& state : units_[stage][u]) {
        const auto bad = [&](const std::string& what) {
          report_.Add("training", absl::StrCat("stage ", stage, ": unit ", plan_.units[u].name, " ",
                                               what, ", which is not zero ", job.zero(),
                                               " with prefetch ", job.prefetch()));
        };
        const bool reduces =
            job.zero() == 1 ? state.reduces == 1 : state.reduces >= plan_.microbatches;
        const bool gathers = job.zero() <= 2 ? state.gathers == 1 : state.gathers >= 1;
        if (!reduces || !gathers) {
          return bad(absl::StrCat("is gathered ", state.gathers, " and reduced ", state.reduces,
                                  " times in a step over dp_shard"));
        }
        if (state.reduces_in_place != (job.zero() == 1)) {
          return bad(state.reduces_in_place ? "keeps its whole gradient" : "keeps gradient shards");
        }
        if (state.gathers_in_place == (job.zero() == 3)) {
          return bad(state.gathers_in_place ? "keeps whole weights" : "keeps weight shards");
        }
        const int64_t slots = rank_class.pool_slots[state.gathered_in];
        if (plan_.units[u].per_layer && slots != window) {
          return bad(absl::StrCat("has memory for the weights of ", Counted(slots, "layer")));
        }
      }
    }
  }
}

// How many layers of microbatches are in flight tells the schedules apart: with gpipe all of them
// before the first backward pass; with 1f1b (arXiv 2104.04473, section 2.2) as many microbatches as
// stages are left; interleaved (section 2.3) each chunk in turn for as many microbatches as there
// are stages.
void Executor::CheckSchedule() {
  const proto::Pipeline& job = plan_.job.parallelism().pipeline();
  const auto stages = static_cast<int64_t>(memories_.size());
  const int64_t chunks = job.virtual_stages();
  if (job.stage_layers_size() == 0) return;  // a plan of no job
  if (chunks < 1 || job.stage_layers_size() != Times(stages, chunks)) {
    report_.Add("training", "stage_layers does not name the layers of every chunk of a stage");
    return;
  }
  const int64_t total = Times(plan_.microbatches, chunks);
  for (int64_t stage = 0; stage < stages; ++stage) {
    const int64_t after = stages - stage - 1;
    const int64_t ahead = job.schedule() == proto::GPIPE ? total
                          : job.schedule() == proto::INTERLEAVED_1F1B
                              ? 2 * after + (chunks - 1) * stages
                              : after;
    // Layers of the chunk that the i-th forward or backward pass of the stage is about.
    const auto layers = [&](int64_t i, bool forward) {
      const int64_t chunk = i / stages % chunks;
      return job.stage_layers(
          static_cast<int>((forward ? chunk : chunks - 1 - chunk) * stages + stage));
    };
    int64_t now = 0, most = 0;
    for (int64_t i = 0; i < total; ++i) {
      now += layers(i, true);
      most = std::max(most, now);
      if (i >= ahead) now -= layers(i - ahead, false);
    }
    if (in_flight_[stage].most == most) continue;
    report_.Add("training",
                absl::StrCat("stage ", stage, " keeps ", in_flight_[stage].most,
                             " layers of microbatches in flight, the job's schedule ", most));
  }
}

// Steps and evaluations may follow each other in any order: whatever one of them reads before it
// writes it is, after a step and after an evaluation, as it was after the publish program.
void Executor::CheckRepeatable() {
  for (size_t stage = 0; stage < memories_.size() && !report_.full(); ++stage) {
    const std::vector<Cell>& cells = memories_[stage].cells();
    for (size_t c = 0; c < cells.size() && !report_.full(); ++c) {
      if (!cells[c].live_in) continue;
      const int s = static_cast<int>(stage);
      const bool step = SameState(s, published_[stage][c], stepped_[stage][c]);
      if (step && SameState(s, published_[stage][c], cells[c].value)) continue;
      const auto [pool, cell] = memories_[stage].PoolOf(static_cast<int64_t>(c));
      report_.Add("training",
                  absl::StrCat("stage ", stage, ": byte ", flat_.cuts[pool][cell], " of pool ",
                               plan_.pools[pool].name, " is read at the start of a program, but ",
                               step ? "an evaluation" : "a step", " leaves something else there"));
    }
  }
}

}  // namespace planc::verifying
