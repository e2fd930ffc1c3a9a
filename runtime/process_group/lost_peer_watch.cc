#include "runtime/process_group/lost_peer_watch.h"

#include <chrono>
#include <utility>

namespace planc {
namespace {

constexpr std::chrono::milliseconds kPeriod(20);

}  // namespace

LostPeerWatch::LostPeerWatch() : thread_([this] { Loop(); }) {}

LostPeerWatch::~LostPeerWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  closing_changed_.notify_all();
  thread_.join();
}

void LostPeerWatch::Add(const void* owner, std::function<void()> look) {
  const std::lock_guard<std::mutex> lock(mutex_);
  looks_[owner] = std::move(look);
}

void LostPeerWatch::Remove(const void* owner) {
  const std::lock_guard<std::mutex> lock(mutex_);
  looks_.erase(owner);
}

void LostPeerWatch::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closing_changed_.wait_for(lock, kPeriod, [this] { return closing_; })) {
    for (const auto& [owner, look] : looks_) look();
  }
}

}  // namespace planc
