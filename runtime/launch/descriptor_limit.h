#ifndef PLANC_RUNTIME_LAUNCH_DESCRIPTOR_LIMIT_H_
#define PLANC_RUNTIME_LAUNCH_DESCRIPTOR_LIMIT_H_

#include <cstdint>

namespace planc {

// How many files this process may have open (RLIMIT_NOFILE), and what it may raise that to.
int64_t DescriptorLimit();
int64_t HighestDescriptorLimit();

// Raises the limit of this process, and of those that it starts, as far as it may.
void RaiseDescriptorLimit();

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_DESCRIPTOR_LIMIT_H_
