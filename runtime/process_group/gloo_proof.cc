#include "runtime/process_group/gloo_proof.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gloo/transport/unbound_buffer.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Beyond the slots of groups, and below those of the mesh.
constexpr uint64_t kNonceSlot = ~uint64_t{0} - 3;
constexpr uint64_t kProofSlot = ~uint64_t{0} - 2;

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

std::string TextOf(const Digest& digest) { return {digest.begin(), digest.end()}; }

// Sends each member its digest of `own` and receives one of each into `theirs`; both by member.
// False for those of which nothing came.
std::vector<bool> Exchange(gloo::Context* context, uint64_t slot, std::vector<Digest>* own,
                           std::vector<Digest>* theirs, absl::Time deadline) {
  std::vector<bool> came(context->size, true);
  std::vector<Buffer> sent(context->size);
  std::vector<Buffer> received(context->size);
  for (int member = 0; member < context->size; ++member) {
    if (member == context->rank) continue;
    sent[member] = context->createUnboundBuffer((*own)[member].data(), sizeof(Digest));
    received[member] = context->createUnboundBuffer((*theirs)[member].data(), sizeof(Digest));
    try {
      received[member]->recv(member, slot, 0, sizeof(Digest));
      sent[member]->send(member, slot, 0, sizeof(Digest));
    } catch (const std::exception&) {
      came[member] = false;
    }
  }
  for (int member = 0; member < context->size; ++member) {
    if (member == context->rank || !came[member]) continue;
    const auto left =
        absl::ToChronoMilliseconds(std::max(deadline - absl::Now(), absl::Milliseconds(1)));
    try {
      came[member] =
          received[member]->waitRecv(nullptr, left) && sent[member]->waitSend(nullptr, left);
    } catch (const std::exception&) {
      came[member] = false;
    }
  }
  return came;
}

}  // namespace

Digest PeerProof(const std::string& secret, const std::string& key, int64_t from, int64_t to,
                 const Digest& from_nonce, const Digest& to_nonce) {
  return HmacSha256(secret, absl::StrCat("planc group ", key, " from ", from, " to ", to, ": ",
                                         TextOf(from_nonce), TextOf(to_nonce)));
}

absl::Status ProveToPeers(gloo::Context* context, const std::string& secret, const std::string& key,
                          absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  const int self = context->rank;
  std::vector<Digest> nonces(context->size);
  std::vector<Digest> peer_nonces(context->size);
  PLANC_ASSIGN_OR_RETURN(const std::string random, RandomBytes(nonces.size() * sizeof(Digest)));
  for (size_t i = 0; i < nonces.size(); ++i) {
    std::copy_n(random.begin() + i * sizeof(Digest), sizeof(Digest), nonces[i].begin());
  }
  std::vector<bool> proven = Exchange(context, kNonceSlot, &nonces, &peer_nonces, deadline);
  std::vector<Digest> proofs(context->size);
  std::vector<Digest> peer_proofs(context->size);
  for (int member = 0; member < context->size; ++member) {
    proofs[member] = PeerProof(secret, key, self, member, nonces[member], peer_nonces[member]);
  }
  const std::vector<bool> answered = Exchange(context, kProofSlot, &proofs, &peer_proofs, deadline);
  std::vector<int> strangers;
  for (int member = 0; member < context->size; ++member) {
    if (member == self) continue;
    const Digest expected =
        PeerProof(secret, key, member, self, peer_nonces[member], nonces[member]);
    if (!proven[member] || !answered[member] ||
        !EqualInConstantTime(expected, peer_proofs[member])) {
      strangers.push_back(member);
    }
  }
  if (strangers.empty()) return absl::OkStatus();
  return WithFault(
      absl::UnavailableError(absl::StrCat(
          "who connected as member ", absl::StrJoin(strangers, ", "),
          " of the group did not prove the secret of the job: it is lost, or somebody else")),
      Fault::kPeerLost);
}

}  // namespace planc
