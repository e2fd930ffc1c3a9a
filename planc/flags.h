#ifndef PLANC_PLANC_FLAGS_H_
#define PLANC_PLANC_FLAGS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planc {

// The arguments of one command, split.
struct Flags {
  std::vector<std::string> positional;
  std::map<std::string, std::vector<std::string>> values;  // "--set" -> all its values, in order

  bool Has(const std::string& name) const { return values.count(name) != 0; }
  // The last value of a flag, or `otherwise`.
  std::string Get(const std::string& name, const std::string& otherwise) const;
  // All values of a flag.
  std::vector<std::string> All(const std::string& name) const;
  // All values of a flag, each split at commas. `otherwise` when the flag was not given.
  std::vector<std::string> List(const std::string& name,
                                const std::vector<std::string>& otherwise) const;
};

// Splits `args`. A flag of `with_value` is `--name=value` or `--name value`; one of `switches` is
// `--name`. Flags may stand anywhere; after `--` everything is positional.
// Errors: InvalidArgument for a flag that is not listed (with the nearest one), for a missing value
// and for a value given to a switch.
absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& args,
                                 const std::vector<std::string>& with_value,
                                 const std::vector<std::string>& switches);

// OK when every one of `chosen` is in `supported`. Errors: InvalidArgument that names the flag, the
// nearest supported value and all of them.
absl::Status CheckChoices(const std::string& flag, const std::vector<std::string>& chosen,
                          const std::vector<std::string>& supported);

}  // namespace planc

#endif  // PLANC_PLANC_FLAGS_H_
