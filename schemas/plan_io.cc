// The bytes of a plan file: header line, then the body.
#include "schemas/plan_io.h"
#include "schemas/counted.h"

#include <xxhash.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr size_t kHashDigits = 32;
constexpr size_t kMaximumHeader = 96;

std::string HashText(const std::string& body) {
  const XXH128_hash_t hash = XXH3_128bits(body.data(), body.size());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

absl::StatusOr<std::string> BodyOf(const proto::Plan& image) {
  if (image.ByteSizeLong() > static_cast<size_t>(kMaximumPlanBytes)) {
    return absl::InvalidArgumentError(absl::StrCat("plan: ", Counted(image.ByteSizeLong(), "byte"),
                                                   "; a plan file holds at most ",
                                                   kMaximumPlanBytes));
  }
  std::string body;
  {
    google::protobuf::io::StringOutputStream sink(&body);
    google::protobuf::io::CodedOutputStream out(&sink);
    out.SetSerializationDeterministic(true);
    image.SerializeWithCachedSizes(&out);
    if (out.HadError()) return absl::InternalError("plan: cannot be serialized");
  }
  return body;
}

// The number that `text` starts with, up to the next blank; nullopt unless it is written as planc
// writes it, without sign or leading zeros.
std::optional<int64_t> CanonicalNumber(const std::string& text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || absl::StrCat(value) != text) return std::nullopt;
  return value;
}

struct Header {
  std::string hash;
  size_t body_begin = 0;
};

absl::StatusOr<Header> ParseHeader(const std::string& bytes) {
  const std::string magic = kPlanMagic;
  if (!LooksLikePlan(bytes)) {
    return absl::InvalidArgumentError("not a plan file: it does not start with `planc-plan`");
  }
  const size_t end = bytes.find('\n');
  if (end == std::string::npos || end > kMaximumHeader) {
    return absl::InvalidArgumentError("plan file: the header line has no end");
  }
  const std::string line = bytes.substr(magic.size(), end - magic.size());
  const size_t first = line.find(' ');
  const std::optional<int64_t> version = CanonicalNumber(line.substr(0, first));
  if (first == std::string::npos || !version) {
    return absl::InvalidArgumentError("plan file: the header line has no version");
  }
  if (*version != kPlanFormatVersion) {
    return absl::InvalidArgumentError(absl::StrCat("plan file: format version ", *version,
                                                   "; this planc reads version ",
                                                   kPlanFormatVersion, " (compile the job again)"));
  }
  const size_t second = line.find(' ', first + 1);
  const std::string hash = line.substr(first + 1, second - first - 1);
  if (second == std::string::npos || hash.size() != kHashDigits) {
    return absl::InvalidArgumentError("plan file: the header line has no hash");
  }
  const std::optional<int64_t> length = CanonicalNumber(line.substr(second + 1));
  const size_t body = bytes.size() - end - 1;
  if (!length || static_cast<size_t>(*length) != body || *length > kMaximumPlanBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan file: the header says ", Counted(line.substr(second + 1), "byte"),
                     ", but ", body, " follow (the file was cut or changed)"));
  }
  return Header{hash, end + 1};
}

}  // namespace

bool LooksLikePlan(const std::string& bytes) { return bytes.rfind(kPlanMagic, 0) == 0; }

std::string SealPlanBody(const std::string& body) {
  return absl::StrCat(kPlanMagic, kPlanFormatVersion, " ", HashText(body), " ", body.size(), "\n",
                      body);
}

absl::StatusOr<std::string> SerializePlan(const Plan& plan) {
  const proto::Plan image = PlanToProto(plan);
  // What cannot be read is not written.
  PLANC_RETURN_IF_ERROR(PlanFromProto(image).status());
  PLANC_ASSIGN_OR_RETURN(const std::string body, BodyOf(image));
  return SealPlanBody(body);
}

absl::StatusOr<std::string> PlanHash(const Plan& plan) {
  PLANC_ASSIGN_OR_RETURN(const std::string body, BodyOf(PlanToProto(plan)));
  return HashText(body);
}

absl::StatusOr<Plan> ParsePlan(const std::string& bytes) {
  PLANC_ASSIGN_OR_RETURN(const Header header, ParseHeader(bytes));
  const std::string body = bytes.substr(header.body_begin);
  const std::string hash = HashText(body);
  if (hash != header.hash) {
    return absl::InvalidArgumentError(absl::StrCat("plan file: the body's hash is ", hash,
                                                   ", the header says ", header.hash,
                                                   " (the file was changed or damaged)"));
  }
  proto::Plan image;
  if (!image.ParseFromString(body)) {
    return absl::InvalidArgumentError("plan file: the body is not a plan");
  }
  PLANC_ASSIGN_OR_RETURN(Plan plan, PlanFromProto(image));
  // One plan has one file: unknown or doubled fields are refused, so the hash names the plan.
  PLANC_ASSIGN_OR_RETURN(const std::string again, BodyOf(PlanToProto(plan)));
  if (again != body) {
    return absl::InvalidArgumentError("plan file: the body is not in canonical form");
  }
  return plan;
}

}  // namespace planc
