#include "runtime/launch/launch_reader.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace planc {

std::string LaunchReader::Text(const std::string& name) {
  const std::optional<std::string> value = environment_(name);
  if (!value.has_value() && status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat("launch variable ", name, " is not set"));
  }
  return value.value_or("");
}

int64_t LaunchReader::Integer(const std::string& name) {
  const std::string text = Text(name);
  int64_t value = 0;
  if (status_.ok() && (!absl::SimpleAtoi(text, &value) || value < 0)) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat("launch variable ", name, "=", text, " is not a count"));
  }
  return value;
}

}  // namespace planc
