#include "kernels/philox.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace planc::host {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53u;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kWeyl0 = 0x9E3779B9u;
constexpr uint32_t kWeyl1 = 0xBB67AE85u;
constexpr int kRounds = 10;

constexpr uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
constexpr uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

// Two normal values from two random words. u lies strictly inside (0, 1), so the logarithm is
// finite.
void BoxMuller(uint32_t radius_bits, uint32_t angle_bits, float* normal) {
  constexpr double kScale = 1.0 / 4294967296.0;
  const double radius = std::sqrt(-2.0 * std::log((radius_bits + 0.5) * kScale));
  const double angle = 2.0 * std::numbers::pi * ((angle_bits + 0.5) * kScale);
  normal[0] = static_cast<float>(radius * std::cos(angle));
  normal[1] = static_cast<float>(radius * std::sin(angle));
}

// Elements 4 * group .. 4 * group + 3.
void NormalGroup(const PhiloxKey& key, uint64_t group, float* normal) {
  const std::array<uint32_t, 4> words =
      Philox4x32({Low(group), High(group), Low(key.parameter_hash), High(key.parameter_hash)},
                 {Low(key.seed), High(key.seed)});
  BoxMuller(words[0], words[1], normal);
  BoxMuller(words[2], words[3], normal + 2);
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(const std::array<uint32_t, 4>& counter,
                                   const std::array<uint32_t, 2>& key) {
  std::array<uint32_t, 4> c = counter;
  std::array<uint32_t, 2> k = key;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * c[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * c[2];
    c = {High(product1) ^ c[1] ^ k[0], Low(product1), High(product0) ^ c[3] ^ k[1], Low(product0)};
    k[0] += kWeyl0;
    k[1] += kWeyl1;
  }
  return c;
}

PhiloxKey MakePhiloxKey(uint64_t seed, const std::string& parameter_name) {
  return {seed, XXH64(parameter_name.data(), parameter_name.size(), 0)};
}

float NormalAt(const PhiloxKey& key, uint64_t global_element_index) {
  float normal[4];
  NormalGroup(key, global_element_index / 4, normal);
  return normal[global_element_index % 4];
}

void FillNormal(const PhiloxKey& key, uint64_t first, int64_t count, float stddev, float* out) {
  int64_t done = 0;
  while (done < count) {
    const uint64_t index = first + static_cast<uint64_t>(done);
    const int64_t skip = static_cast<int64_t>(index % 4);
    const int64_t take = std::min<int64_t>(4 - skip, count - done);
    float normal[4];
    NormalGroup(key, index / 4, normal);
    for (int64_t i = 0; i < take; ++i) out[done + i] = stddev * normal[skip + i];
    done += take;
  }
}

}  // namespace planc::host
