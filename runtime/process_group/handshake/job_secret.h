#ifndef PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_JOB_SECRET_H_
#define PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_JOB_SECRET_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/process_group/handshake/handshake.h"

namespace planc {

// A fresh secret, as text.
absl::StatusOr<std::string> DrawSecret();

// A secret that rank 0 has drawn, in a file that only its user may read, in a folder that all ranks
// share: how ranks of launchers that pass no secret have one in common.
class SecretFile {
 public:
  // Makes the folder where it is missing. Errors: of the operating system; FailedPrecondition where
  // the file system does not keep others from reading the file.
  static absl::StatusOr<std::unique_ptr<SecretFile>> Create(const std::string& folder);
  // Removes the file.
  ~SecretFile();
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  const SecretId& id() const { return id_; }
  const std::string& secret() const { return secret_; }

 private:
  SecretFile(std::string path, const SecretId& id, std::string secret)
      : path_(std::move(path)), id_(id), secret_(std::move(secret)) {}

  const std::string path_;
  const SecretId id_;
  const std::string secret_;
};

// The secret of another process's SecretFile. Errors: Unavailable when there is no such file (yet);
// FailedPrecondition when it is not this user's alone.
absl::StatusOr<std::string> ReadSecretFile(const std::string& folder, const SecretId& id);

// How a rank finds the secret that rank 0 names: its own, else in a file in `folder`.
SecretFinder FindIn(const std::string& secret, const std::string& folder);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_JOB_SECRET_H_
