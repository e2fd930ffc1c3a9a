#ifndef PLANC_PLANC_SHOW_SHOW_H_
#define PLANC_PLANC_SHOW_SHOW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "planc/schedule.h"
#include "schemas/plan.h"
#include "schemas/verify.h"

namespace planc {

// What the sections of `planc plan` are made from.
struct ShowInput {
  const Plan& plan;
  std::string hash;  // PlanHash
  Certificate certificate;
  absl::StatusOr<StepPrediction> schedule;  // PredictStep
  int64_t rank = -1;                        // --rank, -1 when not given
};

// One section of the output, for people and for programs.
struct ShowSection {
  std::string name;
  std::string text;  // lines of at most kColumns, each ends with '\n'
  nlohmann::ordered_json data;
};

// The sections. X(function, text of --show).
#define PLANC_SECTIONS(X) \
  X(Summary, "summary")   \
  X(Mesh, "mesh")         \
  X(Groups, "groups")     \
  X(Ranks, "ranks")       \
  X(Memory, "memory")     \
  X(Comm, "comm")         \
  X(Timeline, "timeline") \
  X(Program, "program")

#define PLANC_DECLARE_SECTION(function, text) ShowSection Show##function(const ShowInput& input);
PLANC_SECTIONS(PLANC_DECLARE_SECTION)
#undef PLANC_DECLARE_SECTION

// Names of all sections, in order.
std::vector<std::string> SectionNames();
// REQUIRES: `name` is one of SectionNames().
ShowSection MakeSection(const std::string& name, const ShowInput& input);

// What no plan accounts for, one line each; printed at the end of every plan.
std::vector<std::string> NotModelled(const Plan& plan);

// The schedule as a Chrome trace (chrome://tracing, ui.perfetto.dev): a process for each stage, a
// thread for each stream.
nlohmann::ordered_json TraceOf(const Plan& plan, const StepPrediction& schedule);

// `json` as text; text that is not UTF-8 is replaced instead of refused.
std::string JsonText(const nlohmann::ordered_json& json, int indent);

// Rank `rank` as "node 3 device 5".
std::string PlaceOfRank(const Plan& plan, int64_t rank);
// Members as node:device ranges, "0:0-3 1:0-3"; at most `most` ranges, then " ... and N more
// ranks".
std::string MembersText(const Plan& plan, const std::vector<int64_t>& ranks, size_t most);
// The class that the rank runs. REQUIRES: 0 <= rank < world and one class per stage.
const RankClass& ClassOfRank(const Plan& plan, int64_t rank);

}  // namespace planc

#endif  // PLANC_PLANC_SHOW_SHOW_H_
