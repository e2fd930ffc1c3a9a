#include "runtime/launch/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace planc {
namespace {

rlimit Limits() {
  rlimit limits{};
  if (getrlimit(RLIMIT_NOFILE, &limits) != 0) limits = {RLIM_INFINITY, RLIM_INFINITY};
  return limits;
}

int64_t Count(rlim_t limit) {
  return static_cast<int64_t>(std::min<rlim_t>(limit, std::numeric_limits<int64_t>::max()));
}

}  // namespace

int64_t DescriptorLimit() { return Count(Limits().rlim_cur); }

int64_t HighestDescriptorLimit() { return Count(Limits().rlim_max); }

void RaiseDescriptorLimit() {
  rlimit limits = Limits();
  limits.rlim_cur = limits.rlim_max;
  // Where it is refused, what is needed is compared with what there is.
  setrlimit(RLIMIT_NOFILE, &limits);
}

}  // namespace planc
