#ifndef PLANC_RUNTIME_PROCESS_GROUP_LOST_PEER_WATCH_H_
#define PLANC_RUNTIME_PROCESS_GROUP_LOST_PEER_WATCH_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace planc {

// A thread that looks every 20 ms whether the peers that others wait for are still connected.
// Gloo alone does not do: when a connection breaks in the middle of a message, it wakes those who
// wait for later messages, but not the one who waits for this message (tcp::Pair::signalException
// passes by the operations in progress).
class LostPeerWatch {
 public:
  LostPeerWatch();
  ~LostPeerWatch();

  // `look` is called from the thread of the watch, until Remove(`owner`) has returned.
  void Add(const void* owner, std::function<void()> look);
  void Remove(const void* owner);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable closing_changed_;
  bool closing_ = false;
  std::map<const void*, std::function<void()>> looks_;
  std::thread thread_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_LOST_PEER_WATCH_H_
