#ifndef PLANC_RUNTIME_PROCESS_GROUP_MACHINE_IDENTITY_H_
#define PLANC_RUNTIME_PROCESS_GROUP_MACHINE_IDENTITY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace planc {

// A text that is the same for two processes only if they may share memory: same machine (its name
// as the launcher knows it, and the boot of its kernel) and same namespaces of processes and
// network, so that containers and simulated machines count as machines of their own. Empty when the
// system does not tell: such a process shares with nobody.
std::string MachineIdentity(const std::string& host);

// A text that differs between two machines even where both have the same host name: the boot of the
// kernel, and the namespace of its network. Empty when the system does not tell.
std::string PlacementIdentity();

// For each identity, the index of the first one that may share memory with it: "0 0 2 2".
std::string MachinesText(const std::vector<std::string>& identities);
// Whether all `ranks` have the same index in such a text. False when it has none for one of them.
bool OnOneMachine(const std::string& machines, const std::vector<int64_t>& ranks);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_MACHINE_IDENTITY_H_
