#ifndef PLANC_PLANC_GO_ON_H_
#define PLANC_PLANC_GO_ON_H_

#include <string>
#include <vector>

namespace planc {

// The command that goes on with a run that was stopped, fit for a shell: `planc run` with the
// arguments of the run, and with the newest checkpoint of its directory where they or
// checkpoint.resume (`resume`) say otherwise.
std::string GoOnCommand(const std::vector<std::string>& arguments, const std::string& resume);

}  // namespace planc

#endif  // PLANC_PLANC_GO_ON_H_
