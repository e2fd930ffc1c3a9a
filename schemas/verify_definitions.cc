#include "schemas/verify_definitions.h"

#include <algorithm>

namespace planc::verifying {
namespace {

int64_t Elements(const Parameter& parameter) {
  int64_t product = 1;
  for (int64_t n : parameter.local_shape) product = Times(product, n);
  return product;
}

int64_t Columns(const Parameter& parameter) {
  return parameter.local_shape.size() == 2 ? parameter.local_shape[1] : 1;
}

uint8_t TpCode(const Plan& plan, const Parameter& parameter) {
  if (parameter.tp_dim < 0 || plan.mesh[Axis::kTp] == 1) return kReplicated;
  return parameter.tp_dim == 0 ? kRows : kColumns;
}

}  // namespace

uint64_t UseHash(const Definition& definition, int weight) {
  return Mix(Mix(2, definition.hash), static_cast<uint64_t>(weight));
}

ParameterTable::ParameterTable(const Plan& plan)
    : plan_(plan), by_offset_(plan.units.size()), elements_(plan.units.size(), 0) {
  for (size_t p = 0; p < plan.params.size(); ++p) {
    by_offset_[plan.params[p].unit].push_back(static_cast<int>(p));
    elements_[plan.params[p].unit] = Plus(elements_[plan.params[p].unit], Elements(plan.params[p]));
  }
  for (std::vector<int>& list : by_offset_) {
    std::sort(list.begin(), list.end(), [&](int a, int b) {
      return plan.params[a].unit_offset < plan.params[b].unit_offset;
    });
  }
}

int ParameterTable::Find(int unit, int64_t first_element, int64_t elements, int* cached) {
  if (*cached >= 0) {
    const WeightRange& range = ranges_[*cached];
    if (range.unit == unit && range.first_element == first_element && range.elements == elements) {
      return *cached;
    }
  }
  const auto [place, added] =
      index_.insert({{unit, first_element, elements}, static_cast<int>(ranges_.size())});
  if (added) ranges_.push_back(Resolve(unit, first_element, elements));
  return *cached = place->second;
}

WeightRange ParameterTable::Resolve(int unit, int64_t first_element, int64_t elements) const {
  WeightRange range;
  range.unit = unit;
  range.first_element = first_element;
  range.elements = elements;
  int64_t at = first_element;
  for (int p : by_offset_[unit]) {
    const Parameter& parameter = plan_.params[p];
    if (parameter.unit_offset < at || at >= first_element + elements) continue;
    const uint8_t tp = TpCode(plan_, parameter);
    if (parameter.unit_offset != at) return range;
    if (at == first_element) {
      range.columns = Columns(parameter);
      range.tp = tp;
    } else if (Columns(parameter) != range.columns || tp != range.tp || tp == kColumns) {
      return range;  // these do not stack to one matrix
    }
    range.rows = Plus(range.rows, parameter.local_shape[0]);
    at = Plus(at, Elements(parameter));
  }
  range.valid = at == first_element + elements && range.rows > 0;
  return range;
}

void DefinitionTable::Clear() {
  places_.assign(std::max<size_t>(places_.size(), 4096), Definition());
  used_ = 0;
}

Definition* DefinitionTable::Find(uint64_t hash) {
  const size_t mask = places_.size() - 1;
  for (size_t i = hash & mask; places_[i].hash != 0; i = (i + 1) & mask) {
    if (places_[i].hash == hash) return &places_[i];
  }
  return nullptr;
}

bool DefinitionTable::Add(const Definition& definition) {
  if (Find(definition.hash) != nullptr) return false;
  if ((used_ + 1) * 2 > places_.size()) Grow();
  const size_t mask = places_.size() - 1;
  size_t i = definition.hash & mask;
  while (places_[i].hash != 0) i = (i + 1) & mask;
  places_[i] = definition;
  ++used_;
  return true;
}

void DefinitionTable::Grow() {
  std::vector<Definition> old(places_.size() * 2);
  old.swap(places_);
  const size_t mask = places_.size() - 1;
  for (const Definition& definition : old) {
    if (definition.hash == 0) continue;
    size_t i = definition.hash & mask;
    while (places_[i].hash != 0) i = (i + 1) & mask;
    places_[i] = definition;
  }
}

}  // namespace planc::verifying
