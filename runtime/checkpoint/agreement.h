#ifndef PLANC_RUNTIME_CHECKPOINT_AGREEMENT_H_
#define PLANC_RUNTIME_CHECKPOINT_AGREEMENT_H_

#include <string>

#include "absl/status/status.h"

namespace planc {

// How the ranks of a job settle a matter together. Every rank calls the same functions in the same
// order.
class Agreement {
 public:
  virtual ~Agreement() = default;

  // Each rank says how its own part went. Returns once all have: OK when all parts went well, else
  // an error on every rank, with the code of the first rank that failed.
  virtual absl::Status AllOk(const absl::Status& mine) = 0;
  // OK when every rank called it with the same `value`, else an error on every rank. `what` names
  // the value.
  virtual absl::Status SameEverywhere(const std::string& what, const std::string& value) = 0;
  // Makes the calls of this rank fail soon, the one in progress too. Called from another thread
  // when the run is given up. One that never waits for others needs nothing.
  virtual void Cancel() {}
};

// The agreement of a job of one rank.
class SoleAgreement : public Agreement {
 public:
  absl::Status AllOk(const absl::Status& mine) override { return mine; }
  absl::Status SameEverywhere(const std::string&, const std::string&) override {
    return absl::OkStatus();
  }
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_AGREEMENT_H_
