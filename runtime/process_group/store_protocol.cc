#include "runtime/process_group/store_protocol.h"

#include <cstring>

namespace planc {
namespace {

bool IsRequest(const StoreRequest& request) {
  return request.magic == kStoreMagic && request.kind >= StoreRequestKind::kSet &&
         request.kind <= StoreRequestKind::kJoin && request.key_bytes <= kMostKeyBytes &&
         request.value_bytes <= kMaximumStoreBytes && request.argument >= 0;
}

}  // namespace

size_t StoreRequestReader::Missing() const {
  if (received_.size() < sizeof(request_)) return sizeof(request_) - received_.size();
  return sizeof(request_) + request_.key_bytes + request_.value_bytes - received_.size();
}

bool StoreRequestReader::Add(std::string_view bytes) {
  const bool header = received_.size() < sizeof(request_);
  received_.append(bytes);
  if (!header || received_.size() < sizeof(request_)) return true;
  std::memcpy(&request_, received_.data(), sizeof(request_));
  return IsRequest(request_);
}

std::string_view StoreRequestReader::key() const {
  return std::string_view(received_).substr(sizeof(request_), request_.key_bytes);
}

std::string_view StoreRequestReader::value() const {
  return std::string_view(received_).substr(sizeof(request_) + request_.key_bytes);
}

void StoreRequestReader::Clear() {
  received_.clear();
  received_.shrink_to_fit();
}

}  // namespace planc
