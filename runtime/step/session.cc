#include "runtime/step/session.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/step/workspace.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const Plan& plan, int64_t rank,
                                                         int threads,
                                                         host::InstructionSet instruction_set,
                                                         Device* device, Groups* groups) {
  std::unique_ptr<Session> session(
      new Session(plan, rank, threads, instruction_set, device, groups));
  PLANC_RETURN_IF_ERROR(session->AllocateArenas());
  PLANC_RETURN_IF_ERROR(session->PrepareBlocks());
  for (int kind = 0; kind < kProgramCount; ++kind) {
    session->programs_[kind] = PrepareProgram(plan, session->rank_class_->programs[kind]);
  }
  return session;
}

Session::Session(const Plan& plan, int64_t rank, int threads, host::InstructionSet instruction_set,
                 Device* device, Groups* groups)
    : plan_(plan),
      rank_(rank),
      threads_(threads),
      instruction_set_(instruction_set),
      device_(device),
      groups_(groups),
      coordinates_(plan.mesh.CoordinatesOf(rank)),
      rank_class_(&plan.classes[coordinates_[static_cast<int>(Axis::kPp)]]),
      tables_(TablesOf(plan, *rank_class_)) {}

Session::~Session() = default;

absl::Status Session::AllocateArenas() {
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    const char* const name = MemoryKindName(static_cast<MemoryKind>(kind));
    arenas_[kind] = std::make_unique<StaticArena>(device_, name);
    PLANC_RETURN_IF_ERROR(arenas_[kind]->Allocate(rank_class_->arena_bytes[kind]));
    if (groups_ != nullptr && arenas_[kind]->bytes() > 0) {
      PLANC_RETURN_IF_ERROR(
          WithContext(groups_->RegisterMemory(arenas_[kind]->base(), arenas_[kind]->bytes()),
                      absl::StrCat("arena ", name)));
    }
  }
  for (size_t pool = 0; pool < plan_.pools.size(); ++pool) {
    if (rank_class_->pool_slots[pool] == 0) continue;
    const int kind = static_cast<int>(plan_.pools[pool].kind);
    tables_.pool_memory[pool] =
        reinterpret_cast<char*>(arenas_[kind]->base()) + rank_class_->pool_bases[pool];
  }
  return absl::OkStatus();
}

