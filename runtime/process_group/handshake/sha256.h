#ifndef PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_SHA256_H_
#define PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace planc {

using Digest = std::array<uint8_t, 32>;

// FIPS 180-4.
Digest Sha256(std::string_view message);

// RFC 2104 with SHA-256.
Digest HmacSha256(std::string_view key, std::string_view message);

// Takes the same time wherever the first difference is.
bool EqualInConstantTime(const Digest& a, const Digest& b);

// `bytes` bytes that nobody can foresee. Errors: of the operating system.
absl::StatusOr<std::string> RandomBytes(size_t bytes);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_SHA256_H_
