#include "runtime/process_group/gloo_mesh.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gloo/common/error.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/tcp/device.h"
#include "runtime/process_group/gloo_proof.h"
#include "runtime/process_group/socket.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Gloo waits five times its context's time-out for a connection.
constexpr int kGlooConnectFactor = 5;

// Beyond the slots of groups: one that no message is sent to, one that no message is received from.
constexpr uint64_t kNeverSent = ~uint64_t{0} - 1;
constexpr uint64_t kNeverReceived = ~uint64_t{0};

// planc's store as gloo wants it: errors are exceptions, and one deadline bounds all waits.
class RendezvousStore : public gloo::rendezvous::Store {
 public:
  RendezvousStore(KeyValueStore* store, std::string prefix, absl::Duration timeout)
      : store_(store), prefix_(std::move(prefix)), deadline_(absl::Now() + timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    status_ = store_->Set(absl::StrCat(prefix_, "/", key), std::string(data.begin(), data.end()));
    ThrowUnlessOk();
  }

  std::vector<char> get(const std::string& key) override {
    const absl::Duration left = std::max(deadline_ - absl::Now(), absl::Milliseconds(1));
    const absl::StatusOr<std::string> value = store_->Get(absl::StrCat(prefix_, "/", key), left);
    status_ = value.status();
    ThrowUnlessOk();
    return std::vector<char>(value->begin(), value->end());
  }

  // Gloo waits for a key just before it gets it, and get waits.
  void wait(const std::vector<std::string>& /*keys*/) override {}

  const absl::Status& status() const { return status_; }

 private:
  void ThrowUnlessOk() const {
    if (!status_.ok()) throw gloo::IoException(std::string(status_.message()));
  }

  KeyValueStore* const store_;
  const std::string prefix_;
  const absl::Time deadline_;
  absl::Status status_;
};

// Gloo writes to sockets without MSG_NOSIGNAL: the loss of a peer must be an error, not the end of
// this process.
void IgnoreBrokenPipes() {
  struct sigaction action {};
  sigaction(SIGPIPE, nullptr, &action);
  if (action.sa_handler != SIG_DFL) return;
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace

GlooMesh::GlooMesh(std::shared_ptr<gloo::Context> context) : context_(std::move(context)) {
  for (int member = 0; member < context_->size; ++member) {
    probes_.push_back(context_->createUnboundBuffer(nullptr, 0));
    if (member != context_->rank) probes_.back()->recv(member, kNeverSent, 0, 0);
  }
}

bool GlooMesh::IsLost(int64_t member) {
  // An aborted wait returns at once, but throws if its connection is broken.
  probes_[member]->abortWaitRecv();
  try {
    probes_[member]->waitRecv(nullptr, std::chrono::hours(1));
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

bool GlooMesh::RefusesMessages(int64_t member) {
  try {
    probes_[member]->send(static_cast<int>(member), kNeverReceived, 0, 0);
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

void GlooMesh::Close() {
  std::call_once(closed_, [this] { context_->closeConnections(); });
}

absl::StatusOr<std::unique_ptr<GlooDevice>> GlooDevice::Create(const std::string& address,
                                                               const std::string& secret) {
  IgnoreBrokenPipes();
  try {
    return std::unique_ptr<GlooDevice>(
        new GlooDevice(gloo::transport::tcp::CreateDevice(address.c_str()), secret));
  } catch (const std::exception& error) {
    // No peer has a part in it. Gloo does not say when the process has no descriptor left.
    const Socket probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::string reason = probe.get() < 0 ? std::strerror(errno) : error.what();
    return WithFault(absl::UnavailableError(
                         absl::StrCat("cannot communicate from address ", address, ": ", reason)),
                     Fault::kEnvironment);
  }
}

absl::StatusOr<std::shared_ptr<GlooMesh>> GlooDevice::Connect(const std::string& key, int64_t index,
                                                              int64_t size, KeyValueStore* store,
                                                              absl::Duration timeout) {
  RendezvousStore rendezvous(store, key, timeout);
  try {
    const auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(index),
                                                                     static_cast<int>(size));
    context->setTimeout(absl::ToChronoMilliseconds(timeout / kGlooConnectFactor));
    context->connectFullMesh(rendezvous, device_);
    PLANC_RETURN_IF_ERROR(ProveToPeers(context.get(), secret_, key, timeout));
    return std::make_shared<GlooMesh>(context);
  } catch (const std::exception& error) {
    if (!rendezvous.status().ok()) return rendezvous.status();
    return absl::UnavailableError(error.what());
  }
}

}  // namespace planc
