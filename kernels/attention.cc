#include "kernels/attention.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/attention_amx.h"
#include "kernels/attention_block.h"

namespace planc::host {
namespace {

// Threads that get work: there is no more of it than key/value heads of all sequences.
int64_t ActiveThreads(const AttentionShape& shape, int threads) {
  return std::min<int64_t>(threads, shape.batch * shape.kv_heads);
}

AttentionShape WithScale(AttentionShape shape) {
  if (shape.scale == 0.0f) {
    shape.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
  }
  return shape;
}

int64_t ForwardBytes(const AttentionShape& shape) {
  return std::max(ForwardHeadBlocks(shape, nullptr).bytes(),
                  AmxForwardBlocks(shape, nullptr).bytes());
}

int64_t BackwardBytes(const AttentionShape& shape) {
  return std::max(BackwardHeadBlocks(shape, nullptr).bytes(),
                  AmxBackwardBlocks(shape, nullptr).bytes());
}

bool UsesAmx(DType dtype, const KernelContext& context) {
  return dtype == DType::kBF16 && context.instruction_set == InstructionSet::kAmxBf16;
}

// Calls work(batch, kv_head, thread's share of the workspace) for every key/value head.
template <typename Work>
void ForEachKvHead(const AttentionShape& shape, int64_t bytes_per_thread,
                   const KernelContext& context, const Work& work) {
  const int64_t heads = shape.batch * shape.kv_heads;
  const int64_t shares = static_cast<int64_t>(context.workspace_bytes) / bytes_per_thread;
  CHECK_GE(shares, 1) << "the workspace is too small for one thread";
  const int64_t active = std::min(ActiveThreads(shape, context.threads), shares);
  // Share i computes a fixed range of heads. All threads of the context form the team, busy or
  // not: OpenMP reuses a team as long as its size stays the same.
  const auto share = [&](int64_t i) {
    void* workspace = static_cast<char*>(context.workspace) + i * bytes_per_thread;
    for (int64_t head = heads * i / active; head < heads * (i + 1) / active; ++head) {
      work(head / shape.kv_heads, head % shape.kv_heads, workspace);
    }
  };
  if (context.threads == 1) return share(0);
#pragma omp parallel for num_threads(context.threads) schedule(static, 1)
  for (int64_t i = 0; i < active; ++i) share(i);
}

}  // namespace

absl::Status CheckAttentionShape(const AttentionShape& s) {
  if (s.batch < 1 || s.sequence < 1 || s.kv_heads < 1 || s.query_heads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("attention: batch ", s.batch, ", sequence ", s.sequence, ", query_heads ",
                     s.query_heads, ", kv_heads ", s.kv_heads, " must all be at least 1"));
  }
  if (s.query_heads % s.kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("attention: query_heads ", s.query_heads,
                                                   " is not a multiple of kv_heads ", s.kv_heads));
  }
  if (s.head_dim < 2 || s.head_dim % 2 != 0 || s.head_dim > kMaxHeadDim) {
    return absl::InvalidArgumentError(absl::StrCat("attention: head_dim ", s.head_dim,
                                                   " must be even and at most ", kMaxHeadDim));
  }
  if (!std::isfinite(s.scale)) {
    return absl::InvalidArgumentError("attention: scale must be finite");
  }
  return absl::OkStatus();
}

int64_t AttentionForwardWorkspaceBytes(const AttentionShape& shape, int threads) {
  return ActiveThreads(shape, threads) * ForwardBytes(shape);
}

int64_t AttentionBackwardWorkspaceBytes(const AttentionShape& shape, int threads) {
  return ActiveThreads(shape, threads) * BackwardBytes(shape);
}

void AttentionForward(const AttentionForwardArgs& given, DType dtype, KernelContext& context) {
  CHECK(dtype == DType::kF32 || dtype == DType::kBF16);
  AttentionForwardArgs args = given;
  args.shape = WithScale(given.shape);
  const bool uses_amx = UsesAmx(dtype, context);
  const int64_t bytes = ForwardBytes(args.shape);
  ForEachKvHead(args.shape, bytes, context, [&](int64_t batch, int64_t head, void* workspace) {
    if (uses_amx) {
      return AmxForwardKvHead(args, batch, head, AmxForwardBlocks(args.shape, workspace));
    }
    const ForwardHeadBlocks blocks(args.shape, workspace);
    ForwardKvHead(args, dtype, batch, head, blocks);
  });
}

void AttentionBackward(const AttentionBackwardArgs& given, DType dtype, KernelContext& context) {
  CHECK(dtype == DType::kF32 || dtype == DType::kBF16);
  AttentionBackwardArgs args = given;
  args.shape = WithScale(given.shape);
  const bool uses_amx = UsesAmx(dtype, context);
  const int64_t bytes = BackwardBytes(args.shape);
  ForEachKvHead(args.shape, bytes, context, [&](int64_t batch, int64_t head, void* workspace) {
    if (uses_amx) {
      return AmxBackwardKvHead(args, batch, head, AmxBackwardBlocks(args.shape, workspace));
    }
    const BackwardHeadBlocks blocks(args.shape, workspace);
    BackwardKvHead(args, dtype, batch, head, blocks);
  });
}

}  // namespace planc::host
