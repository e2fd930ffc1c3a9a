#ifndef PLANC_RUNTIME_PROCESS_GROUP_GLOO_PROOF_H_
#define PLANC_RUNTIME_PROCESS_GROUP_GLOO_PROOF_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gloo/context.h"
#include "runtime/process_group/handshake/sha256.h"

namespace planc {

// What member `from` of the group that is connected under `key` sends member `to` to prove that it
// knows the job's secret, given the random numbers that both have drawn.
Digest PeerProof(const std::string& secret, const std::string& key, int64_t from, int64_t to,
                 const Digest& from_nonce, const Digest& to_nonce);

// Gloo takes whoever connects to the port of a pair for the peer. Here every two members prove the
// job's secret to each other, as the first messages of their connection: whoever took a member's
// place is found out before anything of the job is sent.
// Errors: Unavailable naming the members that did not prove it. Throws what gloo throws.
absl::Status ProveToPeers(gloo::Context* context, const std::string& secret, const std::string& key,
                          absl::Duration timeout);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_GLOO_PROOF_H_
