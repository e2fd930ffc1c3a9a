#include "runtime/checkpoint/job_json.h"

#include <google/protobuf/util/json_util.h>

#include <string>

#include "absl/status/status.h"

namespace planc {

absl::StatusOr<Json> JobJson(const proto::Job& job) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(job, &text, options);
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!status.ok() || !json.is_object()) return absl::InternalError("cannot write the job as JSON");
  return json;
}

bool ReadJobJson(const Json& json, proto::Job* job) {
  return google::protobuf::util::JsonStringToMessage(json.dump(), job).ok();
}

}  // namespace planc
