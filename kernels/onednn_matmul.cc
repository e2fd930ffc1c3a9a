#include "kernels/onednn_matmul.h"

#include <glog/logging.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "schemas/status.h"

namespace planc::host {
namespace {

// Destroys a oneDNN handle when it goes out of scope.
template <typename Handle, dnnl_status_t (*kDestroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) kDestroy(handle_);
  }
  Handle* out() { return &handle_; }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using Engine = Owned<dnnl_engine_t, dnnl_engine_destroy>;
using Stream = Owned<dnnl_stream_t, dnnl_stream_destroy>;
using Attributes = Owned<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;
using PostOps = Owned<dnnl_post_ops_t, dnnl_post_ops_destroy>;
using PrimitiveDesc = Owned<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using Primitive = Owned<dnnl_primitive_t, dnnl_primitive_destroy>;
using Memory = Owned<dnnl_memory_t, dnnl_memory_destroy>;

// oneDNN takes the number of OpenMP threads from the calling thread, both when it prepares a
// primitive and when it runs it.
class ThreadsScope {
 public:
  explicit ThreadsScope(int threads) : before_(omp_get_max_threads()) {
    if (threads != before_) omp_set_num_threads(threads);
  }
  ~ThreadsScope() {
    if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
  }

 private:
  int before_;
};

absl::Status FromOneDnn(dnnl_status_t status, const std::string& call) {
  if (status == dnnl_success) return absl::OkStatus();
  const std::string message = absl::StrCat("oneDNN ", call, ": status ", static_cast<int>(status));
  if (status == dnnl_unimplemented) return absl::UnimplementedError(message);
  return absl::InternalError(message);
}

dnnl_data_type_t OneDnnType(DType dtype) { return dtype == DType::kBF16 ? dnnl_bf16 : dnnl_f32; }

// The description of op(X), rows x columns; X is stored with `stride` elements from row to row.
absl::Status Describe(int64_t rows, int64_t columns, DType dtype, bool transposed, int64_t stride,
                      dnnl_memory_desc_t* description) {
  const dnnl_dims_t dims = {rows, columns};
  const dnnl_dims_t strides = {transposed ? 1 : stride, transposed ? stride : 1};
  return FromOneDnn(
      dnnl_memory_desc_init_by_strides(description, 2, dims, OneDnnType(dtype), strides),
      "memory_desc_init_by_strides");
}

class OneDnnMatmul : public Matmul {
 public:
  OneDnnMatmul(const MatmulShape& shape, int threads) : Matmul(shape), threads_(threads) {}

  absl::Status Prepare() {
    PLANC_RETURN_IF_ERROR(FromOneDnn(dnnl_engine_create(engine_.out(), dnnl_cpu, 0), "engine"));
    PLANC_RETURN_IF_ERROR(FromOneDnn(
        dnnl_stream_create(stream_.out(), engine_.get(), dnnl_stream_default_flags), "stream"));
    PLANC_RETURN_IF_ERROR(ChooseKernel());
    return MakeMemories();
  }

