#include "tests/saved_state.h"

#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/saved_tensors.h"
#include "schemas/status.h"

namespace planc {

absl::StatusOr<Tensors> ReadSavedState(const std::string& checkpoint) {
  PLANC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(checkpoint));
  SavedTensors saved(checkpoint, manifest);
  Tensors tensors;
  for (const auto& [name, parameter] : manifest.parameters) {
    const Box whole{std::vector<int64_t>(parameter.shape.size(), 0), parameter.shape};
    for (const StateKind kind : kAllStateKinds) {
      std::vector<float>& values = tensors[absl::StrCat(name, " ", StateKindName(kind))];
      values.resize(static_cast<size_t>(BoxElements(whole)));
      PLANC_RETURN_IF_ERROR(saved.Read(name, kind, whole, values.data()));
    }
  }
  return tensors;
}

std::vector<std::string> DifferingTensors(const Tensors& a, const Tensors& b) {
  std::set<std::string> names;
  for (const Tensors* const tensors : {&a, &b}) {
    for (const auto& [name, values] : *tensors) names.insert(name);
  }
  std::vector<std::string> differing;
  for (const std::string& name : names) {
    const auto of_a = a.find(name);
    const auto of_b = b.find(name);
    const bool same = of_a != a.end() && of_b != b.end() &&
                      of_a->second.size() == of_b->second.size() &&
                      std::memcmp(of_a->second.data(), of_b->second.data(),
                                  of_a->second.size() * sizeof(float)) == 0;
    if (!same) differing.push_back(name);
  }
  return differing;
}

}  // namespace planc
