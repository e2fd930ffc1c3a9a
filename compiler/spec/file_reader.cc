#include "compiler/spec/file_reader.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "compiler/spec/yaml_reader.h"

namespace planc {

absl::StatusOr<std::string> ReadRegularFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return absl::NotFoundError("there is no such file");
  }
  if (error) return absl::PermissionDeniedError(error.message());
  if (std::filesystem::is_directory(status)) {
    return absl::FailedPreconditionError("it is a folder");
  }
  if (!std::filesystem::is_regular_file(status)) {
    return absl::FailedPreconditionError("it is not a regular file");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::PermissionDeniedError("it cannot be opened");
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return absl::DataLossError("reading it failed");
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

}  // namespace planc
