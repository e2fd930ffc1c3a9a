#ifndef PLANC_RUNTIME_LAUNCH_MEMORY_ROOM_H_
#define PLANC_RUNTIME_LAUNCH_MEMORY_ROOM_H_

#include <cstdint>
#include <string>
#include <vector>

namespace planc {

// Something that bounds how much more memory processes may use.
struct MemoryRoom {
  int64_t bytes = 0;
  std::string by;  // "the machine's free memory (MemAvailable)"
};

// What bounds all processes of this machine that this process starts, together: memory that is free
// or holds page cache, and that of each control group that this process lies in. Free swap counts:
// the kernel ends nobody before it is full. Empty where the system does not say.
std::vector<MemoryRoom> NodeMemoryRooms(const std::string& proc = "/proc");

// What bounds each process, all that it holds counted: RLIMIT_DATA, which counts private memory.
std::vector<MemoryRoom> PrivateMemoryLimits();
// The same for RLIMIT_AS, which counts all that is mapped, program and libraries too.
std::vector<MemoryRoom> MappedMemoryLimits();

// Bytes of program and libraries that this process has mapped; the processes that it starts from
// the same file map the same. 0 where the system does not say.
int64_t MappedProgramBytes(const std::string& proc = "/proc");

// What the system reserves for the stack of each further thread.
int64_t ThreadStackBytes();

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_MEMORY_ROOM_H_
