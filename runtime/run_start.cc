#include "runtime/run_start.h"

#include <type_traits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "runtime/launch/run_lock.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kTag[] = "run";

template <typename T>
bool Read(const Json& json, const char* name, T* value) {
  const auto field = json.find(name);
  if (field == json.end()) return false;
  if constexpr (std::is_same_v<T, bool>) {
    if (!field->is_boolean()) return false;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!field->is_string()) return false;
  } else {
    if (!field->is_array()) return false;
    for (const Json& element : *field) {
      if (!element.is_string()) return false;
    }
  }
  *value = field->template get<T>();
  return true;
}

// Each "branch:step".
bool ReadPoints(const std::vector<std::string>& texts, std::vector<BranchPoint>* points) {
  for (const std::string& text : texts) {
    const std::vector<std::string> numbers = absl::StrSplit(text, ':');
    BranchPoint& point = points->emplace_back();
    if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &point.branch) ||
        !absl::SimpleAtoi(numbers[1], &point.step)) {
      return false;
    }
  }
  return true;
}

}  // namespace

CheckpointSelection SelectionOf(const RunStart& start) {
  return {start.id, start.adopts_unidentified, start.points};
}

std::string NothingToDoText(int64_t asked, int64_t done) {
  return absl::StrCat("nothing to do: ", Counted(asked, "step"), " are asked for, and ", done,
                      " are done");
}

std::string RunStartText(const RunStart& start) {
  Json json;
  json["id"] = start.id;
  json["plan_hash"] = start.plan_hash;
  json["data"] = start.data;
  json["resume"] = start.resume;
  json["adopts_unidentified"] = start.adopts_unidentified;
  json["points"] = Json::array();
  for (const BranchPoint& point : start.points) {
    json["points"].push_back(absl::StrCat(point.branch, ":", point.step));
  }
  json["initial"] = start.initial;
  json["complete"] = start.complete;
  json["locks"] = start.locks;
  json["notices"] = start.notices;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<RunStart> ParseRunStart(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  RunStart start;
  std::vector<std::string> points;
  if (!json.is_object() || !Read(json, "id", &start.id) ||
      !Read(json, "plan_hash", &start.plan_hash) || !Read(json, "data", &start.data) ||
      !Read(json, "resume", &start.resume) ||
      !Read(json, "adopts_unidentified", &start.adopts_unidentified) ||
      !Read(json, "points", &points) || !ReadPoints(points, &start.points) ||
      !Read(json, "initial", &start.initial) || !Read(json, "complete", &start.complete) ||
      !Read(json, "locks", &start.locks) || !Read(json, "notices", &start.notices)) {
    return absl::InternalError("what was handed over about the run cannot be read");
  }
  return start;
}

absl::StatusOr<RunStart> AgreeOnRun(const std::function<absl::StatusOr<RunStart>()>& begin,
                                    Control* control, Agreement& agreement) {
  absl::StatusOr<RunStart> mine = RunStart();
  if (control->rank() == 0 && begin != nullptr) mine = begin();
  PLANC_RETURN_IF_ERROR(agreement.AllOk(mine.status()));
  PLANC_ASSIGN_OR_RETURN(const std::string text,
                         control->Broadcast(kTag, control->rank() == 0 ? RunStartText(*mine) : ""));
  return ParseRunStart(text);
}

absl::Status CheckStillOwned(const RunStart& start) {
  for (const std::string& lock : start.locks) PLANC_RETURN_IF_ERROR(CheckStillOwned(lock));
  return absl::OkStatus();
}

}  // namespace planc
