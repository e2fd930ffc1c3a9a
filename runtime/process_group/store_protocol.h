#ifndef PLANC_RUNTIME_PROCESS_GROUP_STORE_PROTOCOL_H_
#define PLANC_RUNTIME_PROCESS_GROUP_STORE_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace planc {

// What store client and server send each other: a header, then the bytes it announces. One request
// is answered before the next is sent. Host byte order: all ranks run the same binary.

enum class StoreRequestKind : uint32_t { kSet = 1, kGet = 2, kJoin = 3 };

inline constexpr uint32_t kStoreMagic = 0x706c6e63;
inline constexpr uint32_t kMostKeyBytes = uint32_t{1} << 20;        // it names the ranks of a group
inline constexpr uint32_t kMaximumStoreBytes = uint32_t{64} << 20;  // of a value

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

// Puts one request together from bytes as they arrive. Holds no more than has arrived.
class StoreRequestReader {
 public:
  // How many bytes may be given to Add next: what is missing of the header or of what it announces.
  // 0: the request is whole.
  size_t Missing() const;
  // False when what has arrived is no request. REQUIRES: bytes.size() <= Missing().
  bool Add(std::string_view bytes);

  // REQUIRES: Missing() is 0.
  const StoreRequest& request() const { return request_; }
  std::string_view key() const;
  std::string_view value() const;
  // Begins with the next one.
  void Clear();

 private:
  StoreRequest request_;  // once its bytes have arrived
  std::string received_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_STORE_PROTOCOL_H_
