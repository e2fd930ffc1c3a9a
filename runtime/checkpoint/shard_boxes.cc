#include "runtime/checkpoint/shard_boxes.h"

#include <algorithm>

#include "absl/strings/str_replace.h"

namespace planc {
namespace {

int64_t Product(const std::vector<int64_t>& sizes, size_t first) {
  int64_t product = 1;
  for (size_t d = first; d < sizes.size(); ++d) product *= sizes[d];
  return product;
}

// Cuts a flat range of one parameter's local tensor into boxes.
class BoxCutter {
 public:
  BoxCutter(const Parameter& parameter, int index, int64_t tp, std::vector<UnitBox>* boxes)
      : parameter_(parameter), index_(index), boxes_(boxes) {
    const size_t dims = parameter.local_shape.size();
    for (size_t d = 0; d < dims; ++d) {
      const int64_t local = parameter.local_shape[d];
      const bool split = static_cast<int>(d) == parameter.tp_dim;
      const int64_t start = split ? tp * local : 0;
      start_.push_back(start);
      extent_.push_back(std::clamp(parameter.shape[d] - start, int64_t{0}, local));
    }
    whole_.assign(dims + 1, true);
    for (size_t d = dims; d-- > 0;) {
      whole_[d] = whole_[d + 1] && extent_[d] == parameter.local_shape[d];
    }
    box_.offset = start_;
    box_.shape.assign(dims, 1);
  }

  // Elements [begin, end) of the local tensor.
  void Cut(int64_t begin, int64_t end) { CutFrom(0, begin, end); }

 private:
  // Elements [begin, end) of the part of the tensor where the dimensions before `dim` are fixed.
  void CutFrom(size_t dim, int64_t begin, int64_t end) {
    if (dim == extent_.size()) return Emit(dim);
    const int64_t row = Product(parameter_.local_shape, dim + 1);
    const int64_t valid = extent_[dim] * row;  // what follows is padding
    end = std::min(end, valid);
    while (begin < end) {
      const int64_t at = begin / row;
      const int64_t inside = begin % row;
      // Whole rows lie together only if none of them has padding inside.
      if (inside == 0 && end - begin >= row && whole_[dim + 1]) {
        const int64_t rows = (end - begin) / row;
        box_.offset[dim] = start_[dim] + at;
        box_.shape[dim] = rows;
        Emit(dim + 1);
        begin += rows * row;
      } else {
        const int64_t stop = std::min(end, (at + 1) * row);
        box_.offset[dim] = start_[dim] + at;
        box_.shape[dim] = 1;
        CutFrom(dim + 1, inside, inside + stop - begin);
        begin = stop;
      }
    }
  }

  // The current box, whole in all dimensions from `dim` on.
  void Emit(size_t dim) {
    Box box = box_;
    for (size_t d = dim; d < extent_.size(); ++d) {
      box.offset[d] = start_[d];
      box.shape[d] = extent_[d];
    }
    int64_t local = 0;
    for (size_t d = 0; d < extent_.size(); ++d) {
      local = local * parameter_.local_shape[d] + box.offset[d] - start_[d];
    }
    boxes_->push_back({index_, std::move(box), parameter_.unit_offset + local});
  }

  const Parameter& parameter_;
  const int index_;
  std::vector<UnitBox>* const boxes_;
  std::vector<int64_t> start_;   // of the local tensor in the whole one
  std::vector<int64_t> extent_;  // local sizes without padding
  std::vector<bool> whole_;      // no padding in dimensions >= d
  Box box_;
};

bool HoldsUnit(const Plan& plan, int64_t stage, int unit) {
  return plan.classes[stage].pool_slots[plan.buffers[plan.units[unit].master].pool] > 0;
}

}  // namespace

int64_t BoxElements(const Box& box) { return Product(box.shape, 0); }

Box Intersect(const Box& a, const Box& b) {
  Box common;
  for (size_t d = 0; d < a.offset.size(); ++d) {
    const int64_t begin = std::max(a.offset[d], b.offset[d]);
    const int64_t end = std::min(a.offset[d] + a.shape[d], b.offset[d] + b.shape[d]);
    common.offset.push_back(begin);
    common.shape.push_back(std::max(end - begin, int64_t{0}));
  }
  return common;
}

std::vector<UnitBox> ShardBoxes(const Plan& plan, int unit, int64_t tp, int64_t begin,
                                int64_t count) {
  std::vector<UnitBox> boxes;
  for (size_t p = 0; p < plan.params.size(); ++p) {
    const Parameter& parameter = plan.params[p];
    if (parameter.unit != unit) continue;
    const int64_t first = parameter.unit_offset;
    const int64_t elements = Product(parameter.local_shape, 0);
    const int64_t from = std::max(begin, first) - first;
    const int64_t to = std::min(begin + count, first + elements) - first;
    if (from < to) BoxCutter(parameter, static_cast<int>(p), tp, &boxes).Cut(from, to);
  }
  std::sort(boxes.begin(), boxes.end(),
            [](const UnitBox& a, const UnitBox& b) { return a.unit_begin < b.unit_begin; });
  return boxes;
}

bool WritesUnit(const Plan& plan, int64_t rank, int unit) {
  const Coordinates at = plan.mesh.CoordinatesOf(rank);
  const int64_t stage = at[static_cast<int>(Axis::kPp)];
  if (at[static_cast<int>(Axis::kDpReplicate)] != 0 || at[static_cast<int>(Axis::kCp)] != 0) {
    return false;
  }
  if (!plan.units[unit].tp_sharded && at[static_cast<int>(Axis::kTp)] != 0) return false;
  if (!HoldsUnit(plan, stage, unit)) return false;
  // A layer lives on one stage only; a tied table is saved by the first of its stages.
  if (plan.units[unit].per_layer) return true;
  for (int64_t before = 0; before < stage; ++before) {
    if (HoldsUnit(plan, before, unit)) return false;
  }
  return true;
}

bool WritesAnything(const Plan& plan, int64_t rank) {
  for (size_t unit = 0; unit < plan.units.size(); ++unit) {
    if (WritesUnit(plan, rank, static_cast<int>(unit))) return true;
  }
  return false;
}

std::string ParameterName(const std::string& name, int layer) {
  return absl::StrReplaceAll(name, {{"{layer}", std::to_string(layer)}});
}

void ForEachTensor(const Plan& plan,
                   const std::function<void(const std::string&, const Parameter&)>& visit) {
  for (const Parameter& parameter : plan.params) {
    const bool per_layer = plan.units[parameter.unit].per_layer;
    const int64_t layers = per_layer ? plan.job.model().layers() : 1;
    for (int64_t layer = 0; layer < layers; ++layer) {
      visit(ParameterName(parameter.name, static_cast<int>(layer)), parameter);
    }
  }
}

}  // namespace planc
