#include "runtime/device/host_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "runtime/device/host_stream.h"
#include "schemas/counted.h"

namespace planc {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kHugePageBytes = int64_t{2} << 20;

constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Memory the kernel could give without swapping; -1 when it does not say. Asked because faulting in
// more than there is ends in a kill, not in an error.
int64_t AvailableBytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kibibytes = 0;
  std::string unit;
  while (meminfo >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes * 1024;
    std::getline(meminfo, unit);
  }
  return -1;
}

// Makes every page present. The kernel does it in one call since 5.14; else each page is touched.
void FaultIn(std::byte* memory, int64_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  for (int64_t offset = 0; offset < bytes; offset += kPageBytes) {
    const_cast<volatile std::byte*>(memory)[offset] = std::byte{0};
  }
}

// Bytes of a mapping that are physically present, from the kernel's page tables.
int64_t ResidentBytes(void* mapping, int64_t bytes) {
  constexpr int64_t kPagesAtOnce = 1 << 16;
  std::vector<unsigned char> present(std::min(kPagesAtOnce, bytes / kPageBytes));
  int64_t pages = 0;
  for (int64_t offset = 0; offset < bytes; offset += kPagesAtOnce * kPageBytes) {
    const int64_t length = std::min(kPagesAtOnce * kPageBytes, bytes - offset);
    std::byte* const begin = static_cast<std::byte*>(mapping) + offset;
    CHECK_EQ(mincore(begin, length, present.data()), 0) << std::strerror(errno);
    pages += std::count_if(present.begin(), present.begin() + length / kPageBytes,
                           [](unsigned char page) { return (page & 1) != 0; });
  }
  return pages * kPageBytes;
}

class HostDevice : public Device {
 public:
  ~HostDevice() override {
    for (const auto& [memory, bytes] : mappings_) munmap(memory, bytes);
  }

  std::string name() const override { return "host"; }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("cannot allocate ", bytes));
    if (bytes == 0) return nullptr;
    const int64_t available = AvailableBytes();
    if (available >= 0 && bytes > available) {
      return absl::ResourceExhaustedError(absl::StrCat("host memory: ", Counted(bytes, "byte"),
                                                       " asked, ", Counted(available, "byte"),
                                                       " available"));
    }
    // Large arenas start on a huge page; the slack around them stays untouched and so costs
    // nothing.
    const bool huge = bytes >= kHugePageBytes;
    const int64_t length = RoundUp(bytes, kPageBytes) + (huge ? kHugePageBytes : 0);
    void* const mapping =
        mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "host memory: mmap of ", Counted(length, "byte"), ": ", std::strerror(errno)));
    }
    std::byte* memory = static_cast<std::byte*>(mapping);
    if (huge) memory = TrimToHugePage(memory, length, RoundUp(bytes, kPageBytes));
    FaultIn(memory, RoundUp(bytes, kPageBytes));
    std::lock_guard<std::mutex> lock(mutex_);
    mappings_[memory] = RoundUp(bytes, kPageBytes);
    return memory;
  }

  DeviceMemory Measure(const void* memory) override {
    if (memory == nullptr) return {};
    std::lock_guard<std::mutex> lock(mutex_);
    const auto mapping = mappings_.find(const_cast<void*>(memory));
    CHECK(mapping != mappings_.end()) << "not allocated here, or released";
    return {mapping->second, ResidentBytes(mapping->first, mapping->second)};
  }

  void Release(void* memory) override {
    if (memory == nullptr) return;
    std::lock_guard<std::mutex> lock(mutex_);
    const auto mapping = mappings_.find(memory);
    CHECK(mapping != mappings_.end()) << "not allocated here, or released twice";
    munmap(mapping->first, mapping->second);
    mappings_.erase(mapping);
  }

  absl::Status CopyToHost(const void* device_memory, void* host_memory, int64_t bytes) override {
    std::memcpy(host_memory, device_memory, bytes);
    return absl::OkStatus();
  }

  absl::Status CopyFromHost(const void* host_memory, void* device_memory, int64_t bytes) override {
    std::memcpy(device_memory, host_memory, bytes);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<DeviceStream>> CreateStream(const std::string& name,
                                                             std::function<void()> body) override {
    return std::make_unique<HostStream>(name, std::move(body));
  }

 private:
  // Unmaps what lies before the first huge page boundary and after `bytes`.
  static std::byte* TrimToHugePage(std::byte* mapping, int64_t length, int64_t bytes) {
    const int64_t address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(mapping));
    const int64_t before = RoundUp(address, kHugePageBytes) - address;
    const int64_t after = length - before - bytes;
    if (before > 0) munmap(mapping, before);
    if (after > 0) munmap(mapping + before + bytes, after);
    madvise(mapping + before, bytes, MADV_HUGEPAGE);
    return mapping + before;
  }

  std::mutex mutex_;
  std::map<void*, int64_t> mappings_;
};

}  // namespace

std::unique_ptr<Device> CreateHostDevice() { return std::make_unique<HostDevice>(); }

}  // namespace planc
