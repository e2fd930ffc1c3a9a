#ifndef PLANC_COMPILER_GRAPH_STEP_GRAPH_H_
#define PLANC_COMPILER_GRAPH_STEP_GRAPH_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schemas/dtype.h"
#include "schemas/layout.h"
#include "schemas/mesh.h"
#include "schemas/opcode.h"
#include "schemas/plan.h"

namespace planc {

// The numbers of the model that shape the graph, all unsharded.
struct ModelDims {
  int64_t layers = 0;        // L
  int64_t hidden = 0;        // H
  int64_t heads = 0;         // A
  int64_t kv_heads = 0;      // K
  int64_t head_dim = 0;      // D
  int64_t ffn = 0;           // F
  int64_t vocab = 0;         // V
  int64_t padded_vocab = 0;  // V rounded up to a multiple of tp
  int64_t positions = 0;     // rows of the learned position table
  int64_t sequence = 0;      // S
  int64_t micro = 0;         // sequences per microbatch and data-parallel rank
  int64_t tokens = 0;        // micro * S, on one data-parallel rank
  bool layer_norm = false;   // LayerNorm with bias instead of RMSNorm
  bool rope = false;         // rotary embedding instead of learned positions
  bool qkv_bias = false;
  bool linear_bias = false;  // biases on the output, up and down projections
  bool qk_norm = false;      // RMSNorm of each query and key head
  bool gated = false;        // SwiGLU instead of GELU
  bool tied = false;         // the embedding table is the output projection
  double norm_epsilon = 0;
  double rope_theta = 0;
  double init_std = 0;
};

using ValueId = int;

// One tensor of the graph, on every rank of a stage.
struct GraphValue {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // logical, over all ranks of the stage
  Layout layout;
  int pool = -1;          // StepGraph::pools; -1 is block-local, stored where plan_memory decides
  std::string role;       // tells apart two slots of one pool in one block ("in", "out")
  int64_t offset = -1;    // bytes into the slot; -1 until plan_memory decides
  ValueId alias_of = -1;  // same storage as that value, after a change of layout in place
  // Only some rows of alias_of: from this one on, counted on each rank; -1 when it is all of it.
  int64_t first_row = -1;
  int64_t shard_stride = 0;  // Operand::shard_stride
};

// One operation. Operands follow opcode.def.
struct GraphNode {
  Opcode opcode = Opcode::kZero;
  std::vector<ValueId> operands;
  ValueId result =
      -1;  // all_reduce: the operand's storage, seen with its layout after the reduction
  std::vector<int64_t> integers;
  std::vector<double> reals;
  Label label = Label::kForward;
  Stream stream = Stream::kCompute;
  int group = -1;
  std::vector<EventRef> waits;    // filled by assign_streams
  std::vector<EventRef> records;  // filled by assign_streams
};

// A pool binding of a block: which pool, in which role.
struct GraphBinding {
  int pool = 0;
  std::string role;
  friend bool operator==(const GraphBinding&, const GraphBinding&) = default;
};

struct GraphBlock {
  std::string name;
  std::vector<GraphNode> nodes;
  std::vector<GraphBinding> bindings;  // filled by plan_memory
};

// How many slots a pool has on a stage.
enum class PoolSlots : uint8_t {
  kOne,      // one, when any block of the stage uses it
  kLayers,   // one for each layer of the stage
  kDynamic,  // as many as are alive at once, by the schedule
};

struct GraphPool {
  std::string name;
  MemoryKind kind = MemoryKind::kActivations;
  PoolSlots slots = PoolSlots::kOne;
  int64_t stride = 0;  // bytes of one slot, filled as values are laid out
};

// What a layer's forward pass keeps for its backward pass; the shared pool is there when gradients
// take its slots once layers are done with them (share_slots.cc).
inline constexpr char kSavedPool[] = "saved";
inline constexpr char kSharedPool[] = "saved_then_gradients";
// GraphValue::role of these gradients.
inline constexpr char kGradientRole[] = "gradient";

// Bytes rounded up to whole units of kAlignment.
int64_t AlignedBytes(int64_t bytes);

// The pool of the block-local values of a stream.
std::string LocalPoolName(Stream stream);

// How one parameter unit is stored (indices into StepGraph::pools, -1 when absent).
struct UnitStorage {
  ValueId weight_full = -1;   // flat compute weights that blocks read (gathered under zero 3)
  ValueId weight_shard = -1;  // this rank's shard of them, source of the gather
  ValueId grad_full = -1;     // flat gradient that backward blocks accumulate into
  ValueId grad_partial = -1;  // own shard after the reduce-scatter of one microbatch (zero 2, 3)
  ValueId grad_shard = -1;    // own shard of the reduced gradient
  ValueId master = -1;
  ValueId first_moment = -1;
  ValueId second_moment = -1;
  ValueId snapshot = -1;  // copy of the three while a checkpoint is written; -1 when it is not
  bool gradient_partial_on_tp = false;  // each tp rank holds a part of the sum
  bool gradient_shares_slots = false;   // grad_shard is in kSharedPool; set by share_slots
};

// What one pipeline stage holds.
struct StageLayout {
  std::vector<std::vector<int>> chunk_layers;  // [virtual stage on this rank] -> model layers
  bool has_embedding = false;
  bool has_head = false;
  std::vector<bool> has_unit;  // per unit
};

// What one training step computes, before memory and schedule are fixed. Compiler only.
struct StepGraph {
  proto::Job job;
  Mesh mesh;
  ModelDims dims;
  DType compute = DType::kF32;
  DType gradient = DType::kF32;
  int zero = 1;  // effective: 1 when dp_shard is 1
  bool sequence_parallel = false;
  int64_t microbatches = 1;
  int64_t parameters = 0;
  std::vector<GroupKind> groups;
  std::vector<Unit> units;
  std::vector<UnitStorage> unit_storage;  // parallel to units
  std::vector<Parameter> params;
  std::vector<std::string> param_views;  // short name of each parameter, e.g. "q_proj"
  std::vector<StageLayout> stages;
  std::vector<GraphPool> pools;
  std::vector<GraphValue> values;
  std::vector<GraphBlock> blocks;
  std::vector<Event> events;  // filled by assign_streams
  // Values that parts of the compiler and the runtime refer to by name: "loss", "x.in", ...
  std::map<std::string, ValueId> named;
  std::map<std::string, ValueId> weights;    // parameter view "q_proj" -> compute weight
  std::map<std::string, ValueId> gradients;  // parameter view -> gradient accumulator

