#ifndef PLANC_PLANC_RESTART_POINTS_H_
#define PLANC_PLANC_RESTART_POINTS_H_

#include <set>
#include <string>

#include "runtime/launch/local_launcher.h"
#include "schemas/plan.h"

namespace planc {

// Where the ranks of a run go on when they are started again. With checkpoint.resume auto: where
// they would anyway, at the newest checkpoint. Else at the newest one that this run has written,
// never at one that was there before: a run that begins anew stays one.
class RestartPoints {
 public:
  // Made before the ranks start. `base`: what a relative path of the job starts from.
  RestartPoints(const Plan& plan, const std::string& base);

  RestartPoint Newest() const;

 private:
  const std::string directory_;
  const bool any_;                // of whatever run
  std::set<std::string> before_;  // identities of checkpoints of other runs
};

}  // namespace planc

#endif  // PLANC_PLANC_RESTART_POINTS_H_
