// Keys that are written in a job in which they change nothing.
#include "absl/strings/str_cat.h"
#include "compiler/spec/rule.h"

namespace planc {

const std::vector<Rule>& EffectRules() {
  static const auto* const kRules = new std::vector<Rule>{
#define PLANC_EFFECT(key, effective, when, ...)                                               \
  {DiagnosticCode::kNoEffect,                                                                 \
   {key, __VA_ARGS__},                                                                        \
   [](const Facts& facts) -> std::optional<Finding> {                                         \
     const proto::Job& job = facts.job;                                                       \
     if (!facts.IsWritten(key) || (effective)) return std::nullopt;                           \
     return Finding{absl::StrCat(key, " changes nothing here: it has an effect only ", when), \
                    "remove the line"};                                                       \
   }},
#include "compiler/spec/effects.def"
#undef PLANC_EFFECT
  };
  return *kRules;
}

}  // namespace planc
