#ifndef PLANC_RUNTIME_PROCESS_GROUP_STREAM_COPY_H_
#define PLANC_RUNTIME_PROCESS_GROUP_STREAM_COPY_H_

#include <cstdint>

namespace planc {

// Copies memory that another core reads next, or nobody soon: past the caches of this core, which
// then neither fetches what it overwrites nor has to hand it over. Small copies stay in the cache.
// The copy is complete for whoever sees a later atomic store of this thread.
void StreamCopy(void* to, const void* from, int64_t bytes);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_STREAM_COPY_H_
