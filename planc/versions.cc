#include "planc/versions.h"

#include <google/protobuf/stubs/common.h>
#include <hwloc.h>
#include <hwy/highway.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <xxhash.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planc/version.h"
#include "runtime/checkpoint/manifest.h"
#include "schemas/plan_io.h"

namespace planc {
namespace {

std::string Dotted(int64_t major, int64_t minor, int64_t patch) {
  return absl::StrCat(major, ".", minor, ".", patch);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> LinkedVersions() {
  const int protobuf = GOOGLE_PROTOBUF_VERSION;
  const int hwloc = HWLOC_API_VERSION;
  return {
      {"planc", kVersion},
      {"plan format", absl::StrCat(kPlanFormatVersion)},
      {"checkpoint format", absl::StrCat(kCheckpointFormatVersion)},
      {"compiler", absl::StrCat("g++ ", __VERSION__)},
      {"c++", absl::StrCat(__cplusplus)},
      {"abseil", absl::StrCat(ABSL_LTS_RELEASE_VERSION)},
      {"protobuf", Dotted(protobuf / 1000000, protobuf / 1000 % 1000, protobuf % 1000)},
      {"oneDNN", Dotted(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH)},
      {"highway", Dotted(HWY_MAJOR, HWY_MINOR, HWY_PATCH)},
      {"hwloc", Dotted(hwloc >> 16, (hwloc >> 8) & 255, hwloc & 255)},
      {"xxhash", Dotted(XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE)},
      {"json", Dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                      NLOHMANN_JSON_VERSION_PATCH)},
  };
}

}  // namespace planc
