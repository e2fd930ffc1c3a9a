#include "runtime/process_group/handshake/job_secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/process_group/socket.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = ".planc-secret-";
constexpr size_t kSecretBytes = 32;
// A file that a killed rank 0 has left behind is older than any start takes.
constexpr std::chrono::hours kLeftBehind(24);

std::string PathOf(const std::string& folder, const SecretId& id) {
  return absl::StrCat(folder, "/", kPrefix,
                      absl::BytesToHexString(std::string(id.begin(), id.end())));
}

absl::Status Setup(absl::Status status) {
  return WithFault(std::move(status), Fault::kEnvironment);
}

// What to do where files do not serve.
constexpr char kOtherWay[] =
    ": set PLANC_SECRET to the same long random text in the environment of all ranks";

absl::Status ReadableByOthers(const std::string& path) {
  return Setup(absl::FailedPreconditionError(
      absl::StrCat(path, ": the file system does not keep it to this user alone", kOtherWay)));
}

bool IsPrivate(int descriptor) {
  struct stat file {};
  return fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
         (file.st_mode & 077) == 0;
}

void RemoveLeftBehind(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!absl::StartsWith(at->path().filename().string(), kPrefix)) continue;
    std::error_code unknown;
    const fs::file_time_type written = fs::last_write_time(at->path(), unknown);
    if (unknown || fs::file_time_type::clock::now() - written < kLeftBehind) continue;
    fs::remove(at->path(), unknown);
  }
}

absl::Status WriteSecret(const std::string& path, const std::string& secret) {
  const Socket file(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return SystemError(absl::StrCat(path, ": cannot create"), errno);
  if (!IsPrivate(file.get())) return ReadableByOthers(path);
  const ssize_t written = write(file.get(), secret.data(), secret.size());
  if (written != static_cast<ssize_t>(secret.size()) || fsync(file.get()) != 0) {
    return SystemError(absl::StrCat(path, ": cannot write"), written < 0 ? errno : ENOSPC);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> DrawSecret() {
  PLANC_ASSIGN_OR_RETURN(const std::string random, RandomBytes(kSecretBytes));
  return absl::BytesToHexString(random);
}

absl::StatusOr<std::unique_ptr<SecretFile>> SecretFile::Create(const std::string& folder) {
  PLANC_ASSIGN_OR_RETURN(std::string secret, DrawSecret());
  SecretId id;
  PLANC_ASSIGN_OR_RETURN(const std::string random, RandomBytes(id.size()));
  std::copy(random.begin(), random.end(), id.begin());
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return SystemError(absl::StrCat(folder, ": cannot create"), error.value());
  RemoveLeftBehind(folder);
  const std::string path = PathOf(folder, id);
  const absl::Status written = WriteSecret(path, secret);
  if (!written.ok()) {
    unlink(path.c_str());
    return written;
  }
  return std::unique_ptr<SecretFile>(new SecretFile(path, id, std::move(secret)));
}

SecretFile::~SecretFile() { unlink(path_.c_str()); }

absl::StatusOr<std::string> ReadSecretFile(const std::string& folder, const SecretId& id) {
  const std::string path = PathOf(folder, id);
  // A pipe must not block.
  const Socket file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) {
    return Setup(absl::UnavailableError(absl::StrCat(
        path, ": ", std::strerror(errno),
        "; rank 0 leaves the secret of the job there, so "
        "run.directory must be on storage that all ranks share, or somebody else listens",
        kOtherWay)));
  }
  if (!IsPrivate(file.get())) return ReadableByOthers(path);
  std::string secret(2 * kSecretBytes, '\0');
  if (read(file.get(), secret.data(), secret.size()) != static_cast<ssize_t>(secret.size())) {
    return Setup(absl::UnavailableError(absl::StrCat(path, ": it is cut off")));
  }
  return secret;
}

SecretFinder FindIn(const std::string& secret, const std::string& folder) {
  return [secret, folder](const SecretId& id) -> absl::StatusOr<std::string> {
    if (id == SecretId{} && !secret.empty()) return secret;
    if (id == SecretId{}) {
      return Setup(absl::PermissionDeniedError(
          "rank 0 has a PLANC_SECRET and this rank has none: export it to all of them"));
    }
    if (!secret.empty()) {
      return Setup(absl::PermissionDeniedError(
          "this rank has a PLANC_SECRET and who listens there has none: export it to all ranks"));
    }
    return ReadSecretFile(folder, id);
  };
}

}  // namespace planc
