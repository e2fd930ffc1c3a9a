#ifndef PLANC_PLANC_VERSIONS_H_
#define PLANC_PLANC_VERSIONS_H_

#include <string>
#include <utility>
#include <vector>

namespace planc {

// Versions of this program, of the formats it writes and of everything linked in: name, version.
std::vector<std::pair<std::string, std::string>> LinkedVersions();

}  // namespace planc

#endif  // PLANC_PLANC_VERSIONS_H_
