#ifndef PLANC_RUNTIME_PROCESS_GROUP_STORE_PROTOCOL_H_
#define PLANC_RUNTIME_PROCESS_GROUP_STORE_PROTOCOL_H_

#include <cstdint>

namespace planc {

// What store client and server send each other: a header, then the bytes it announces. One request
// is answered before the next is sent. Host byte order: all ranks run the same binary.

enum class StoreRequestKind : uint32_t { kSet = 1, kGet = 2, kJoin = 3 };

inline constexpr uint32_t kStoreMagic = 0x706c6e63;
inline constexpr uint32_t kMaximumStoreBytes = uint32_t{64} << 20;  // of a key or a value

struct StoreRequest {  // followed by the key, then the value
  uint32_t magic = kStoreMagic;
  StoreRequestKind kind = StoreRequestKind::kGet;
  int64_t argument = 0;  // kSet: reads; kGet: time-out in microseconds; kJoin: rank
  uint32_t key_bytes = 0;
  uint32_t value_bytes = 0;
};

struct StoreReply {  // followed by the value or the error message
  int32_t code = 0;  // absl::StatusCode
  uint32_t value_bytes = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_STORE_PROTOCOL_H_
