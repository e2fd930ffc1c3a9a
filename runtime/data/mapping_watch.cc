#include "runtime/data/mapping_watch.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "schemas/exit_code.h"

namespace planc {
namespace {

// A place in a list that only grows: a signal handler may walk it at any time.
struct Mapping {
  std::atomic<const char*> begin{nullptr};  // null: free for another file
  std::atomic<int64_t> bytes{0};
  std::atomic<const char*> path{nullptr};
  Mapping* next = nullptr;
};

// A signal handler has no argument to reach an object through.
std::atomic<Mapping*> first{nullptr};
std::mutex mutex;  // held by whoever changes the list
struct sigaction previous {};
static_assert(std::atomic<Mapping*>::is_always_lock_free);
static_assert(std::atomic<int64_t>::is_always_lock_free);

// The functions from here to OnBusError are called by the handler: only what is safe there.

void Write(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void WriteNumber(int64_t number) {
  char digits[24];
  char* at = digits + sizeof(digits) - 1;
  *at = '\0';
  do {
    *--at = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  Write(at);
}

void OnBusError(int signal, siginfo_t* info, void*) {
  const char* const address = static_cast<const char*>(info->si_addr);
  for (const Mapping* at = first; at != nullptr && info->si_code > 0; at = at->next) {
    const char* const begin = at->begin;
    if (begin == nullptr || address < begin || address >= begin + at->bytes) continue;
    Write("\nplanc: ");
    Write(at->path);
    Write(": cannot be read at byte ");
    WriteNumber(address - begin);
    Write(": the file was cut short or its disk failed while it was in use\n");
    _exit(kExitTrainingFault);
  }
  // The same access again, or this call for a signal that somebody sent, does what it did before.
  sigaction(signal, &previous, nullptr);
  if (info->si_code <= 0) raise(signal);
}

void InstallHandler() {
  struct sigaction action {};
  action.sa_sigaction = &OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &previous);
}

}  // namespace

void WatchMapping(const char* begin, int64_t bytes, const std::string& path) {
  static std::once_flag installed;
  std::call_once(installed, &InstallHandler);
  const std::lock_guard<std::mutex> lock(mutex);
  Mapping* place = first;
  while (place != nullptr && place->begin != nullptr) place = place->next;
  if (place == nullptr) {
    place = new Mapping;
    place->next = first;
    first = place;
  }
  place->path = strdup(path.c_str());
  place->bytes = bytes;
  place->begin = begin;
}

void UnwatchMapping(const char* begin) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (Mapping* at = first; at != nullptr; at = at->next) {
    if (at->begin != begin) continue;
    at->begin = nullptr;
    std::free(const_cast<char*>(at->path.exchange(nullptr)));
    return;
  }
}

}  // namespace planc
