#ifndef PLANC_COMPILER_SPEC_SCALAR_H_
#define PLANC_COMPILER_SPEC_SCALAR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/diagnostics/diagnostic.h"
#include "schemas/options.pb.h"

namespace planc {

// Why the text of a number was refused.
struct ScalarError {
  DiagnosticCode code;
  std::string message;  // follows the name of the key: "is not a whole number: 1.5"
  std::string fix;      // may be empty
};

// Reads a whole number with the suffixes of `unit`; exact, without rounding. On success sets
// `value` and returns nullopt.
std::optional<ScalarError> ParseWhole(const std::string& text, proto::Unit unit, int64_t& value);

// Reads a finite decimal number such as 3e-4.
std::optional<ScalarError> ParseReal(const std::string& text, double& value);

// The shortest usual spelling that ParseWhole reads back: 16384 bytes are "16KiB"; plain digits for
// all other units.
std::string FormatWhole(int64_t value, proto::Unit unit);

// The shortest decimal text that reads back as `value`.
std::string FormatReal(double value);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_SCALAR_H_
