#ifndef PLANC_RUNTIME_PROCESS_GROUP_GLOO_MESH_H_
#define PLANC_RUNTIME_PROCESS_GROUP_GLOO_MESH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gloo/context.h"
#include "gloo/transport/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "runtime/process_group/key_value_store.h"

namespace planc {

// The connections among the members of one group.
class GlooMesh {
 public:
  // Throws what gloo throws when a peer is lost already.
  explicit GlooMesh(std::shared_ptr<gloo::Context> context);
  // Hangs up first: no connection may break while its buffer is destroyed.
  ~GlooMesh() { Close(); }

  std::unique_ptr<gloo::transport::UnboundBuffer> CreateBuffer(void* base, size_t bytes) {
    return context_->createUnboundBuffer(base, bytes);
  }
  // Whether the connection to another member broke, or was given up after a time-out. Costs neither
  // time nor a message, but may lag behind an error that gloo is just telling. Called by one
  // thread.
  bool IsLost(int64_t member);
  // The same for one who was told an error: does not lag. May cost a message. Thread-safe.
  bool RefusesMessages(int64_t member);
  // Hangs up on all peers, once. Thread-safe.
  void Close();

 private:
  const std::shared_ptr<gloo::Context> context_;
  // By member, without memory: each waits for a message that is never sent.
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> probes_;
  std::once_flag closed_;
};

// Gloo's TCP transport, bound to one local address.
class GlooDevice {
 public:
  // `secret`: of the job, which peers must prove. Makes the process ignore SIGPIPE, unless it
  // handles it.
  static absl::StatusOr<std::unique_ptr<GlooDevice>> Create(const std::string& address,
                                                            const std::string& secret);

  // Exchanges addresses through `store`, under keys that start with `key`, connects every pair, and
  // lets both sides prove the secret.
  absl::StatusOr<std::shared_ptr<GlooMesh>> Connect(const std::string& key, int64_t index,
                                                    int64_t size, KeyValueStore* store,
                                                    absl::Duration timeout);

 private:
  GlooDevice(std::shared_ptr<gloo::transport::Device> device, std::string secret)
      : device_(std::move(device)), secret_(std::move(secret)) {}

  std::shared_ptr<gloo::transport::Device> device_;
  const std::string secret_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_GLOO_MESH_H_
