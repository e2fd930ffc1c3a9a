#ifndef PLANC_RUNTIME_DATA_MAPPING_WATCH_H_
#define PLANC_RUNTIME_DATA_MAPPING_WATCH_H_

#include <cstdint>
#include <string>

namespace planc {

// Bytes of a mapped file that cannot be brought into memory when they are used, because the file
// was cut short or its disk failed, are a SIGBUS. From now on, one in the `bytes` bytes from
// `begin` writes "planc: PATH: cannot be read at byte N: ..." to standard error and ends the
// process with kExitTrainingFault. A SIGBUS elsewhere does what it did before. Thread-safe.
void WatchMapping(const char* begin, int64_t bytes, const std::string& path);

// No longer. Must be called before they are unmapped. Thread-safe.
void UnwatchMapping(const char* begin);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_MAPPING_WATCH_H_
