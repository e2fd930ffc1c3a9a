#include "runtime/device/host_stream.h"

#include <utility>

#include "glog/logging.h"

namespace planc {

EventCells::EventCells(int64_t size, AbortSignal* abort)
    : size_(size), cells_(std::make_unique<EventCounter[]>(size)), abort_(abort) {
  subscription_ = abort_->Subscribe([this](const absl::Status&) {
    for (int64_t i = 0; i < size_; ++i) cells_[i].Abort();
  });
}

EventCells::~EventCells() { abort_->Unsubscribe(subscription_); }

void EventCells::Reset() {
  for (int64_t i = 0; i < size_; ++i) cells_[i].Reset();
}

HostStream::HostStream(std::string name, std::function<void()> body)
    : name_(std::move(name)), body_(std::move(body)), thread_([this] { Loop(); }) {}

HostStream::~HostStream() {
  Wait();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    state_ = State::kClosing;
  }
  changed_.notify_all();
  thread_.join();
}

void HostStream::Start() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    CHECK(state_ == State::kIdle) << "stream " << name_ << " started while it runs";
    state_ = State::kRunning;
  }
  changed_.notify_all();
}

void HostStream::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return state_ != State::kRunning; });
}

void HostStream::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return state_ != State::kIdle; });
    if (state_ == State::kClosing) return;
    lock.unlock();
    body_();
    lock.lock();
    state_ = State::kIdle;
    changed_.notify_all();
  }
}

}  // namespace planc
