#include "runtime/metrics/event_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Protocol buffer wire types.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
constexpr uint32_t kEventWallTime = 1;
constexpr uint32_t kEventStep = 2;
constexpr uint32_t kEventFileVersion = 3;
constexpr uint32_t kEventSummary = 5;
constexpr uint32_t kEventSessionLog = 7;
constexpr uint32_t kSessionLogStatus = 1;
constexpr uint64_t kSessionLogStart = 1;  // of SessionLog.SessionStatus
constexpr uint32_t kSummaryValue = 1;
constexpr uint32_t kValueTag = 1;
constexpr uint32_t kValueSimpleValue = 2;

constexpr char kNamePrefix[] = "events.out.tfevents.";
constexpr char kNameSuffix[] = ".planc";

constexpr char kFileVersion[] = "brain.Event:2";

constexpr uint32_t kReflectedPolynomial = 0x82F63B78u;

constexpr std::array<uint32_t, 256> Crc32cTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) * kReflectedPolynomial);
    table[i] = crc;
  }
  return table;
}

template <typename T>
std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
  return out;
}

std::string Tag(uint32_t field, WireType type) { return Varint((field << 3) | type); }

std::string BytesField(uint32_t field, const std::string& bytes) {
  return absl::StrCat(Tag(field, kBytes), Varint(bytes.size()), bytes);
}

std::string EventHead(double wall_time, int64_t step) {
  return absl::StrCat(Tag(kEventWallTime, kFixed64), Raw(wall_time), Tag(kEventStep, kVarint),
                      Varint(static_cast<uint64_t>(step)));
}

// The seconds in the name of an event file of planc's.
std::optional<int64_t> SecondsOfName(const std::string& name) {
  const std::string prefix = kNamePrefix;
  const std::string suffix = kNameSuffix;
  if (name.size() <= prefix.size() + suffix.size() || name.rfind(prefix, 0) != 0 ||
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) {
    return std::nullopt;
  }
  int64_t seconds = 0;
  const size_t digits = name.size() - prefix.size() - suffix.size();
  if (!absl::SimpleAtoi(name.substr(prefix.size(), digits), &seconds)) return std::nullopt;
  return seconds;
}

int64_t SecondsForNextFile(const std::string& directory, double wall_time) {
  int64_t seconds = static_cast<int64_t>(wall_time);
  std::error_code error;
  std::filesystem::directory_iterator at(directory, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::optional<int64_t> other = SecondsOfName(at->path().filename().string());
    if (other.has_value()) seconds = std::max(seconds, *other + 1);
  }
  return seconds;
}

}  // namespace

bool IsEventFileName(const std::string& name) { return SecondsOfName(name).has_value(); }

uint32_t Crc32c(const std::string& bytes) {
  static constexpr std::array<uint32_t, 256> kTable = Crc32cTable();
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

uint32_t MaskedCrc32c(const std::string& bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

std::string TfRecord(const std::string& data) {
  const std::string length = Raw(static_cast<uint64_t>(data.size()));
  return absl::StrCat(length, Raw(MaskedCrc32c(length)), data, Raw(MaskedCrc32c(data)));
}

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Create(const std::string& directory,
                                                             double wall_time, int64_t first_step) {
  std::unique_ptr<AppendFile> file;
  for (int64_t seconds = SecondsForNextFile(directory, wall_time); file == nullptr; ++seconds) {
    absl::StatusOr<std::unique_ptr<AppendFile>> created = AppendFile::Create(
        absl::StrFormat("%s/%s%010d%s", directory, kNamePrefix, seconds, kNameSuffix));
    if (!created.ok() && !absl::IsAlreadyExists(created.status())) return created.status();
    if (created.ok()) file = *std::move(created);
  }
  const std::string version =
      absl::StrCat(EventHead(wall_time, 0), BytesField(kEventFileVersion, kFileVersion));
  PLANC_RETURN_IF_ERROR(file->Append(TfRecord(version)));
  const std::string start = absl::StrCat(Tag(kSessionLogStatus, kVarint), Varint(kSessionLogStart));
  PLANC_RETURN_IF_ERROR(file->Append(TfRecord(
      absl::StrCat(EventHead(wall_time, first_step), BytesField(kEventSessionLog, start)))));
  return std::unique_ptr<EventFile>(new EventFile(std::move(file)));
}

absl::Status EventFile::WriteScalars(int64_t step, double wall_time,
                                     const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    const std::string entry =
        absl::StrCat(BytesField(kValueTag, tag), Tag(kValueSimpleValue, kFixed32),
                     Raw(static_cast<float>(value)));
    summary += BytesField(kSummaryValue, entry);
  }
  return file_->AppendOrKeep(
      TfRecord(absl::StrCat(EventHead(wall_time, step), BytesField(kEventSummary, summary))));
}

}  // namespace planc
