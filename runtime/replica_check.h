#ifndef PLANC_RUNTIME_REPLICA_CHECK_H_
#define PLANC_RUNTIME_REPLICA_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/process_group/control.h"
#include "runtime/step/session.h"
#include "schemas/plan.h"

namespace planc {

// Compares what several ranks hold alike: shards of master weights and moments over dp_replicate
// and cp, those of units that tp does not split over tp as well, a tied table over the stages that
// have it, and constants over all ranks. Replicas make the same updates from the same reduced
// gradients, bit for bit, so a difference is bytes that something else changed, or a machine that
// computes otherwise. Its gradients go into the sums of all, and a checkpoint, which one replica
// writes, would hide it. Each rank hashes what it holds, reading memory once; only hashes are
// exchanged, over the control channel, and those of single tensors only when some differ.
class ReplicaCheck {
 public:
  // `host`: the name of this machine, for messages. `session` and `control` must outlive this
  // object.
  ReplicaCheck(const Session& session, Control* control, std::string host);

  // Between two steps, by every rank: compares after `done` steps when run.compare_every_steps asks
  // for it or a checkpoint is about to be saved. Errors: as Compare.
  absl::Status CompareIfDue(int64_t done, bool saving);

  // Errors, on all ranks: DataLoss naming the tensors and the ranks, and where more than two hold
  // one, which of them is alone against the others; those of `control`.
  absl::Status Compare(int64_t done);

 private:
  // Something that several ranks hold: a unit, in all layers of a stage, or a constant.
  struct Shared {
    int unit = -1;    // Plan::units; -1 for a constant
    int buffer = -1;  // Plan::buffers, of the constant
  };
  // A part of a tensor, hashed as a whole.
  struct Piece {
    size_t shared = 0;  // index into shared_
    std::string name;   // "exp_avg of model.norm.weight"
    const char* data = nullptr;
    int64_t bytes = 0;
  };

  // Ranks with the same number hold the same bytes; -1 holds nothing.
  int64_t HolderSet(const Shared& shared, int64_t rank) const;
  bool HasReplicas(const Shared& shared) const;
  void AddUnit(size_t shared);
  void AddPieces(size_t shared, const std::string& name, const void* data, int64_t bytes);
  std::vector<uint64_t> HashPieces() const;
  // A hash of each of shared_, as text.
  std::string Digests(const std::vector<uint64_t>& hashes) const;
  // On rank 0: what differs between ranks, and which ranks hold it. Empty when nothing does.
  std::string FindDifferences(const std::vector<std::string>& digests) const;
  // What this rank holds of that, hash and name of each piece, for Verdict.
  std::string Details(const std::string& differences, const std::vector<uint64_t>& hashes) const;
  // On rank 0: the error, from the details of all ranks.
  absl::Status Verdict(int64_t done, const std::vector<std::string>& details) const;

  const Session& session_;
  const Plan& plan_;
  Control* const control_;
  const std::string host_;
  std::vector<Shared> shared_;  // the same on every rank
  std::vector<Piece> pieces_;   // of this rank, in the same order on all ranks of a holder set
};

}  // namespace planc

#endif  // PLANC_RUNTIME_REPLICA_CHECK_H_
