#include "runtime/process_group/handshake/handshake.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Longest wait for one message of the other side.
constexpr absl::Duration kAnswerTime = absl::Seconds(10);
// Who listens there may be about to leave, e.g. a rank of the attempt before.
constexpr absl::Duration kStrangerTime = absl::Seconds(10);
constexpr absl::Duration kPause = absl::Milliseconds(50);
// Errors quote so much of what a stranger says.
constexpr size_t kQuotedBytes = 40;

template <typename T>
std::string BytesOf(const T& message) {
  return {reinterpret_cast<const char*>(&message), sizeof(message)};
}

// The label keeps the proof of one side from being that of the other.
Digest Proof(const char* label, const std::string& secret, const Greeting& greeting,
             const Digest& nonce, const Digest& purpose) {
  return HmacSha256(secret,
                    absl::StrCat(label, BytesOf(greeting), BytesOf(nonce), BytesOf(purpose)));
}

Digest ClaimProof(const std::string& secret, const Greeting& greeting, const Claim& claim) {
  return Proof("planc claim", secret, greeting, claim.nonce, claim.purpose);
}

Digest WelcomeProof(const std::string& secret, const Greeting& greeting, const Claim& claim) {
  return Proof("planc welcome", secret, greeting, claim.nonce, claim.purpose);
}

absl::Status FillRandom(Digest* nonce) {
  PLANC_ASSIGN_OR_RETURN(const std::string random, RandomBytes(nonce->size()));
  std::copy(random.begin(), random.end(), nonce->begin());
  return absl::OkStatus();
}

// The job as it is set up is to blame: who listens there will also listen next time.
absl::Status Stranger(const std::string& what) {
  return WithFault(
      absl::PermissionDeniedError(absl::StrCat("who listens there is no rank of this job: ", what)),
      Fault::kEnvironment);
}

// All of a message, however slowly it trickles in.
absl::Status ReceiveWithin(const Socket& socket, void* data, size_t bytes, absl::Time deadline) {
  auto* next = static_cast<uint8_t*>(data);
  for (size_t i = 0; i < bytes; ++i) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("no answer in time");
    PLANC_RETURN_IF_ERROR(socket.SetReceiveTimeout(std::max(left, absl::Milliseconds(1))));
    PLANC_RETURN_IF_ERROR(socket.ReceiveAll(next + i, 1));
  }
  return absl::OkStatus();
}

// What somebody says who does not begin with the magic number: what has arrived of it.
std::string Quote(const Socket& socket, std::string text) {
  char more = 0;
  const absl::Time deadline = absl::Now() + absl::Milliseconds(200);
  while (text.size() < kQuotedBytes && ReceiveWithin(socket, &more, 1, deadline).ok()) {
    text += more;
  }
  return absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

absl::StatusOr<Greeting> ReceiveGreeting(const Socket& socket, absl::Time deadline) {
  Greeting greeting;
  absl::Status status = ReceiveWithin(socket, &greeting.magic, sizeof(greeting.magic), deadline);
  if (absl::IsDeadlineExceeded(status)) return Stranger("it accepts connections and says nothing");
  if (!status.ok()) {
    return WithFault(absl::UnavailableError("who listens there hangs up without a word"),
                     Fault::kEnvironment);
  }
  if (greeting.magic != kHandshakeMagic) {
    return Stranger(absl::StrCat("it says ", Quote(socket, BytesOf(greeting.magic))));
  }
  status = ReceiveWithin(socket, reinterpret_cast<uint8_t*>(&greeting) + sizeof(greeting.magic),
                         sizeof(greeting) - sizeof(greeting.magic), deadline);
  if (!status.ok()) return status;
  if (greeting.version != kHandshakeVersion) {
    return WithFault(absl::PermissionDeniedError(
                         "who listens there is another version of planc: all ranks need the same"),
                     Fault::kEnvironment);
  }
  return greeting;
}

absl::Status Prove(const Socket& socket, const SecretFinder& find, const Digest& purpose) {
  const absl::Time deadline = absl::Now() + kAnswerTime;
  PLANC_ASSIGN_OR_RETURN(const Greeting greeting, ReceiveGreeting(socket, deadline));
  PLANC_ASSIGN_OR_RETURN(const std::string secret, find(greeting.secret_id));
  PLANC_ASSIGN_OR_RETURN(const Claim claim, MakeClaim(secret, greeting, purpose));
  PLANC_RETURN_IF_ERROR(socket.SendAll(&claim, sizeof(claim)));
  Welcome welcome;
  const absl::Status answered = ReceiveWithin(socket, &welcome, sizeof(welcome), deadline);
  if (!answered.ok()) {
    return WithFault(absl::UnavailableError(
                         "who listens there does not accept this rank: it belongs to another job "
                         "or start, or has another PLANC_SECRET"),
                     Fault::kEnvironment);
  }
  if (!IsWelcome(secret, greeting, claim, welcome)) {
    return Stranger("it does not know the secret of the job");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Greeting> MakeGreeting(const SecretId& id) {
  Greeting greeting;
  greeting.secret_id = id;
  PLANC_RETURN_IF_ERROR(FillRandom(&greeting.nonce));
  return greeting;
}

absl::StatusOr<Claim> MakeClaim(const std::string& secret, const Greeting& greeting,
                                const Digest& purpose) {
  Claim claim;
  claim.purpose = purpose;
  PLANC_RETURN_IF_ERROR(FillRandom(&claim.nonce));
  claim.proof = ClaimProof(secret, greeting, claim);
  return claim;
}

std::optional<Welcome> CheckClaim(const std::string& secret, const Greeting& greeting,
                                  const Claim& claim) {
  if (!EqualInConstantTime(claim.proof, ClaimProof(secret, greeting, claim))) return std::nullopt;
  return Welcome{WelcomeProof(secret, greeting, claim)};
}

bool IsWelcome(const std::string& secret, const Greeting& greeting, const Claim& claim,
               const Welcome& welcome) {
  return EqualInConstantTime(welcome.proof, WelcomeProof(secret, greeting, claim));
}

absl::StatusOr<Socket> ConnectAuthenticated(const std::string& host, int port,
                                            const SecretFinder& secret, const Digest& purpose,
                                            absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  std::optional<absl::Time> stranger_since;
  absl::Status last;
  do {
    absl::StatusOr<Socket> socket =
        ConnectTo(host, port, std::max(deadline - absl::Now(), absl::ZeroDuration()));
    if (!socket.ok()) return last.ok() ? socket.status() : last;
    last = Prove(*socket, secret, purpose);
    if (last.ok()) {
      PLANC_RETURN_IF_ERROR(socket->SetReceiveTimeout(absl::ZeroDuration()));
      return socket;
    }
    if (!absl::IsPermissionDenied(last)) {
      stranger_since.reset();
    } else if (!stranger_since.has_value()) {
      stranger_since = absl::Now();
    } else if (absl::Now() - *stranger_since >= kStrangerTime) {
      break;
    }
    absl::SleepFor(kPause);
  } while (absl::Now() < deadline);
  return WithContext(last, absl::StrCat(host, " port ", port));
}

}  // namespace planc
