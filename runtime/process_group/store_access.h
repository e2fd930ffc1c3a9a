#ifndef PLANC_RUNTIME_PROCESS_GROUP_STORE_ACCESS_H_
#define PLANC_RUNTIME_PROCESS_GROUP_STORE_ACCESS_H_

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/launch/launch.h"
#include "runtime/process_group/handshake/authenticated_listener.h"
#include "runtime/process_group/handshake/job_secret.h"
#include "runtime/process_group/store_client.h"
#include "runtime/process_group/store_server.h"

namespace planc {

// This rank's way to the store of its job, which rank 0 serves; with the secret that all ranks
// prove. The secret is the launch's, else rank 0 draws one and leaves it for the others in a file.
class StoreAccess {
 public:
  // Rank 0 serves the store from now on, as long as the object lives. `job`: tells starts apart.
  // `secret_folder`: all ranks share it. `strangers`: of the port, where there is one.
  // Errors: as ListenOn and SecretFile::Create.
  static absl::StatusOr<std::shared_ptr<StoreAccess>> Open(const LaunchConfig& launch,
                                                           const std::string& job,
                                                           const std::string& secret_folder,
                                                           const StrangerLimits& strangers);

  // Another connection. Errors: as StoreClient::Connect.
  absl::StatusOr<std::shared_ptr<StoreClient>> Connect(absl::Duration timeout) const;

  // All ranks know the secret now: its file goes.
  void RemoveSecretFile() { file_.reset(); }

  // The secret. REQUIRES: Connect has succeeded once.
  std::string secret() const { return found_->secret; }

 private:
  struct Found {
    std::mutex mutex;  // connections are made by several threads
    SecretId id{};
    std::string secret;
  };

  StoreAccess() = default;

  absl::Status Serve(const LaunchConfig& launch, const std::string& secret_folder,
                     const StrangerLimits& strangers);

  std::string host_;
  int port_ = 0;
  int channel_ = -1;
  Digest purpose_{};
  std::shared_ptr<Found> found_ = std::make_shared<Found>();
  SecretFinder finder_;  // fills found_
  std::unique_ptr<SecretFile> file_;
  std::unique_ptr<StoreServer> server_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_STORE_ACCESS_H_
