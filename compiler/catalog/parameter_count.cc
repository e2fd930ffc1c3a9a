#include "compiler/catalog/parameter_count.h"

namespace planc {
namespace {

bool IsGpt(const proto::Model& model) {
  return model.family() == proto::GPT2 || model.family() == proto::GPT3;
}

// A LayerNorm has a weight and a bias, an RMSNorm a weight only.
int64_t NormParameters(const proto::Model& model) {
  return (IsGpt(model) ? 2 : 1) * model.hidden();
}

int64_t AttentionParameters(const proto::Model& model) {
  const int64_t query = model.heads() * model.head_dim();
  const int64_t qkv = query + 2 * model.kv_heads() * model.head_dim();
  int64_t count = model.hidden() * qkv + query * model.hidden();
  if (IsGpt(model)) count += qkv + model.hidden();
  if (model.family() == proto::QWEN2) count += qkv;
  if (model.family() == proto::QWEN3) count += 2 * model.head_dim();
  return count;
}

int64_t FeedForwardParameters(const proto::Model& model) {
  const int64_t matrix = model.hidden() * model.ffn_hidden();
  if (IsGpt(model)) return 2 * matrix + model.ffn_hidden() + model.hidden();
  return 3 * matrix;
}

}  // namespace

int64_t ParameterCount(const proto::Model& model) {
  const int64_t table = model.vocab() * model.hidden();
  const int64_t positions = IsGpt(model) ? model.max_sequence() * model.hidden() : 0;
  const int64_t layer =
      AttentionParameters(model) + FeedForwardParameters(model) + 2 * NormParameters(model);
  return table * (model.tie_embeddings() ? 1 : 2) + positions + model.layers() * layer +
         NormParameters(model);
}

}  // namespace planc
