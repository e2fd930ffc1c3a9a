#include "runtime/checkpoint/run_record.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/checkpoint/data_json.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/job_json.h"
#include "runtime/checkpoint/json_fields.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr char kFormat[] = "planc-run";
constexpr int kVersion = 1;

constexpr std::array kStates = {
#define PLANC_RUN_STATE_PAIR(name, text) std::pair<RunState, const char*>(RunState::name, text),
    PLANC_RUN_STATES(PLANC_RUN_STATE_PAIR)
#undef PLANC_RUN_STATE_PAIR
};

bool ReadState(const Json& json, RunState* state) {
  std::string name;
  if (!ReadField(json, "state", &name)) return false;
  for (const auto& [known, text] : kStates) {
    if (name != text) continue;
    *state = known;
    return true;
  }
  return false;
}

bool IsId(const std::string& id) {
  return id.size() == 16 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The numbers of a fault, by name. X(name, field).
#define PLANC_FAULT_FIELDS(X)           \
  X("step", step)                       \
  X("code", code)                       \
  X("signal", signal)                   \
  X("checkpoint_step", checkpoint_step) \
  X("times", times)

std::optional<RunFault> ReadFault(const Json& json) {
  const Json* const entry = FindField(json, "fault");
  if (entry == nullptr || !entry->is_object()) return std::nullopt;
  RunFault fault;
  bool whole = true;
#define PLANC_READ_FAULT(name, field) whole = whole && ReadField(*entry, name, &fault.field);
  PLANC_FAULT_FIELDS(PLANC_READ_FAULT)
#undef PLANC_READ_FAULT
  const Json* const memory = FindField(*entry, "out_of_memory");
  fault.out_of_memory = memory != nullptr && memory->is_boolean() && memory->get<bool>();
  return whole ? std::optional(fault) : std::nullopt;
}

nlohmann::ordered_json FaultJson(const RunFault& fault) {
  nlohmann::ordered_json json;
#define PLANC_WRITE_FAULT(name, field) json[name] = fault.field;
  PLANC_FAULT_FIELDS(PLANC_WRITE_FAULT)
#undef PLANC_WRITE_FAULT
  json["out_of_memory"] = fault.out_of_memory;
  return json;
}

// Records of before have none of these fields.
bool ParseChain(const Json& json, RunRecord* record) {
  if (FindField(json, "initial_weights") != nullptr &&
      !ReadField(json, "initial_weights", &record->initial_weights)) {
    return false;
  }
  if (const Json* const ways = FindField(json, "ways_back")) {
    if (!ways->is_array()) return false;
    for (const Json& way : *ways) {
      WayBack& read = record->ways_back.emplace_back();
      if (!ReadField(way, "branch", &read.point.branch) ||
          !ReadField(way, "step", &read.point.step) || !ReadField(way, "path", &read.path)) {
        return false;
      }
    }
  }
  if (const Json* const data = FindField(json, "data")) {
    if (!ReadIdentity(*data, &record->data.emplace())) return false;
  }
  const Json* const tip = FindField(json, "tip");
  if (tip == nullptr || tip->is_null()) return true;
  record->tip.emplace();
  return ReadField(*tip, "run", &record->tip->run) && ReadField(*tip, "step", &record->tip->step) &&
         ReadHexField(*tip, "manifest_xxh3_64", &record->tip->checksum);
}

bool Parse(const Json& json, RunRecord* record) {
  std::string format;
  const Json* const job = FindField(json, "job");
  const bool whole =
      ReadField(json, "format", &format) && format == kFormat &&
      ReadField(json, "id", &record->id) && IsId(record->id) && ReadState(json, &record->state) &&
      job != nullptr && ReadJobJson(*job, &record->job) &&
      ReadField(json, "plan_hash", &record->plan_hash) &&
      ReadField(json, "planc", &record->planc) && ReadField(json, "began", &record->began) &&
      ReadField(json, "checkpoint_directory", &record->checkpoint_directory) &&
      ReadField(json, "initial", &record->initial) && ReadField(json, "launch", &record->launch) &&
      ReadField(json, "restart", &record->restart) && ReadField(json, "starts", &record->starts) &&
      ReadField(json, "adopts_unidentified", &record->adopts_unidentified) &&
      ReadField(json, "last_step", &record->last_step);
  if (!whole || !ParseChain(json, record)) return false;
  int64_t code = 0;
  if (ReadField(json, "exit_code", &code)) record->exit_code = code;
  record->fault = ReadFault(json);
  return true;
}

}  // namespace

const char* RunStateName(RunState state) {
  for (const auto& [known, text] : kStates) {
    if (known == state) return text;
  }
  return "?";
}

CheckpointSelection SelectionOf(const RunRecord& record) {
  CheckpointSelection own = {record.id, record.adopts_unidentified, {}};
  for (const WayBack& way : record.ways_back) own.points.push_back(way.point);
  return own;
}

std::string NewRunId() {
  std::random_device random;
  return HexText((static_cast<uint64_t>(random()) << 32) | random());
}

std::string UtcNow() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
}

absl::StatusOr<RunRecord> ReadRunRecord(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kRunRecordName);
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no run here"));
  }
  std::ifstream file(path, std::ios::binary);
  if (type != std::filesystem::file_type::regular || !file) {
    return absl::DataLossError(absl::StrCat(path, ": cannot be read"));
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  RunRecord record;
  if (!Parse(Json::parse(text, nullptr, /*allow_exceptions=*/false), &record)) {
    return absl::DataLossError(absl::StrCat(path, ": not the record of a run"));
  }
  return record;
}

absl::Status WriteRunRecord(const std::string& directory, const RunRecord& record) {
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["id"] = record.id;
  json["job_name"] = record.job.job();
  json["state"] = RunStateName(record.state);
  json["last_step"] = record.last_step;
  json["exit_code"] = nullptr;
  if (record.exit_code.has_value()) json["exit_code"] = *record.exit_code;
  if (record.fault.has_value()) json["fault"] = FaultJson(*record.fault);
  json["began"] = record.began;
  json["starts"] = record.starts;
  json["checkpoint_directory"] = record.checkpoint_directory;
  json["initial"] = record.initial;
  json["initial_weights"] = record.initial_weights;
  json["tip"] = nullptr;
  if (record.tip.has_value()) {
    json["tip"] = {{"run", record.tip->run},
                   {"step", record.tip->step},
                   {"manifest_xxh3_64", HexText(record.tip->checksum)}};
  }
  json["ways_back"] = nlohmann::ordered_json::array();
  for (const WayBack& way : record.ways_back) {
    json["ways_back"].push_back(
        {{"branch", way.point.branch}, {"step", way.point.step}, {"path", way.path}});
  }
  json["adopts_unidentified"] = record.adopts_unidentified;
  if (record.data.has_value()) AddIdentity(*record.data, &json["data"]);
  json["plan_hash"] = record.plan_hash;
  json["planc"] = record.planc;
  json["launch"] = record.launch;
  json["restart"] = record.restart;
  PLANC_ASSIGN_OR_RETURN(json["job"], JobJson(record.job));
  const std::string text = absl::StrCat(
      json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), "\n");
  const std::string path = absl::StrCat(directory, "/", kRunRecordName);
  const std::string draft = path + ".tmp";
  PLANC_RETURN_IF_ERROR(WriteDurably(draft, {{text.data(), static_cast<int64_t>(text.size())}}));
  PLANC_RETURN_IF_ERROR(RenamePath(draft, path));
  return SyncDirectory(directory);
}

}  // namespace planc
