#include "runtime/step/faults.h"

#include "absl/strings/str_cat.h"

namespace planc {

absl::Status NonFiniteError(const std::string& what, double value) {
  return absl::OutOfRangeError(absl::StrCat(what, " is ", value));
}

}  // namespace planc