  int PoolIndex(const std::string& name) const;  // -1 when there is none
  int AddPool(const std::string& name, MemoryKind kind, PoolSlots slots);
  ValueId AddValue(GraphValue value);
  int BlockIndex(const std::string& name) const;  // -1 when there is none
  int AddBlock(const std::string& name);
  int GroupIndex(const std::string& name) const;  // -1 when there is none
  // True when the axis has more than one rank.
  bool Split(Axis axis) const { return mesh[axis] > 1; }
};

// What a unit holds: the token table, the learned positions.
bool HoldsTable(const Unit& unit);
bool HoldsPositions(const Unit& unit);
// A tied table with a copy on both pipeline ends, which add up their gradients.
bool IsSplitTable(const StepGraph& graph, const Unit& unit);

// Whether one product gives the whole gradient of each matrix of the unit before it is reduced or
// used: it need not be zeroed, and the product is written instead of added.
bool HasOneGradient(const StepGraph& graph, const Unit& unit);

// Elements and bytes of a value on one rank.
std::vector<int64_t> LocalShape(const Mesh& mesh, const std::vector<int64_t>& shape,
                                const Layout& layout);
int64_t LocalElements(const StepGraph& graph, ValueId id);
int64_t LocalBytes(const StepGraph& graph, ValueId id);
// The value whose storage `id` uses.
ValueId StorageRoot(const StepGraph& graph, ValueId id);

}  // namespace planc

#endif  // PLANC_COMPILER_GRAPH_STEP_GRAPH_H_
