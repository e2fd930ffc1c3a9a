#include "runtime/process_group/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "schemas/counted.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

// What the system calls the memory in /proc/<process>/fd.
constexpr char kName[] = "planc-group";
// The random number, alone on its cache line, comes before the memory of the members.
constexpr int64_t kHeaderBytes = 64;

absl::Status Refused(const std::string& what) {
  return WithFault(absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno))),
                   FaultOfErrno(errno));
}

// A member that has ended took its descriptors with it.
absl::Status Gone(const std::string& path) { return WithFault(Refused(path), Fault::kPeerLost); }

uint64_t& SecretOf(void* mapping) { return *static_cast<uint64_t*>(mapping); }

// A lock on the byte that stands for one member. It belongs to the open file, not to the process,
// so that members may also be threads of one process.
struct flock PresenceOf(int64_t index, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = index;
  lock.l_len = 1;
  return lock;
}

// Opens what a descriptor of a process refers to once more, if it is memory made by Create.
absl::StatusOr<int> Reopen(const std::string& process, const std::string& descriptor) {
  const std::string path = absl::StrCat("/proc/", process, "/fd/", descriptor);
  char target[128] = {};
  if (readlink(path.c_str(), target, sizeof(target) - 1) < 0) return Gone(path);
  if (!absl::StartsWith(target, absl::StrCat("/memfd:", kName))) {
    return absl::UnavailableError(absl::StrCat(path, " is something else"));
  }
  const int reopened = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (reopened < 0) return errno == ENOENT ? Gone(path) : Refused(path);
  // What its maker could take away is no memory to work on.
  const int seals = fcntl(reopened, F_GET_SEALS);
  if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0) return reopened;
  close(reopened);
  return absl::UnavailableError(absl::StrCat(path, " is not sealed"));
}

}  // namespace

SharedSegment::~SharedSegment() { close(descriptor_); }

uint8_t* SharedSegment::memory() const {
  return static_cast<uint8_t*>(mapping_.get()) + kHeaderBytes;
}

absl::Status SharedSegment::Map(int64_t bytes) {
  const size_t length = kHeaderBytes + bytes;
  struct stat file {};
  if (fstat(descriptor_, &file) != 0) return Refused("shared memory");
  if (file.st_size != static_cast<off_t>(length)) {
    return absl::UnavailableError("the shared memory has another size");
  }
  void* const base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (base == MAP_FAILED) return Refused("cannot map shared memory");
  mapping_ = std::shared_ptr<void>(base, [length](void* mapped) { munmap(mapped, length); });
  return absl::OkStatus();
}

absl::Status SharedSegment::Enter() {
  struct flock lock = PresenceOf(index_, F_WRLCK);
  if (fcntl(descriptor_, F_OFD_SETLK, &lock) == 0) return absl::OkStatus();
  return Refused(absl::StrCat("cannot enter shared memory as member ", index_));
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Create(int64_t bytes, int64_t index) {
  const int descriptor = memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return Refused("cannot make shared memory");
  std::unique_ptr<SharedSegment> segment(new SharedSegment(descriptor, index));
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
      limit.rlim_cur < static_cast<rlim_t>(kHeaderBytes + bytes)) {
    // To exceed it is the end of the process, not an error.
    return absl::UnavailableError(absl::StrCat(
        "files of more than ", Counted(limit.rlim_cur, "byte"), " are forbidden (ulimit -f)"));
  }
  // Sealed: nobody can take mapped memory away from the others.
  if (ftruncate(descriptor, kHeaderBytes + bytes) != 0 ||
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Refused("cannot make shared memory");
  }
  PLANC_RETURN_IF_ERROR(segment->Map(bytes));
  uint64_t secret = 0;
  if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret)) return Refused("getrandom");
  SecretOf(segment->mapping_.get()) = secret;
  PLANC_RETURN_IF_ERROR(segment->Enter());
  return segment;
}

std::string SharedSegment::location() const {
  return absl::StrCat(getpid(), " ", descriptor_, " ", SecretOf(mapping_.get()));
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Attach(const std::string& location,
                                                                     int64_t bytes, int64_t index) {
  const std::vector<std::string> parts = absl::StrSplit(location, ' ');
  // Another rank says so: nothing but numbers becomes part of a path.
  uint32_t process = 0;
  uint32_t file = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &process) ||
      !absl::SimpleAtoi(parts[1], &file)) {
    return absl::UnavailableError("malformed location of shared memory");
  }
  PLANC_ASSIGN_OR_RETURN(const int descriptor, Reopen(absl::StrCat(process), absl::StrCat(file)));
  std::unique_ptr<SharedSegment> segment(new SharedSegment(descriptor, index));
  PLANC_RETURN_IF_ERROR(segment->Map(bytes));
  if (absl::StrCat(SecretOf(segment->mapping_.get())) != parts[2]) {
    return absl::UnavailableError("the shared memory belongs to others");
  }
  PLANC_RETURN_IF_ERROR(segment->Enter());
  return segment;
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::AttachHere(int64_t index) const {
  PLANC_ASSIGN_OR_RETURN(const int descriptor, Reopen("self", absl::StrCat(descriptor_)));
  std::unique_ptr<SharedSegment> segment(new SharedSegment(descriptor, index));
  segment->mapping_ = mapping_;
  PLANC_RETURN_IF_ERROR(segment->Enter());
  return segment;
}

bool SharedSegment::IsPresent(int64_t index) const {
  if (index == index_) return true;
  struct flock lock = PresenceOf(index, F_WRLCK);
  // Only a member's lock can be in the way of another.
  return fcntl(descriptor_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void SharedSegment::Leave() {
  struct flock lock = PresenceOf(index_, F_UNLCK);
  fcntl(descriptor_, F_OFD_SETLK, &lock);
}

}  // namespace planc
