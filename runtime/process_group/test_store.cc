#include "runtime/process_group/test_store.h"

#include <utility>

#include "absl/time/time.h"
#include "runtime/process_group/handshake/authenticated_listener.h"
#include "runtime/process_group/handshake/job_secret.h"
#include "schemas/status.h"

namespace planc {

SecretFinder TestSecret() { return FindIn(kTestSecret, ""); }

Digest TestPurpose() { return StorePurpose("test"); }

absl::StatusOr<std::unique_ptr<StoreServer>> ServeTestStore(Socket listener,
                                                            const StoreLimits& limits) {
  PLANC_ASSIGN_OR_RETURN(auto connections, AuthenticatedListener::Create(std::move(listener),
                                                                         kTestSecret, SecretId{}));
  return StoreServer::Start(std::move(connections), TestPurpose(), limits);
}

absl::StatusOr<std::unique_ptr<StoreClient>> ConnectTestStore(int port) {
  return StoreClient::Connect("127.0.0.1", port, TestSecret(), TestPurpose(), absl::Seconds(60));
}

}  // namespace planc
