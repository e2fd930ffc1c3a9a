#ifndef PLANC_SCHEMAS_PLAN_H_
#define PLANC_SCHEMAS_PLAN_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/dtype.h"
#include "schemas/job.pb.h"
#include "schemas/layout.h"
#include "schemas/mesh.h"
#include "schemas/opcode.h"

namespace planc {

// What memory is used for. One arena each. X(enumerator, text).
#define PLANC_MEMORY_KINDS(X)        \
  X(kWeights, "weights")             \
  X(kGradients, "gradients")         \
  X(kOptimizer, "optimizer")         \
  X(kActivations, "activations")     \
  X(kCommunication, "communication") \
  X(kWorkspace, "workspace")         \
  X(kHostPinned, "host_pinned")

enum class MemoryKind : uint8_t {
#define PLANC_MEMORY_KIND_ENUM(name, text) name,
  PLANC_MEMORY_KINDS(PLANC_MEMORY_KIND_ENUM)
#undef PLANC_MEMORY_KIND_ENUM
};
inline constexpr int kMemoryKindCount = 7;
const char* MemoryKindName(MemoryKind kind);

// What an instruction is for: reading and timing only; order comes from streams and events.
#define PLANC_LABELS(X)                   \
  X(kInit, "init")                        \
  X(kData, "data")                        \
  X(kForward, "forward")                  \
  X(kBackward, "backward")                \
  X(kRecompute, "recompute")              \
  X(kGradientSync, "gradient_sync")       \
  X(kOptimizer, "optimizer")              \
  X(kParameterGather, "parameter_gather") \
  X(kPipeline, "pipeline")

enum class Label : uint8_t {
#define PLANC_LABEL_ENUM(name, text) name,
  PLANC_LABELS(PLANC_LABEL_ENUM)
#undef PLANC_LABEL_ENUM
};
const char* LabelName(Label label);

// Queues of one rank; instructions on one stream run in program order. X(enumerator, text).
#define PLANC_STREAMS(X)        \
  X(kCompute, "compute")        \
  X(kData, "dp")                \
  X(kSendNext, "send_next")     \
  X(kRecvPrevious, "recv_prev") \
  X(kSendPrevious, "send_prev") \
  X(kRecvNext, "recv_next")

enum class Stream : uint8_t {
#define PLANC_STREAM_ENUM(name, text) name,
  PLANC_STREAMS(PLANC_STREAM_ENUM)
#undef PLANC_STREAM_ENUM
};
inline constexpr int kStreamCount = 6;
const char* StreamName(Stream stream);

// Equal slots of memory. Which slot an instruction uses is bound by the Call it runs under.
struct Pool {
  std::string name;
  MemoryKind kind = MemoryKind::kActivations;
  int64_t stride = 0;  // bytes of one slot, a multiple of kAlignment
};
inline constexpr int64_t kAlignment = 64;

// A typed range of one pool slot. Buffers of one pool may overlap; their lifetimes then do not.
struct Buffer {
  std::string name;
  int pool = 0;
  int64_t offset = 0;  // bytes from the start of the slot
  int64_t bytes = 0;   // bytes on this rank
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // logical, over all ranks of the stage
  Layout layout;
};

// One operand: address = arena + pool base + slot * pool stride + buffer offset + offset
//                        + (coordinate on dp_shard) * shard_stride.
struct Operand {
  int buffer = -1;
  int binding = 0;           // which slot binding of the block (Block::bindings)
  int64_t offset = 0;        // bytes into the buffer
  int64_t shard_stride = 0;  // bytes per dp_shard coordinate
  int64_t bytes = 0;         // bytes accessed
};

// Order between streams. An event is one cell per slot of `pool`, recorded by `stream`: recording
// marks everything before it on that stream as done, a wait waits for the latest record of the cell
// that precedes the wait in program order, and for nothing when there is none.
struct Event {
  std::string name;
  int pool = 0;
  Stream stream = Stream::kCompute;
};

struct EventRef {
  int event = 0;
  int binding = 0;  // the slot binding that selects the cell
};

// Work of one instruction on one rank.
struct Cost {
  double flops = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  int64_t bytes_sent = 0;  // to other ranks, by this rank
};

struct Instruction {
  Opcode opcode = Opcode::kZero;
  std::vector<Operand> operands;  // as in opcode.def
  std::vector<int64_t> integers;  // as in opcode.def
  std::vector<double> reals;      // as in opcode.def
  Stream stream = Stream::kCompute;
  std::vector<EventRef> waits;    // before it starts
  std::vector<EventRef> records;  // after it is done
  int group = -1;                 // Plan::groups, for collectives and transfers
  Label label = Label::kForward;
  Cost cost;
};

// A piece of straight-line program, called with one slot per binding.
struct Block {
  std::string name;
  std::vector<int> bindings;  // pool of each binding; binding 0..n-1
  std::vector<Instruction> instructions;
};

struct Call {
  int block = 0;
  int layer = -1;              // model layer, -1 when the block is not about one
  int microbatch = -1;         // index within the step on this rank, -1 when not about one
  std::vector<int32_t> slots;  // one per Block::bindings
  friend bool operator==(const Call&, const Call&) = default;
};

// `count` runs of `calls`; each further run adds `microbatch_step` to every microbatch index >= 0.
struct Repeat {
  int64_t count = 1;
  int microbatch_step = 0;
  std::vector<Call> calls;
};

// What one rank does. Every program is straight-line after expanding its repeats.
struct Program {
  std::vector<Repeat> steps;
};

// Calls `visit(const Call&)` for each call of the program, in order, microbatch indices resolved.
template <typename Visitor>
void ForEachCall(const Program& program, Visitor visit) {
  for (const Repeat& repeat : program.steps) {
    for (int64_t i = 0; i < repeat.count; ++i) {
      for (Call call : repeat.calls) {
        if (call.microbatch >= 0) {
          call.microbatch += static_cast<int>(i * repeat.microbatch_step);
        }
        visit(call);
      }
    }
  }
}

// Folds a list of calls into repeats, so that its size does not grow with the microbatches.
Program FoldCalls(const std::vector<Call>& calls);

// The programs of a rank. X(enumerator, text).
#define PLANC_PROGRAMS(X)                                           \
  X(kInit, "init")       /* constants and initial master weights */ \
  X(kPublish, "publish") /* compute weights from master weights */  \
  X(kStep, "step")       /* one optimizer step */                   \
  X(kEval, "eval")       /* loss of one global validation batch */

enum class ProgramKind : uint8_t {
#define PLANC_PROGRAM_ENUM(name, text) name,
  PLANC_PROGRAMS(PLANC_PROGRAM_ENUM)
#undef PLANC_PROGRAM_ENUM
};
inline constexpr int kProgramCount = 4;
const char* ProgramName(ProgramKind kind);

// One flat, equally sharded run of parameters that is gathered and reduced as a whole. A layer unit
// stands for the same unit of every layer.
struct Unit {
  std::string name;            // "layer.sharded", "table", ...
  bool per_layer = false;      // the unit exists once for each layer
  bool tp_sharded = false;     // its parameters are split over tp (else every tp rank has them all)
  int64_t elements = 0;        // on one tp rank, padded to a multiple of dp_shard
  int64_t decay_elements = 0;  // leading elements with weight decay
  int master = -1;             // buffers of one shard: master weights and Adam moments
  int first_moment = -1;
  int second_moment = -1;
  int snapshot = -1;  // buffer [3, shard] for master, first and second moment while they are
                      // written in the background; -1 when checkpoint.async is false
  int64_t master_shard_stride = 0;  // as Operand::shard_stride, when master lies in a full buffer
};

// One named tensor of the model. A per-layer parameter has `{layer}` in its name.
struct Parameter {
  std::string name;            // Hugging Face name, e.g. model.layers.{layer}.mlp.up_proj.weight
  std::vector<int64_t> shape;  // of the whole tensor, unpadded
  int unit = 0;
  int64_t unit_offset = 0;           // elements from the start of the unit on one tp rank
  std::vector<int64_t> local_shape;  // on one tp rank, padded
  int tp_dim = -1;                   // dimension split over tp, -1 when replicated
  bool ones = false;                 // initial value 1
  double init_std = 0;               // else normal with this deviation; 0 is zeros
  bool transposed = false;           // the checkpoint name's tensor is the transpose (GPT-2 Conv1D)
};

// Ranks with the same role: here, the ranks of one pipeline stage.
struct RankClass {
  int64_t stage = 0;                // pp coordinate
  std::vector<int> layers;          // model layers, in the order of their slots in layer pools
  bool has_embedding = false;       // holds the token table for the embedding
  bool has_head = false;            // computes logits and loss
  std::vector<int32_t> pool_slots;  // per pool; 0 when the stage does not use it
  std::vector<int64_t> pool_bases;  // per pool; bytes from the start of its kind's arena
  std::array<int64_t, kMemoryKindCount> arena_bytes{};
  std::array<Program, kProgramCount> programs;
};

// Scalars of a step that the runtime reads after it.
struct StepScalars {
  int loss = -1;       // buffer f64: mean loss over the global batch, summed over all ranks
  int grad_norm = -1;  // buffer f32: global norm before clipping
  int eval_loss = -1;  // buffer f64
};

// Everything every rank does, fixed before anything starts. Immutable once written. Built by the
// compiler, proven by VerifyPlan before it is written and after it is read, carried out by the
// runtime.
struct Plan {
  proto::Job job;  // fully resolved
  Mesh mesh;
  int64_t ranks_per_node = 1;
  int64_t microbatches = 1;  // per step on each rank
  int64_t parameters = 0;    // elements of the model
  std::vector<GroupKind> groups;
  std::vector<Pool> pools;
  std::vector<Buffer> buffers;
  std::vector<Event> events;
  std::vector<Block> blocks;
  std::vector<Unit> units;
  std::vector<Parameter> params;
  std::vector<RankClass> classes;  // by stage
  StepScalars scalars;
};

// Canonical text of the whole plan (golden tests, `planc plan --show=program`).
std::string PlanText(const Plan& plan);
// One instruction as text, e.g. "compute  c = matmul(a, b) m=.. ".
std::string InstructionText(const Plan& plan, const Block& block, const Instruction& instruction);

// Bytes of a plan file: one header line (format version, XXH3-128 of the body, its length), then
// the body, a serialized proto::Plan. The same plan always gives the same bytes.
absl::StatusOr<std::string> SerializePlan(const Plan& plan);
// Errors: InvalidArgument for anything that is not a whole plan file of this version.
absl::StatusOr<Plan> ParsePlan(const std::string& bytes);
// 32 hexadecimal digits: XXH3-128 of the body.
absl::StatusOr<std::string> PlanHash(const Plan& plan);

}  // namespace planc

#endif  // PLANC_SCHEMAS_PLAN_H_
