#ifndef PLANC_RUNTIME_PROCESS_GROUP_TEST_STORE_H_
#define PLANC_RUNTIME_PROCESS_GROUP_TEST_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/process_group/handshake/handshake.h"
#include "runtime/process_group/socket.h"
#include "runtime/process_group/store_client.h"
#include "runtime/process_group/store_server.h"

namespace planc {

// Stores over TCP on this machine, for tests: one secret and one job.
inline constexpr char kTestSecret[] = "the secret of tests";
SecretFinder TestSecret();
Digest TestPurpose();

absl::StatusOr<std::unique_ptr<StoreServer>> ServeTestStore(Socket listener,
                                                            const StoreLimits& limits = {});
absl::StatusOr<std::unique_ptr<StoreClient>> ConnectTestStore(int port);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_TEST_STORE_H_
