#ifndef PLANC_RUNTIME_PROCESS_GROUP_CONNECT_GROUPS_H_
#define PLANC_RUNTIME_PROCESS_GROUP_CONNECT_GROUPS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/instruction_set.h"
#include "runtime/launch/launch.h"
#include "runtime/process_group/cancellable_store.h"
#include "runtime/process_group/common_instruction_set.h"
#include "runtime/process_group/control.h"
#include "runtime/process_group/group_use.h"
#include "runtime/process_group/loopback_group.h"
#include "runtime/process_group/process_group.h"
#include "runtime/process_group/storage_watch.h"
#include "schemas/plan.h"

namespace planc {

// How the members of a group reach each other. The results are the same, bit for bit.
enum class TransportChoice : uint8_t {
  kAutomatic,     // shared memory where all members of a group run on one machine, else TCP
  kTcp,           // TCP for every group
  kSharedMemory,  // shared memory for every group, or an error
};

// The same on every rank, but for the instruction set.
struct GroupOptions {
  absl::Duration connect_timeout = absl::Minutes(2);  // until every rank has arrived
  // Of one operation. A run has a watchdog, which knows the plan and ends them sooner.
  absl::Duration operation_timeout = absl::Hours(24);
  absl::Duration agreement_timeout = absl::Minutes(10);  // of a wait in Control
  absl::Duration stall_timeout = absl::Minutes(10);      // of a rank that waits within a step
  TransportChoice transport = TransportChoice::kAutomatic;
  // All ranks share it: where rank 0 leaves the job's secret while they connect, if their launch
  // has none.
  std::string secret_folder = ".";
  // The largest that this rank's kernels may use.
  host::InstructionSet instruction_set = host::InstructionSet::kAvx2;
};

// Everything this rank talks through. Move-only.
class Groups {
 public:
  struct Entry {
    GroupUse use;
    std::unique_ptr<ProcessGroup> group;
  };

  // What a second thread of this rank agrees through, over a connection of its own.
  struct Background {
    std::shared_ptr<CancellableStore> store;
    std::unique_ptr<Control> control;
  };

  // `notice`: what the user should know about how they are connected. `keep_alive` is destroyed
  // last (the store server of rank 0).
  Groups(std::vector<Entry> entries, std::unique_ptr<Control> control, Background background,
         std::string notice, CommonInstructionSet instruction_set, std::shared_ptr<void> keep_alive,
         std::unique_ptr<StorageWatch> storage = nullptr);
  Groups(Groups&&) = default;
  Groups& operator=(Groups&&) = delete;

  // The group of an instruction; nullptr when no program uses the plan's group `group` on `stream`.
  ProcessGroup* Find(int group, Stream stream) const;
  // All groups, for naming and aborting.
  const std::vector<Entry>& entries() const { return entries_; }

  // "process groups of rank 0: 2 over shared memory, 1 over TCP", and on a second line why a group
  // that could share memory does not.
  // REQUIRES: there are groups.
  std::string TransportText() const;

  // What the kernels of all ranks use: the smallest set that one of them offers.
  host::InstructionSet instruction_set() const { return instruction_set_.set; }

  // What the user should know when the ranks have met: the transports, where there are groups, and
  // the instruction set, where not all ranks have the same.
  std::vector<std::string> Notices() const;

  // Registers an arena with every group.
  absl::Status RegisterMemory(void* base, int64_t bytes);
  // Aborts every group. Thread-safe.
  void Abort(const std::string& reason);
  // Orderly end: waits until every rank has arrived here, so that nobody takes a peer that is done
  // for one that is lost. Not called after a failure.
  absl::Status Shutdown();

  // Agreements of all ranks outside the plan.
  Control& control() { return *control_; }
  // The same for one other thread, e.g. the one that writes checkpoints.
  Control& background_control() { return *background_.control; }
  // Where this rank tells that files hold it up, and hears what holds others up; null where nobody
  // waits for it.
  StorageWatch* storage() const { return storage_.get(); }
  // Makes what waits in background_control fail soon. Thread-safe.
  void CancelBackground() { background_.store->Cancel(); }

 private:
  std::shared_ptr<void> keep_alive_;
  std::unique_ptr<StorageWatch> storage_;
  std::unique_ptr<Control> control_;
  Background background_;
  std::string notice_;
  CommonInstructionSet instruction_set_;
  std::vector<Entry> entries_;
};

// Meets the other ranks at the store of `launch`, checks that all ranks hold the same plan and,
// where others than planc started them, that each is where the mesh wants it (CheckPlacement), and
// connects this rank's groups. The ranks also agree on an instruction set (AgreeOnInstructionSet).
// A group that could share memory but whose members are kept from it
// is connected over TCP and mentioned in TransportText.
// Errors: InvalidArgument when launch and plan disagree about the number of ranks;
// FailedPrecondition naming the ranks with another plan or in another place, or when
// shared memory was demanded and cannot be had; DeadlineExceeded naming the ranks that did not
// come; Unavailable when the store or a peer cannot be reached.
absl::StatusOr<Groups> ConnectGroups(const Plan& plan, const LaunchConfig& launch,
                                     const GroupOptions& options = {});

// The same among threads of one process, for tests: `world` is shared by all ranks, and so must be
// the instruction set.
absl::StatusOr<Groups> ConnectLoopbackGroups(const Plan& plan, int64_t rank, LoopbackWorld* world,
                                             const GroupOptions& options = {});

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_CONNECT_GROUPS_H_