  void Run(const void* a, const void* b, void* c, KernelContext& context) override {
    CHECK_EQ(context.threads, threads_);
    CHECK_GE(static_cast<int64_t>(context.workspace_bytes), workspace_bytes());
    const ThreadsScope threads(threads_);
    SetData(a_, const_cast<void*>(a));
    SetData(b_, const_cast<void*>(b));
    SetData(c_, c);
    SetData(scratch_, context.workspace);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, a_.get()},
                                    {DNNL_ARG_WEIGHTS, b_.get()},
                                    {DNNL_ARG_DST, c_.get()},
                                    {DNNL_ARG_SCRATCHPAD, scratch_.get()}};
    CHECK_EQ(dnnl_primitive_execute(primitive_.get(), stream_.get(), 4, args), dnnl_success);
    CHECK_EQ(dnnl_stream_wait(stream_.get()), dnnl_success);
  }

  std::string implementation() const override { return absl::StrCat("onednn ", kernel_name_); }
  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(dnnl_memory_desc_get_size(&scratch_description_));
  }

 private:
  absl::Status ChooseKernel() {
    const MatmulShape& s = shape();
    const ThreadsScope threads(threads_);
    PLANC_RETURN_IF_ERROR(Describe(s.m, s.k, s.a, s.transpose_a, s.lda, &a_description_));
    PLANC_RETURN_IF_ERROR(Describe(s.k, s.n, s.b, s.transpose_b, s.ldb, &b_description_));
    PLANC_RETURN_IF_ERROR(Describe(s.m, s.n, s.c, false, s.ldc, &c_description_));
    dnnl_matmul_desc_t product;
    PLANC_RETURN_IF_ERROR(FromOneDnn(
        dnnl_matmul_desc_init(&product, &a_description_, &b_description_, nullptr, &c_description_),
        "matmul_desc_init"));
    Attributes attributes;
    PLANC_RETURN_IF_ERROR(MakeAttributes(attributes));
    PrimitiveDesc chosen;
    PLANC_RETURN_IF_ERROR(
        FromOneDnn(dnnl_primitive_desc_create(chosen.out(), &product, attributes.get(),
                                              engine_.get(), nullptr),
                   "matmul"));
    const char* name = nullptr;
    PLANC_RETURN_IF_ERROR(FromOneDnn(
        dnnl_primitive_desc_query(chosen.get(), dnnl_query_impl_info_str, 0, &name), "query"));
    kernel_name_ = name;
    if (absl::StartsWith(kernel_name_, "ref")) {
      return absl::UnimplementedError("oneDNN has only its unoptimised reference kernel");
    }
    scratch_description_ = *dnnl_primitive_desc_query_md(chosen.get(), dnnl_query_scratchpad_md, 0);
    return FromOneDnn(dnnl_primitive_create(primitive_.out(), chosen.get()), "primitive");
  }

  // Scratch comes from the caller, and a sum makes C += out of C =.
  absl::Status MakeAttributes(Attributes& attributes) const {
    PLANC_RETURN_IF_ERROR(FromOneDnn(dnnl_primitive_attr_create(attributes.out()), "attributes"));
    PLANC_RETURN_IF_ERROR(FromOneDnn(
        dnnl_primitive_attr_set_scratchpad_mode(attributes.get(), dnnl_scratchpad_mode_user),
        "scratchpad_mode"));
    if (!shape().accumulate) return absl::OkStatus();
    PostOps post_ops;
    PLANC_RETURN_IF_ERROR(FromOneDnn(dnnl_post_ops_create(post_ops.out()), "post_ops"));
    PLANC_RETURN_IF_ERROR(FromOneDnn(dnnl_post_ops_append_sum(post_ops.get(), 1.0f), "append_sum"));
    return FromOneDnn(dnnl_primitive_attr_set_post_ops(attributes.get(), post_ops.get()),
                      "set_post_ops");
  }

  absl::Status MakeMemory(const dnnl_memory_desc_t& description, Memory& memory) {
    return FromOneDnn(
        dnnl_memory_create(memory.out(), &description, engine_.get(), DNNL_MEMORY_NONE), "memory");
  }

  absl::Status MakeMemories() {
    PLANC_RETURN_IF_ERROR(MakeMemory(a_description_, a_));
    PLANC_RETURN_IF_ERROR(MakeMemory(b_description_, b_));
    PLANC_RETURN_IF_ERROR(MakeMemory(c_description_, c_));
    return MakeMemory(scratch_description_, scratch_);
  }

  static void SetData(const Memory& memory, void* data) {
    CHECK_EQ(dnnl_memory_set_data_handle(memory.get(), data), dnnl_success);
  }

  int threads_;
  std::string kernel_name_;
  dnnl_memory_desc_t a_description_, b_description_, c_description_, scratch_description_;
  Engine engine_;
  Stream stream_;
  Memory a_, b_, c_, scratch_;
  Primitive primitive_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Matmul>> MakeOneDnnMatmul(const MatmulShape& shape, int threads) {
  auto matmul = std::make_unique<OneDnnMatmul>(shape, threads);
  PLANC_RETURN_IF_ERROR(matmul->Prepare());
  return matmul;
}

}  // namespace planc::host