absl::Status Session::PrepareBlocks() {
  const std::vector<bool> called = CalledBlocks(plan_, *rank_class_);
  blocks_.resize(plan_.blocks.size());
  for (size_t b = 0; b < plan_.blocks.size(); ++b) {
    if (!called[b]) continue;
    const Block& block = plan_.blocks[b];
    PLANC_ASSIGN_OR_RETURN(
        blocks_[b],
        PrepareBlock(plan_, block, tables_, coordinates_[static_cast<int>(Axis::kDpShard)]));
    for (size_t i = 0; i < block.instructions.size(); ++i) {
      const Instruction& instruction = block.instructions[i];
      const absl::Status bound = BindResources(instruction, &blocks_[b].instructions[i]);
      if (!bound.ok()) {
        return WithContext(bound, absl::StrCat("block ", block.name, ", instruction ", i, " (",
                                               InstructionText(plan_, block, instruction), ")"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Session::BindResources(const Instruction& instruction, PreparedInstruction* prepared) {
  prepared->instruction_set = instruction_set_;
  prepared->threads = instruction.stream == Stream::kCompute ? threads_ : 1;
  const int operand = OperandIndex(instruction.opcode, "workspace");
  const int64_t needed = NeededWorkspaceBytes(plan_, instruction);
  if (operand >= 0 && instruction.operands[operand].bytes < needed) {
    return absl::InternalError(absl::StrCat("the kernel needs ", Counted(needed, "byte"),
                                            " of workspace; the plan gives it ",
                                            instruction.operands[operand].bytes));
  }
  switch (TraitsOf(instruction.opcode).kind) {
    case OpcodeKind::kCollective:
    case OpcodeKind::kTransfer:
      return BindGroup(instruction, prepared);
    case OpcodeKind::kCompute:
    case OpcodeKind::kHost:
      break;
  }
  const bool is_matmul =
      instruction.opcode == Opcode::kMatmul || instruction.opcode == Opcode::kMatmulAdd;
  return is_matmul ? BindMatmul(instruction, prepared) : absl::OkStatus();
}

absl::Status Session::BindMatmul(const Instruction& instruction, PreparedInstruction* prepared) {
  const host::MatmulShape shape = MatmulShapeOf(plan_, instruction);
  const std::string key =
      absl::StrCat(host::MatmulShapeText(shape), " on ", StreamName(instruction.stream));
  std::unique_ptr<host::Matmul>& matmul = matmuls_[key];
  if (matmul == nullptr) {
    PLANC_ASSIGN_OR_RETURN(matmul,
                           host::Matmul::Create(shape, prepared->threads, instruction_set_));
  }
  prepared->matmul = matmul.get();
  return absl::OkStatus();
}

absl::Status Session::BindGroup(const Instruction& instruction, PreparedInstruction* prepared) {
  if (groups_ != nullptr) {
    prepared->group = groups_->Find(instruction.group, instruction.stream);
  }
  if (prepared->group == nullptr) {
    return absl::InternalError(absl::StrCat("no process group ", instruction.group, " on stream ",
                                            StreamName(instruction.stream)));
  }
  if (TraitsOf(instruction.opcode).kind != OpcodeKind::kTransfer) return absl::OkStatus();

  const int64_t delta = instruction.integers[IntegerIndex(instruction.opcode, "delta")];
  const int64_t stages = plan_.mesh[Axis::kPp];
  Coordinates coordinates = coordinates_;
  int64_t& stage = coordinates[static_cast<int>(Axis::kPp)];
  stage = ((stage + delta) % stages + stages) % stages;
  const std::vector<int64_t>& members = prepared->group->membership().members;
  const auto found = std::find(members.begin(), members.end(), plan_.mesh.RankOf(coordinates));
  if (found == members.end()) {
    return absl::InternalError(absl::StrCat("rank ", plan_.mesh.RankOf(coordinates),
                                            " is not in group ",
                                            prepared->group->membership().name));
  }
  prepared->peer = found - members.begin();
  return absl::OkStatus();
}

DeviceMemory Session::ArenaMemory(MemoryKind kind) const {
  return arenas_[static_cast<int>(kind)]->Measure();
}

void* Session::Address(int buffer, int64_t slot) const {
  const Buffer& found = plan_.buffers[buffer];
  return tables_.pool_memory[found.pool] + slot * plan_.pools[found.pool].stride + found.offset;
}

double Session::ReadScalar(int buffer) const {
  if (buffer < 0 || tables_.pool_memory[plan_.buffers[buffer].pool] == nullptr) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const void* const address = Address(buffer);
  return plan_.buffers[buffer].dtype == DType::kF64 ? *static_cast<const double*>(address)
                                                    : *static_cast<const float*>(address);
}

ShardView Session::ShardOf(int unit_index, int layer, int64_t slot) const {
  const Unit& unit = plan_.units[unit_index];
  const int64_t shard = coordinates_[static_cast<int>(Axis::kDpShard)];
  ShardView view;
  view.unit = unit_index;
  view.layer = layer;
  view.count = unit.elements / plan_.mesh[Axis::kDpShard];
  view.begin = shard * view.count;
  view.master = reinterpret_cast<float*>(static_cast<char*>(Address(unit.master, slot)) +
                                         shard * unit.master_shard_stride);
  view.m = static_cast<float*>(Address(unit.first_moment, slot));
  view.v = static_cast<float*>(Address(unit.second_moment, slot));
  if (unit.snapshot >= 0) view.snapshot = static_cast<float*>(Address(unit.snapshot, slot));
  return view;
}

std::vector<ShardView> Session::Shards() const {
  std::vector<ShardView> shards;
  for (size_t u = 0; u < plan_.units.size(); ++u) {
    const Unit& unit = plan_.units[u];
    const int32_t slots = rank_class_->pool_slots[plan_.buffers[unit.master].pool];
    if (slots == 0) continue;
    const int index = static_cast<int>(u);
    if (!unit.per_layer) {
      shards.push_back(ShardOf(index, -1, 0));
      continue;
    }
    for (size_t slot = 0; slot < rank_class_->layers.size(); ++slot) {
      shards.push_back(ShardOf(index, rank_class_->layers[slot], static_cast<int64_t>(slot)));
    }
  }
  return shards;
}

}  // namespace planc
