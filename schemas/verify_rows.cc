// Rows of tensors. An operation may take some rows of a tensor and compute those rows of its
// result; gradients of all the rows together are the gradient of the tensor.
#include "absl/strings/str_cat.h"
#include "schemas/verify_execute.h"

namespace planc::verifying {
namespace {

// Operations that treat every row alike and on its own, or sum over rows.
bool TakesRows(Opcode opcode) {
  switch (opcode) {
    case Opcode::kMatmul:
    case Opcode::kMatmulAdd:
    case Opcode::kLossMax:
    case Opcode::kLossSumExp:
    case Opcode::kLossGradient:
    case Opcode::kLossForward:
      return true;
    default:
      return false;
  }
}

uint64_t RowsHash(uint64_t whole, int64_t first_row, int64_t rows) {
  constexpr uint64_t kRowsTag = 7;
  return Mix(Mix(Mix(kRowsTag, whole), static_cast<uint64_t>(first_row)),
             static_cast<uint64_t>(rows));
}

}  // namespace

uint64_t RowsContribution(const Value& value, uint64_t whole) {
  if (value.all_rows == 0) return whole;
  // Telescopes: from 0 to the last row there is one way through ranges that follow each other.
  const auto up_to = [&](int64_t row) {
    return row == 0 ? 0 : row == value.all_rows ? whole : Mix(whole, static_cast<uint64_t>(row));
  };
  return up_to(value.first_row + value.rows) - up_to(value.first_row);
}

int RowsCount(const Value& value) {
  return value.all_rows == 0 || value.first_row + value.rows == value.all_rows ? 1 : 0;
}

// Operand k as some rows of the tensor `whole`, which covers it.
bool Executor::TakeRows(const Site& site, int k, const Value& whole, Value* value) {
  const FlatOperand& operand = site.operands[k];
  const int64_t row = Times(whole.columns, SizeOf(whole.dtype));
  if (whole.kind != ValueKind::kTensor || whole.tile || operand.tile || whole.adjoint != 0 ||
      whole.all_rows != 0 || whole.dtype != operand.dtype || whole.columns != operand.columns ||
      row < 1 || whole.end - whole.begin != Times(whole.rows, row) || operand.begin < whole.begin ||
      operand.end > whole.end || (operand.begin - whole.begin) % row != 0 ||
      operand.bytes != Times(operand.rows, row)) {
    return false;
  }
  *value = whole;
  value->begin = operand.begin;
  value->end = operand.end;
  value->first_row = (operand.begin - whole.begin) / row;
  value->rows = operand.rows;
  value->all_rows = whole.rows;
  value->hash = RowsHash(whole.hash, value->first_row, value->rows);
  Definition rows;
  rows.hash = value->hash;
  rows.inputs[0] = whole.hash;
  rows.first_row = value->first_row;
  rows.rows = value->rows;
  if (!definitions_.Add(rows)) return true;
  Definition* source = definitions_.Find(whole.hash);
  if (source == nullptr) return true;
  // All rows together are one use.
  if (source->rows_taken == 0) ++source->uses;
  source->rows_taken += value->rows;
  return true;
}

// Operand k as the gradient of a tensor, put together from the complete gradients of all its rows.
bool Executor::JoinRows(const Site& site, int k, Value* value) {
  const FlatOperand& operand = site.operands[k];
  const int64_t base = site.memory->CellOf(operand, site.call->slots);
  const std::vector<int64_t>& cuts = flat_.cuts[operand.pool];
  Value joined;
  for (int c = operand.first_cell; c < operand.last_cell;) {
    const int index = site.memory->ValueAt(base + c - operand.first_cell);
    const Value& part = store_[index];
    int end = c + 1;
    while (end < operand.last_cell &&
           site.memory->ValueAt(base + end - operand.first_cell) == index) {
      ++end;
    }
    const Definition* rows = part.adjoint == 0 ? nullptr : definitions_.Find(part.adjoint);
    if (part.kind != ValueKind::kTensor || part.tile || operand.tile || rows == nullptr ||
        rows->rows == 0 || part.all_rows == 0 || part.dtype != operand.dtype ||
        part.begin != cuts[c] || part.end != cuts[end] || part.first_row != rows->first_row ||
        part.rows != rows->rows || part.first_row != joined.rows || !IsComplete(part)) {
      return false;
    }
    if (c == operand.first_cell) {
      joined = part;
      joined.adjoint = rows->inputs[0];
      joined.rows = 0;
    } else if (part.all_rows != joined.all_rows || part.columns != joined.columns ||
               part.layout != joined.layout || part.microbatch != joined.microbatch ||
               part.depth != joined.depth || rows->inputs[0] != joined.adjoint) {
      return false;
    }
    joined.rows += part.rows;
    joined.hash = Mix(joined.hash, part.hash);
    c = end;
  }
  const Definition* whole = definitions_.Find(joined.adjoint);
  if (whole == nullptr || joined.rows != joined.all_rows || whole->rows_taken != joined.rows) {
    return false;
  }
  joined.begin = operand.begin;
  joined.end = operand.end;
  joined.all_rows = 0;
  joined.terms = 1;
  joined.references = 0;
  *value = joined;
  return true;
}

// Whether the operation may take the rows that `value` is, and takes no others with them.
bool Executor::CheckRows(const Site& site, int k, const Value& value) {
  if (value.all_rows == 0 || TakesRows(site.instruction->opcode)) return true;
  BadOperand(site, k, "contents",
             absl::StrCat("holds rows ", value.first_row, " to ", value.first_row + value.rows,
                          " of ", value.all_rows, ", the operation needs all"));
  return false;
}

}  // namespace planc::verifying
