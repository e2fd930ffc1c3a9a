#include "compiler/spec/scalar.h"

#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace planc {
namespace {

struct Suffix {
  const char* text;
  int64_t factor;
};

constexpr int64_t kKibi = 1024;
constexpr Suffix kCountSuffixes[] = {{"", 1},
                                     {"k", 1000},
                                     {"M", 1000000},
                                     {"G", 1000000000},
                                     {"Ki", kKibi},
                                     {"Mi", kKibi* kKibi},
                                     {"Gi", kKibi* kKibi* kKibi}};
constexpr Suffix kByteSuffixes[] = {{"", 1},
                                    {"B", 1},
                                    {"kB", 1000},
                                    {"KB", 1000},
                                    {"MB", 1000000},
                                    {"GB", 1000000000},
                                    {"TB", 1000000000000},
                                    {"KiB", kKibi},
                                    {"MiB", kKibi* kKibi},
                                    {"GiB", kKibi* kKibi* kKibi},
                                    {"TiB", kKibi* kKibi* kKibi* kKibi}};
constexpr Suffix kSecondSuffixes[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
constexpr Suffix kNoSuffixes[] = {{"", 1}};

template <size_t kSize>
std::optional<int64_t> Lookup(const Suffix (&table)[kSize], const std::string& text) {
  for (const Suffix& suffix : table) {
    if (text == suffix.text) return suffix.factor;
  }
  return std::nullopt;
}

std::optional<int64_t> FactorOf(proto::Unit unit, const std::string& suffix) {
  switch (unit) {
    case proto::UNIT_BYTES:
      return Lookup(kByteSuffixes, suffix);
    case proto::UNIT_SECONDS:
      return Lookup(kSecondSuffixes, suffix);
    case proto::UNIT_COUNT:
    case proto::UNIT_TOKENS:
    case proto::UNIT_SEQUENCES:
    case proto::UNIT_STEPS:
      return Lookup(kCountSuffixes, suffix);
    default:
      return Lookup(kNoSuffixes, suffix);
  }
}

std::string SuffixHelp(proto::Unit unit) {
  switch (unit) {
    case proto::UNIT_BYTES:
      return "sizes take kB MB GB TB KiB MiB GiB TiB, for example 2.5GiB";
    case proto::UNIT_SECONDS:
      return "durations take s m h d, for example 90s";
    case proto::UNIT_NONE:
    case proto::UNIT_PATH:
      return "write digits only";
    default:
      return "counts take k M G Ki Mi Gi, for example 16Ki";
  }
}

ScalarError BadNumber(const std::string& text, proto::Unit unit) {
  // "1e6" is the usual mistake: say the number.
  double real = 0;
  if (absl::SimpleAtod(text, &real) && std::abs(real) < 9e15 && real == std::floor(real)) {
    return {DiagnosticCode::kBadNumber, absl::StrCat("is not written as a whole number: ", text),
            absl::StrFormat("write %.0f", real)};
  }
  return {DiagnosticCode::kBadNumber, absl::StrCat("is not a whole number: ", text),
          SuffixHelp(unit)};
}

}  // namespace

std::optional<ScalarError> ParseWhole(const std::string& text, proto::Unit unit, int64_t& value) {
  size_t at = 0;
  const bool negative = at < text.size() && text[at] == '-';
  if (negative) ++at;
  const ScalarError overflow = {DiagnosticCode::kOverflow,
                                absl::StrCat("is too large for 64 bits: ", text), ""};
  __int128 digits = 0;
  __int128 divisor = 1;
  bool any_digit = false;
  bool fraction = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (!absl::ascii_isdigit(static_cast<unsigned char>(text[at]))) break;
    any_digit = true;
    digits = digits * 10 + (text[at] - '0');
    if (fraction) divisor *= 10;
    // With the largest factor (2^40) the product below stays inside 128 bits.
    if (digits > (static_cast<__int128>(1) << 80) || divisor > (static_cast<__int128>(1) << 80)) {
      return overflow;
    }
  }
  const std::optional<int64_t> factor = FactorOf(unit, text.substr(at));
  if (!any_digit || !factor.has_value()) return BadNumber(text, unit);
  const __int128 scaled = digits * *factor;
  if (scaled % divisor != 0) return BadNumber(text, unit);
  const __int128 result = scaled / divisor;
  if (result > std::numeric_limits<int64_t>::max()) return overflow;
  value = static_cast<int64_t>(negative ? -result : result);
  return std::nullopt;
}

std::optional<ScalarError> ParseReal(const std::string& text, double& value) {
  const bool plain = text.find_first_not_of("+-0123456789.eE") == std::string::npos;
  double result = 0;
  if (!plain || !absl::SimpleAtod(text, &result)) {
    return ScalarError{DiagnosticCode::kBadNumber, absl::StrCat("is not a number: ", text),
                       "write for example 0.1 or 3e-4"};
  }
  if (!std::isfinite(result)) {
    return ScalarError{DiagnosticCode::kOverflow, absl::StrCat("is too large: ", text), ""};
  }
  value = result;
  return std::nullopt;
}

std::string FormatWhole(int64_t value, proto::Unit unit) {
  if (unit != proto::UNIT_BYTES || value <= 0) return absl::StrCat(value);
  const Suffix* best = nullptr;
  for (const Suffix& suffix : kByteSuffixes) {
    const bool better = best == nullptr || suffix.factor > best->factor;
    if (suffix.factor > 1 && value % suffix.factor == 0 && better) best = &suffix;
  }
  if (best == nullptr) return absl::StrCat(value);
  return absl::StrCat(value / best->factor, best->text);
}

std::string FormatReal(double value) {
  const auto whole = static_cast<int64_t>(std::abs(value) < 1e15 ? value : 0.5);
  if (static_cast<double>(whole) == value) return absl::StrCat(whole);
  for (int digits = 1; digits < 17; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double read_back = 0;
    if (absl::SimpleAtod(text, &read_back) && read_back == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

}  // namespace planc
