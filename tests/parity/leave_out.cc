#include "tests/parity/leave_out.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace planc {
namespace {

using Instructions = std::vector<Instruction>;

bool Has(const Block& block, Opcode opcode) {
  return std::any_of(block.instructions.begin(), block.instructions.end(),
                     [&](const Instruction& i) { return i.opcode == opcode; });
}

// The first block that has the opcode; null where none has.
Block* BlockWith(Plan& plan, Opcode opcode) {
  for (Block& block : plan.blocks) {
    if (Has(block, opcode)) return &block;
  }
  return nullptr;
}
Block& LayerForward(Plan& plan) { return *BlockWith(plan, Opcode::kAttentionForward); }
Block& LayerBackward(Plan& plan) { return *BlockWith(plan, Opcode::kAttentionBackward); }

// Positions of instructions with one of the opcodes.
std::vector<size_t> Find(const Block& block, const std::set<Opcode>& opcodes) {
  std::vector<size_t> found;
  for (size_t i = 0; i < block.instructions.size(); ++i) {
    if (opcodes.count(block.instructions[i].opcode) > 0) found.push_back(i);
  }
  return found;
}

// Takes an instruction out of a block. What it waited for, the block waits for from its start on;
// what it recorded is recorded at the block's end.
void Erase(Block& block, size_t at) {
  const Instruction gone = block.instructions[at];
  block.instructions.erase(block.instructions.begin() + static_cast<std::ptrdiff_t>(at));
  if (block.instructions.empty()) return;
  std::vector<EventRef>& waits = block.instructions.front().waits;
  waits.insert(waits.end(), gone.waits.begin(), gone.waits.end());
  std::vector<EventRef>& records = block.instructions.back().records;
  records.insert(records.end(), gone.records.begin(), gone.records.end());
}

bool Drop(Plan& plan, const std::set<Opcode>& opcodes) {
  bool dropped = false;
  for (Block& block : plan.blocks) {
    for (size_t count = Find(block, opcodes).size(); count > 0; --count) {
      Erase(block, Find(block, opcodes)[0]);
      dropped = true;
    }
  }
  return dropped;
}

// Everything in the block that uses `buffer` uses `instead`.
void Redirect(Block& block, int buffer, const Operand& instead) {
  for (Instruction& instruction : block.instructions) {
    for (Operand& operand : instruction.operands) {
      if (operand.buffer == buffer) operand = instead;
    }
  }
}

bool DropRotary(Plan& plan) { return Drop(plan, {Opcode::kRopeForward, Opcode::kRopeBackward}); }
bool DropPosition(Plan& plan) {
  return Drop(plan, {Opcode::kPositionForward, Opcode::kPositionBackward});
}

const std::set<Opcode> kNormForward = {Opcode::kRmsNormForward, Opcode::kLayerNormForward};
const std::set<Opcode> kNormBackwardAdd = {Opcode::kRmsNormBackwardAdd,
                                           Opcode::kLayerNormBackwardAdd};
const std::set<Opcode> kNormBackward = {Opcode::kRmsNormBackward, Opcode::kLayerNormBackward};

// Where the operands of a norm's backward instruction are.
const Operand& DyOf(const Instruction& norm) { return norm.operands[0]; }
const Operand& XOf(const Instruction& norm) { return norm.operands[1]; }
const Operand& DxOf(const Instruction& norm) {
  const bool rms =
      norm.opcode == Opcode::kRmsNormBackward || norm.opcode == Opcode::kRmsNormBackwardAdd;
  return norm.operands[rms ? 4 : 5];
}
const Operand& YOf(const Instruction& norm) {
  return norm.operands[norm.opcode == Opcode::kRmsNormForward ? 2 : 3];
}

// x + f(x) becomes f(x): of attention with `which` 0, of the feed-forward part with 1.
bool DropResidual(Plan& plan, size_t which) {
  Block& forward = LayerForward(plan);
  const size_t at = Find(forward, {Opcode::kAdd})[which];
  const Instruction add = forward.instructions[at];
  Erase(forward, at);
  Redirect(forward, add.operands[1].buffer, add.operands[2]);
  // The gradient that goes past the branch is what the norm at its head adds to; backward, the
  // feed-forward part comes first.
  Block& backward = LayerBackward(plan);
  Instruction& norm = backward.instructions[Find(backward, kNormBackwardAdd)[1 - which]];
  norm.opcode = norm.opcode == Opcode::kRmsNormBackwardAdd ? Opcode::kRmsNormBackward
                                                           : Opcode::kLayerNormBackward;
  return true;
}
bool DropAttentionResidual(Plan& plan) { return DropResidual(plan, 0); }
bool DropMlpResidual(Plan& plan) { return DropResidual(plan, 1); }

// The norm `which` of a layer becomes the identity.
bool DropLayerNorm(Plan& plan, size_t which) {
  Block& forward = LayerForward(plan);
  const size_t at = Find(forward, kNormForward)[which];
  const Instruction norm = forward.instructions[at];
  Erase(forward, at);
  Redirect(forward, YOf(norm).buffer, norm.operands[0]);
  Block& backward = LayerBackward(plan);
  Instruction& back = backward.instructions[Find(backward, kNormBackwardAdd)[1 - which]];
  const Operand x = XOf(back);
  const int64_t count = back.integers[0] * back.integers[1];
  const Operand dx = DxOf(back);
  back.operands = {dx, DyOf(back), dx};
  back.opcode = Opcode::kAdd;
  back.integers = {count};
  Redirect(backward, YOf(norm).buffer, x);
  return true;
}
bool DropFirstNorm(Plan& plan) { return DropLayerNorm(plan, 0); }
bool DropSecondNorm(Plan& plan) { return DropLayerNorm(plan, 1); }

bool DropFinalNorm(Plan& plan) {
  for (Block& block : plan.blocks) {
    if (!Has(block, Opcode::kLossMax)) continue;  // the head, and that of evaluation
    const size_t at = Find(block, kNormForward)[0];
    const Instruction norm = block.instructions[at];
    Erase(block, at);
    const std::vector<size_t> backs = Find(block, kNormBackward);
    if (!backs.empty()) {
      const Instruction back = block.instructions[backs[0]];
      Erase(block, backs[0]);
      Redirect(block, DyOf(back).buffer, DxOf(back));
    }
    Redirect(block, YOf(norm).buffer, norm.operands[0]);
  }
  return true;
}

bool DropHeadNorms(Plan& plan) {
  Block& forward = LayerForward(plan);
  const std::vector<size_t> found = Find(forward, {Opcode::kHeadNormForward});
  if (found.empty()) return false;
  const Operand in = forward.instructions[found[0]].operands[0];
  const int out = forward.instructions[found[0]].operands[3].buffer;
  Operand in_backward;
  for (const Instruction& instruction : LayerBackward(plan).instructions) {
    if (instruction.opcode == Opcode::kHeadNormBackward) in_backward = instruction.operands[1];
  }
  Drop(plan, {Opcode::kHeadNormForward, Opcode::kHeadNormBackward});
  Redirect(forward, out, in);
  Redirect(LayerBackward(plan), out, in_backward);
  return true;
}

// GELU becomes the identity.
bool DropGelu(Plan& plan) {
  Block& forward = LayerForward(plan);
  const std::vector<size_t> found = Find(forward, {Opcode::kGeluForward});
  if (found.empty()) return false;
  const Instruction gelu = forward.instructions[found[0]];
  Erase(forward, found[0]);
  Redirect(forward, gelu.operands[1].buffer, gelu.operands[0]);
  Block& backward = LayerBackward(plan);
  const size_t at = Find(backward, {Opcode::kGeluBackward})[0];
  const Instruction back = backward.instructions[at];
  Erase(backward, at);
  Redirect(backward, gelu.operands[1].buffer, back.operands[0]);
  Redirect(backward, back.operands[1].buffer, back.operands[2]);
  return true;
}

// The bias `which` of a layer, in forward order.
bool DropBias(Plan& plan, size_t which) {
  Block& forward = LayerForward(plan);
  const std::vector<size_t> found = Find(forward, {Opcode::kBiasForward});
  if (which >= found.size()) return false;
  Erase(forward, found[which]);
  Block& backward = LayerBackward(plan);
  const std::vector<size_t> backs = Find(backward, {Opcode::kBiasBackward});
  Erase(backward, backs[backs.size() - 1 - which]);
  return true;
}
bool DropQkvBias(Plan& plan) { return DropBias(plan, 0); }
bool DropOutputBias(Plan& plan) { return DropBias(plan, 1); }
bool DropUpBias(Plan& plan) { return DropBias(plan, 2); }
bool DropDownBias(Plan& plan) { return DropBias(plan, 3); }

// Every LayerNorm of a layer adds zeros: the output of the product after the second norm, which is
// written whole after both, is set to zero before them.
bool DropNormBias(Plan& plan) {
  Block& forward = LayerForward(plan);
  if (!Has(forward, Opcode::kLayerNormForward)) return false;
  const std::vector<size_t> products = Find(forward, {Opcode::kMatmul});
  const Operand zeros = forward.instructions[products[products.size() - 2]].operands[2];
  for (size_t which = 0; which < 2; ++which) {
    const size_t at = Find(forward, kNormForward)[which];
    Instruction zero;
    zero.opcode = Opcode::kZero;
    zero.operands = {zeros};
    Operand& bias = forward.instructions[at].operands[2];
    const int64_t bytes = bias.bytes;
    bias = zeros;
    bias.bytes = bytes;
    forward.instructions.insert(forward.instructions.begin() + static_cast<std::ptrdiff_t>(at),
                                zero);
  }
  return true;
}

// Each token attends to itself alone: sequences of one token, as many as there are tokens.
bool DropAttention(Plan& plan) {
  for (Block& block : plan.blocks) {
    for (const size_t at : Find(block, {Opcode::kAttentionForward, Opcode::kAttentionBackward})) {
      std::vector<int64_t>& integers = block.instructions[at].integers;
      integers[0] *= integers[1];
      integers[1] = 1;
    }
  }
  return true;
}

// The product that adds the logits' part to the gradient of the table of tokens; null where the
// logits have weights of their own.
const Instruction* TiedProduct(Plan& plan, Block** head, size_t* at) {
  const Block* embed = BlockWith(plan, Opcode::kEmbeddingBackward);
  const Instruction& embedding = embed->instructions[Find(*embed, {Opcode::kEmbeddingBackward})[0]];
  *head = BlockWith(plan, Opcode::kLossGradient);
  for (const size_t product : Find(**head, {Opcode::kMatmul, Opcode::kMatmulAdd})) {
    *at = product;
    const Instruction& instruction = (*head)->instructions[product];
    if (instruction.operands[2].buffer == embedding.operands[2].buffer) return &instruction;
  }
  return nullptr;
}

// The table's gradient is that of the logits alone, or that of the embedding alone.
bool DropTyingOfEmbedding(Plan& plan) {
  Block* head = nullptr;
  size_t at = 0;
  return TiedProduct(plan, &head, &at) != nullptr && Drop(plan, {Opcode::kEmbeddingBackward});
}
bool DropTyingOfLogits(Plan& plan) {
  Block* head = nullptr;
  size_t at = 0;
  if (TiedProduct(plan, &head, &at) == nullptr) return false;
  Erase(*head, at);
  return true;
}

// Each microbatch's gradient replaces that of the ones before: where parts of gradients are added
// up after they were reduced, the sum is set to zero before; else products do not add.
bool DropAccumulation(Plan& plan) {
  const bool parts = BlockWith(plan, Opcode::kAccumulate) != nullptr;
  for (Block& block : plan.blocks) {
    Instructions changed;
    for (Instruction instruction : block.instructions) {
      if (parts && instruction.opcode == Opcode::kAccumulate) {
        Instruction zero;
        zero.opcode = Opcode::kZero;
        zero.operands = {instruction.operands[1]};
        zero.stream = instruction.stream;
        zero.waits = instruction.waits;
        changed.push_back(zero);
      }
      if (!parts && instruction.opcode == Opcode::kMatmulAdd) {
        instruction.opcode = Opcode::kMatmul;
      }
      changed.push_back(instruction);
    }
    block.instructions = changed;
  }
  return true;
}

bool DropDecay(Plan& plan) {
  for (Block& block : plan.blocks) {
    for (const size_t at : Find(block, {Opcode::kAdamw, Opcode::kAdamwCast})) {
      block.instructions[at].integers[1] = 0;
    }
  }
  return true;
}
// Biases and norms decay, too.
bool DecayEverything(Plan& plan) {
  for (Block& block : plan.blocks) {
    for (const size_t at : Find(block, {Opcode::kAdamw, Opcode::kAdamwCast})) {
      std::vector<int64_t>& integers = block.instructions[at].integers;
      integers[1] = integers[0] * plan.mesh[Axis::kDpShard];
    }
  }
  return true;
}

bool DropClipping(Plan& plan) {
  for (Block& block : plan.blocks) {
    for (const size_t at : Find(block, {Opcode::kClipCoefficient})) {
      block.instructions[at].reals[0] = 0;
    }
  }
  return true;
}

}  // namespace

