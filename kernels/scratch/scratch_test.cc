// Every kernel that takes a workspace stays inside it: run with exactly the bytes that plans
// reserve, and with exactly those below which the verifier refuses a plan, each time directly
// before a page that nobody may touch.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/norm.h"
#include "kernels/property_test.h"
#include "kernels/tested_instruction_set.h"
#include "schemas/opcode.h"
#include "schemas/verify_scratch.h"
#include "schemas/workspace.h"

namespace planc::host {
namespace {

// Memory aligned to 64 bytes whose end, rounded up to the alignment, is that of the last page that
// may be touched.
class ProtectedWorkspace {
 public:
  explicit ProtectedWorkspace(int64_t bytes)
      : bytes_(bytes), page_(sysconf(_SC_PAGESIZE)), mapped_(Up(bytes, page_) + page_) {
    void* map = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(map, MAP_FAILED);
    map_ = static_cast<uint8_t*>(map);
    EXPECT_EQ(mprotect(end(), page_, PROT_NONE), 0);
    data_ = end() - Up(bytes, 64);
    std::memset(map_, kPattern, mapped_ - page_);
  }
  ~ProtectedWorkspace() { munmap(map_, mapped_); }
  ProtectedWorkspace(const ProtectedWorkspace&) = delete;
  ProtectedWorkspace& operator=(const ProtectedWorkspace&) = delete;

  uint8_t* data() { return data_; }
  uint8_t* end() { return map_ + mapped_ - page_; }

  // One past the highest byte that was written.
  int64_t Touched() {
    uint8_t* last = end();
    while (last > data_ && last[-1] == kPattern) --last;
    return last - data_;
  }
  bool IntactBefore() {
    return std::all_of(map_, data_, [](uint8_t byte) { return byte == kPattern; });
  }

 private:
  static constexpr uint8_t kPattern = 0xff;  // as floats: NaN
  static int64_t Up(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }

