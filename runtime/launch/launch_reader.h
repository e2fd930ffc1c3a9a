#ifndef PLANC_RUNTIME_LAUNCH_LAUNCH_READER_H_
#define PLANC_RUNTIME_LAUNCH_LAUNCH_READER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/launch/launch.h"

namespace planc {

// Reads launch variables and remembers the first error.
class LaunchReader {
 public:
  explicit LaunchReader(const Environment& environment) : environment_(environment) {}

  bool Has(const std::string& name) const { return environment_(name).has_value(); }
  // An error when it is not set.
  std::string Text(const std::string& name);
  // An error when it is not a whole number >= 0.
  int64_t Integer(const std::string& name);
  int64_t IntegerOr(const std::string& name, int64_t otherwise) {
    return Has(name) ? Integer(name) : otherwise;
  }

  const absl::Status& status() const { return status_; }

 private:
  const Environment& environment_;
  absl::Status status_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_LAUNCH_READER_H_