std::vector<LeftOut> AllLeftOut() {
  return {
      {"rotary embedding", true, DropRotary},
      {"position embedding", true, DropPosition},
      {"attention residual", true, DropAttentionResidual},
      {"feed-forward residual", true, DropMlpResidual},
      {"norm before attention", true, DropFirstNorm},
      {"norm before feed-forward", true, DropSecondNorm},
      {"final norm", true, DropFinalNorm},
      {"head norms", true, DropHeadNorms},
      {"bias of norms", true, DropNormBias},
      {"bias of q, k, v", true, DropQkvBias},
      {"bias of attention output", true, DropOutputBias},
      {"bias of up projection", true, DropUpBias},
      {"bias of down projection", true, DropDownBias},
      {"GELU", true, DropGelu},
      {"attention to other tokens", true, DropAttention},
      {"tying: embedding's gradient", false, DropTyingOfEmbedding},
      {"tying: logits' gradient", false, DropTyingOfLogits},
      {"accumulation", false, DropAccumulation},
      {"weight decay", false, DropDecay},
      {"no decay of norms, biases", false, DecayEverything},
      {"clipping", false, DropClipping},
  };
}

std::vector<InstructionPlace> StepInstructions(const Plan& plan) {
  std::set<int> called;
  for (const RankClass& rank_class : plan.classes) {
    ForEachCall(rank_class.programs[static_cast<int>(ProgramKind::kStep)],
                [&](const Call& call) { called.insert(call.block); });
  }
  std::vector<InstructionPlace> places;
  for (const int block : called) {
    const Instructions& instructions = plan.blocks[block].instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (TraitsOf(instructions[i].opcode).kind != OpcodeKind::kCompute) continue;
      if (instructions[i].opcode == Opcode::kZero || instructions[i].opcode == Opcode::kLossMax) {
        continue;
      }
      places.push_back({block, static_cast<int>(i)});
    }
  }
  return places;
}

}  // namespace planc
