// Mutations of operands and buffers: where they lie, how long they are, how they are declared.
#include "absl/strings/str_cat.h"
#include "tests/mutation/mutations.h"

namespace planc {
namespace {

bool HasOperands(const Instruction& i) { return !i.operands.empty(); }

struct Place {
  Spot spot;
  Instruction* instruction = nullptr;
  Operand* operand = nullptr;
};

Place ChooseOperand(Plan& plan, Choice& choice) {
  Place place;
  place.spot = ChooseSpot(plan, choice, HasOperands);
  if (place.spot.block < 0) return place;
  place.instruction = &plan.blocks[place.spot.block].instructions[place.spot.instruction];
  const int64_t k = choice.Below(static_cast<int64_t>(place.instruction->operands.size()));
  place.operand = &place.instruction->operands[k];
  return place;
}

Mutated Done(const Plan& plan, const Place& place, const std::string& what) {
  return {true, absl::StrCat(SpotText(plan, place.spot), ", operand ",
                             plan.buffers[place.operand->buffer].name, ": ", what)};
}

Mutated ChangeBuffer(Plan& plan, Choice& choice) {
  const Place place = ChooseOperand(plan, choice);
  if (place.operand == nullptr) return {};
  const int to = static_cast<int>(choice.Below(static_cast<int64_t>(plan.buffers.size())));
  const Buffer& other = plan.buffers[to];
  if (to == place.operand->buffer) return {};
  Mutated result = Done(plan, place, absl::StrCat("retargeted to ", other.name));
  place.operand->buffer = to;
  return result;
}

// To a buffer of the same pool and type, the hardest to notice.
Mutated ChangeToSimilarBuffer(Plan& plan, Choice& choice) {
  const Place place = ChooseOperand(plan, choice);
  if (place.operand == nullptr) return {};
  const Buffer& from = plan.buffers[place.operand->buffer];
  std::vector<int> similar;
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& other = plan.buffers[b];
    if (other.pool == from.pool && other.offset != from.offset && other.dtype == from.dtype &&
        other.bytes >= place.operand->bytes) {
      similar.push_back(static_cast<int>(b));
    }
  }
  if (similar.empty()) return {};
  const int to = similar[choice.Below(static_cast<int64_t>(similar.size()))];
  Mutated result = Done(plan, place, absl::StrCat("retargeted to ", plan.buffers[to].name));
  place.operand->buffer = to;
  return result;
}

Mutated SwapOperands(Plan& plan, Choice& choice) {
  const Place place = ChooseOperand(plan, choice);
  if (place.operand == nullptr) return {};
  auto& operands = place.instruction->operands;
  Operand& other = operands[choice.Below(static_cast<int64_t>(operands.size()))];
  if (other.buffer == place.operand->buffer && other.offset == place.operand->offset &&
      other.binding == place.operand->binding && other.bytes == place.operand->bytes) {
    return {};
  }
  Mutated result =
      Done(plan, place, absl::StrCat("swapped with ", plan.buffers[other.buffer].name));
  std::swap(*place.operand, other);
  return result;
}

Mutated ChangeBinding(Plan& plan, Choice& choice) {
  const Place place = ChooseOperand(plan, choice);
  if (place.operand == nullptr) return {};
  const auto& bindings = plan.blocks[place.spot.block].bindings;
  const int to = static_cast<int>(choice.Below(static_cast<int64_t>(bindings.size())));
  if (to == place.operand->binding) return {};
  Mutated result = Done(plan, place, absl::StrCat("bound to ", to));
  place.operand->binding = to;
  return result;
}

Mutated ChangeOffset(Plan& plan, Choice& choice) {
  const Place place = ChooseOperand(plan, choice);
  if (place.operand == nullptr) return {};
  constexpr int64_t kDeltas[] = {4, 64, -64, 1, 4096, int64_t{1} << 50};
  const int64_t delta = kDeltas[choice.Below(6)];
  Mutated result = Done(plan, place, absl::StrCat("offset += ", delta));
  place.operand->offset += delta;
  return result;
}

Mutated ChangeBytes(Plan& plan, Choice& choice) {
  const Place place = ChooseOperand(plan, choice);
  if (place.operand == nullptr) return {};
  constexpr int64_t kDeltas[] = {4, -4, 64, -64, 1, -(int64_t{1} << 40)};
  const int64_t delta = kDeltas[choice.Below(6)];
  Mutated result = Done(plan, place, absl::StrCat("bytes += ", delta));
  place.operand->bytes += delta;
  return result;
}

Mutated ChangeShardStride(Plan& plan, Choice& choice) {
  const Place place = ChooseOperand(plan, choice);
  if (place.operand == nullptr) return {};
  constexpr int64_t kDeltas[] = {64, -64, 4, 1 << 20};
  const int64_t delta = kDeltas[choice.Below(4)];
  Mutated result = Done(plan, place, absl::StrCat("shard stride += ", delta));
  place.operand->shard_stride += delta;
  return result;
}

// A buffer that some instruction uses.
Buffer* ChooseBuffer(Plan& plan, Choice& choice) {
  const Place place = ChooseOperand(plan, choice);
  if (place.operand == nullptr) return nullptr;
  return &plan.buffers[place.operand->buffer];
}

Mutated ChangeBufferOffset(Plan& plan, Choice& choice) {
  Buffer* buffer = ChooseBuffer(plan, choice);
  if (buffer == nullptr) return {};
  const int64_t delta = choice.Below(2) == 0 ? 64 : -64;
  buffer->offset += delta;
  return {true, absl::StrCat("buffer ", buffer->name, " moved by ", delta)};
}

Mutated ChangeBufferType(Plan& plan, Choice& choice) {
  Buffer* buffer = ChooseBuffer(plan, choice);
  if (buffer == nullptr) return {};
  const DType dtype = static_cast<DType>(choice.Below(5));
  if (dtype == buffer->dtype) return {};
  buffer->dtype = dtype;
  return {true, absl::StrCat("buffer ", buffer->name, " of ", DTypeName(dtype))};
}

Mutated ChangeBufferLayout(Plan& plan, Choice& choice) {
  Buffer* buffer = ChooseBuffer(plan, choice);
  if (buffer == nullptr) return {};
  AxisLayout& layout = buffer->layout[kAllAxes[choice.Below(kAxisCount)]];
  const AxisLayout before = layout;
  const AxisLayout layouts[] = {AxisLayout::Replicated(), AxisLayout::Shard(0),
                                AxisLayout::Shard(1), AxisLayout::PartialSum(),
                                AxisLayout::PartialMax()};
  layout = layouts[choice.Below(5)];
  if (layout == before) return {};
  return {true, absl::StrCat("buffer ", buffer->name, " declared ", LayoutText(buffer->layout))};
}

Mutated ChangeBufferShape(Plan& plan, Choice& choice) {
  Buffer* buffer = ChooseBuffer(plan, choice);
  if (buffer == nullptr || buffer->shape.empty()) return {};
  int64_t& size = buffer->shape[choice.Below(static_cast<int64_t>(buffer->shape.size()))];
  size += choice.Below(2) == 0 ? 1 : size;
  return {true, absl::StrCat("buffer ", buffer->name, " of another shape")};
}

}  // namespace

std::vector<MutationKind> OperandMutations() {
  return {
      {"change buffer", ChangeBuffer},
      {"change to similar buffer", ChangeToSimilarBuffer},
      {"swap operands", SwapOperands},
      {"change binding", ChangeBinding},
      {"change offset", ChangeOffset},
      {"change bytes", ChangeBytes},
      {"change shard stride", ChangeShardStride},
      {"change buffer offset", ChangeBufferOffset},
      {"change buffer type", ChangeBufferType},
      {"change buffer layout", ChangeBufferLayout},
      {"change buffer shape", ChangeBufferShape},
  };
}

}  // namespace planc
