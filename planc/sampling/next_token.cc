#include "planc/sampling/next_token.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/philox.h"

namespace planc {

double UniformAt(uint64_t seed, int64_t position) {
  const uint64_t at = static_cast<uint64_t>(position);
  const auto words =
      host::Philox4x32({static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0},
                       {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = (static_cast<uint64_t>(words[1]) << 32) | words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

int32_t NextToken(const float* logits, int64_t vocab, const SamplingOptions& options,
                  int64_t position) {
  std::vector<int32_t> tokens(static_cast<size_t>(vocab));
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto likelier = [logits](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  if (options.temperature == 0) return *std::min_element(tokens.begin(), tokens.end(), likelier);
  std::sort(tokens.begin(), tokens.end(), likelier);
  if (options.top_k > 0 && options.top_k < vocab) {
    tokens.resize(static_cast<size_t>(options.top_k));
  }
  std::vector<double> weights;
  for (const int32_t token : tokens) {
    const double difference = static_cast<double>(logits[token]) - logits[tokens[0]];
    weights.push_back(std::exp(difference / options.temperature));
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double left = UniformAt(options.seed, position) * total;
  for (size_t i = 0; i < tokens.size(); ++i) {
    left -= weights[i];
    if (left < 0) return tokens[i];
  }
  return tokens.back();  // rounding used up everything
}

}  // namespace planc