  int64_t bytes_;
  int64_t page_;
  int64_t mapped_;
  uint8_t* map_ = nullptr;
  uint8_t* data_ = nullptr;
};

// `planned` bytes are what a plan reserves, of which the verifier asks for `least`.
void ExpectInside(int64_t planned, int64_t least, const std::function<void(KernelContext&)>& run) {
  EXPECT_LE(least, planned);
  for (const int64_t bytes : {planned, least}) {
    for (const int threads : {1, 2, 3, kAttentionThreads, 7}) {
      ProtectedWorkspace workspace(bytes);
      KernelContext context;
      context.workspace = workspace.data();
      context.workspace_bytes = static_cast<size_t>(bytes);
      context.threads = threads;
      context.instruction_set = TestedInstructionSet();
      run(context);
      EXPECT_LE(workspace.Touched(), bytes) << threads << " threads, planned " << planned;
      EXPECT_TRUE(workspace.IntactBefore()) << threads << " threads, planned " << planned;
    }
  }
}

int64_t Least(Opcode opcode, const std::vector<int64_t>& integers) {
  return verifying::LeastScratchBytes(opcode, integers.data(), 1, 1);
}

TEST(Scratch, TheByteBehindIsProtectedAndWritesAreSeen) {
  ProtectedWorkspace workspace(1000);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], workspace.end() - 1, 1), 1);
  EXPECT_EQ(write(ends[1], workspace.end(), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(workspace.Touched(), 0);
  workspace.data()[700] = 1;
  EXPECT_EQ(workspace.Touched(), 701);
  workspace.data()[1000] = 1;
  EXPECT_EQ(workspace.Touched(), 1001);
  EXPECT_TRUE(workspace.IntactBefore());
  workspace.data()[-1] = 1;
  EXPECT_FALSE(workspace.IntactBefore());
}

TEST(Scratch, Matmul) {
  ForEachCase(7100, 60, [](RandomCase& random) {
    MatmulShape shape;
    const int64_t most = random.Chance(0.1) ? 500 : 150;
    shape.m = random.Size(most);
    shape.n = random.Size(most);
    shape.k = random.Size(most);
    shape.transpose_a = random.Chance(0.5);
    shape.transpose_b = random.Chance(0.5);
    shape.accumulate = random.Chance(0.5);
    shape.a = shape.b = random.ElementType();
    shape.c = shape.a == DType::kF32 ? DType::kF32 : random.ElementType();
    const ValueKind kind = ValueKind::kNormal;
    StridedOperand a = random.Vector(shape.a, shape.m * shape.k, kind);
    StridedOperand b = random.Vector(shape.b, shape.k * shape.n, kind);
    StridedOperand c = random.Vector(shape.c, shape.m * shape.n, kind);
    for (const MatmulImplementation kernel :
         {MatmulImplementation::kAutomatic, MatmulImplementation::kPacked}) {
      ExpectInside(
          MatmulWorkspaceBudget(shape.m, shape.n, shape.k),
          Least(Opcode::kMatmul, {shape.m, shape.n, shape.k}), [&](KernelContext& context) {
            auto matmul = Matmul::Create(shape, context.threads, context.instruction_set, kernel);
            ASSERT_TRUE(matmul.ok()) << matmul.status();
            (*matmul)->Run(a.data(), b.data(), c.data(), context);
          });
    }
  });
}

TEST(Scratch, RowSums) {
  ForEachCase(7200, 60, [](RandomCase& random) {
    const int64_t rows = random.Chance(0.1) ? random.Between(1900, 2300) : random.Size(200);
    const int64_t columns = random.Size(300);
    const DType type = random.ElementType();
    const DType sum_type = random.ElementType();
    const ValueKind kind = ValueKind::kNormal;
    StridedOperand dy = random.Vector(type, rows * columns, kind);
    StridedOperand x = random.Vector(type, rows * columns, kind);
    StridedOperand dx = random.Vector(type, rows * columns, kind);
    StridedOperand weight = random.Vector(type, columns, kind);
    StridedOperand row = random.Vector(DType::kF32, rows, kind);
    StridedOperand dweight = random.Vector(sum_type, columns, kind);
    StridedOperand dbias = random.Vector(sum_type, columns, kind);
    const int64_t planned = RowSumWorkspaceBudget(rows, columns);
    ExpectInside(planned, Least(Opcode::kRmsNormBackward, {rows, columns}),
                 [&](KernelContext& context) {
                   RmsNormBackward({.tokens = rows,
                                    .hidden = columns,
                                    .dy = dy.data(),
                                    .x = x.data(),
                                    .weight = weight.data(),
                                    .rstd = row.floats(),
                                    .dx = dx.data(),
                                    .accumulate_dx = true,
                                    .dweight = dweight.data(),
                                    .dweight_dtype = sum_type},
                                   type, context);
                 });
    ExpectInside(RowSumWorkspaceBudget(rows, 2 * columns),
                 Least(Opcode::kLayerNormBackward, {rows, columns}), [&](KernelContext& context) {
                   LayerNormBackward({.tokens = rows,
                                      .hidden = columns,
                                      .dy = dy.data(),
                                      .x = x.data(),
                                      .weight = weight.data(),
                                      .mean = row.floats(),
                                      .rstd = row.floats(),
                                      .dx = dx.data(),
                                      .dweight = dweight.data(),
                                      .dbias = dbias.data(),
                                      .dweight_dtype = sum_type},
                                     type, context);
                 });
    ExpectInside(planned, Least(Opcode::kBiasBackward, {rows, columns}),
                 [&](KernelContext& context) {
                   BiasBackward({.tokens = rows,
                                 .columns = columns,
                                 .dy = dy.data(),
                                 .dbias = dbias.data(),
                                 .dbias_dtype = sum_type},
                                type, context);
                 });
  });
}

TEST(Scratch, HeadNorm) {
  ForEachCase(7300, 40, [](RandomCase& random) {
    const int64_t rows = random.Size(200);
    const int64_t heads = random.Between(1, 5);
    const int64_t head_dim = 2 * random.Size(64);
    const DType type = random.ElementType();
    const DType sum_type = random.ElementType();
    const int64_t stride = heads * head_dim;
    StridedOperand dy = random.Vector(type, rows * stride, ValueKind::kNormal);
    StridedOperand x = random.Vector(type, rows * stride, ValueKind::kNormal);
    StridedOperand weight = random.Vector(type, head_dim, ValueKind::kNormal);
    StridedOperand rstd = random.Vector(DType::kF32, rows * heads, ValueKind::kNormal);
    StridedOperand dweight = random.Vector(sum_type, head_dim, ValueKind::kNormal);
    ExpectInside(RowSumWorkspaceBudget(rows, head_dim),
                 Least(Opcode::kHeadNormBackward, {rows, heads, 1, head_dim}),
                 [&](KernelContext& context) {
                   HeadNormBackward({.tokens = rows,
                                     .heads = heads,
                                     .head_dim = head_dim,
                                     .dy = dy.data(),
                                     .dy_stride = stride,
                                     .x = x.data(),
                                     .x_stride = stride,
                                     .weight = weight.data(),
                                     .rstd = rstd.floats(),
                                     .dx = dy.data(),
                                     .dx_stride = stride,
                                     .dweight = dweight.data(),
                                     .dweight_dtype = sum_type},
                                    type, context);
                 });
  });
}

TEST(Scratch, Attention) {
  ForEachCase(7400, 20, [](RandomCase& random) {
    AttentionShape shape;
    shape.batch = random.Between(1, 2);
    shape.sequence = random.Size(random.Chance(0.2) ? 600 : 130);
    shape.kv_heads = random.Between(1, 3);
    shape.query_heads = shape.kv_heads * random.Between(1, 2);
    shape.head_dim = 2 * random.Size(random.Chance(0.2) ? 128 : 40);
    const DType type = random.ElementType();
    const int64_t rows = shape.batch * shape.sequence;
    const int64_t columns = (shape.query_heads + 2 * shape.kv_heads) * shape.head_dim;
    StridedOperand qkv = random.Vector(type, rows * columns, ValueKind::kNormal);
    StridedOperand dqkv = random.Vector(type, rows * columns, ValueKind::kNormal);
    const int64_t outputs = rows * shape.query_heads * shape.head_dim;
    StridedOperand o = random.Vector(type, outputs, ValueKind::kNormal);
    StridedOperand d_o = random.Vector(type, outputs, ValueKind::kNormal);
    StridedOperand lse = random.Vector(DType::kF32, rows * shape.query_heads, ValueKind::kNormal);
    const std::vector<int64_t> integers = {shape.batch, shape.sequence, shape.query_heads,
                                           shape.kv_heads, shape.head_dim};
    const int64_t planned = AttentionWorkspaceBudget(shape.sequence, shape.head_dim);
    ExpectInside(planned, Least(Opcode::kAttentionForward, integers), [&](KernelContext& context) {
      AttentionForward({.shape = shape, .qkv = qkv.data(), .o = o.data(), .lse = lse.floats()},
                       type, context);
    });
    ExpectInside(planned, Least(Opcode::kAttentionBackward, integers), [&](KernelContext& context) {
      AttentionBackward({.shape = shape,
                         .qkv = qkv.data(),
                         .o = o.data(),
                         .lse = lse.floats(),
                         .d_o = d_o.data(),
                         .dqkv = dqkv.data()},
                        type, context);
    });
  });
}

}  // namespace
}  // namespace planc::host
