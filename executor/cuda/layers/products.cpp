#include "executor/cuda/layers/products.h"

#include <fmt/format.h>

#include <compare>
#include <map>
#include <optional>
#include <type_traits>

#include "executor/cuda/libraries/cublas_lt.h"
#include "executor/cuda/memory/buffers.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;  // bytes; Hopper's kernels want 32 MiB

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("{}: {}", what, cublas_lt().status_string(status)));
}

template <class E>
constexpr cudaDataType_t kType = std::is_same_v<E, Bf16>   ? CUDA_R_16BF
                                 : std::is_same_v<E, Half> ? CUDA_R_16F
                                                           : CUDA_R_32F;

/// What decides the algorithm. cuBLAS has columns where we have rows: it is given out^T = b^T a^T,
/// so its first operand is our b.
struct Key {
  std::int64_t rows, columns, inner, a_stride, b_stride, out_stride;
  bool a_transposed, b_transposed, accumulate, biased;
  std::uint32_t alignment;  // bytes, of all pointers
  cudaDataType_t type, out_type;
  auto operator<=>(const Key&) const = default;
};

/// Parts of buffers are multiplied too: 16 bytes are the most that a pointer promises.
std::uint32_t alignment_of(std::initializer_list<const void*> pointers) {
  std::uintptr_t bits = 16;
  for (const void* pointer : pointers) bits |= reinterpret_cast<std::uintptr_t>(pointer);
  return static_cast<std::uint32_t>(bits & (~bits + 1));  // the lowest that is set
}

/// One product's description, made once for a key.
class Plan {
 public:
  Plan(cublasLtHandle_t handle, const Key& key) {
    check(cublas_lt().matmul_desc_create(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "matmul");
    set(CUBLASLT_MATMUL_DESC_TRANSA, key.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, key.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (key.biased) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, key.type);
    }
    first_ = layout(key.type, key.columns, key.inner, key.b_stride, key.b_transposed);
    second_ = layout(key.type, key.inner, key.rows, key.a_stride, key.a_transposed);
    out_ = layout(key.out_type, key.columns, key.rows, key.out_stride, false);
    choose(handle, key);
  }
  ~Plan() {
    cublas_lt().matrix_layout_destroy(out_);
    cublas_lt().matrix_layout_destroy(second_);
    cublas_lt().matrix_layout_destroy(first_);
    cublas_lt().matmul_desc_destroy(operation_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void run(cublasLtHandle_t handle, const void* a, const void* b, void* out, bool accumulate,
           const void* bias, void* workspace, cudaStream_t stream) {
    if (bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const float one = 1, before = accumulate ? 1.0f : 0.0f;
    check(cublas_lt().matmul(handle, operation_, &one, b, first_, a, second_, &before, out, out_,
                             out, out_, &algorithm_, workspace, kWorkspace, stream),
          "matrix product");
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublas_lt().matmul_desc_set_attribute(operation_, attribute, &value, sizeof(value)),
          "matmul");
  }
  /// Of a matrix that is (rows, columns) after the transposition, in columns.
  static cublasLtMatrixLayout_t layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                                       std::int64_t stride, bool transposed) {
    if (transposed) std::swap(rows, columns);
    cublasLtMatrixLayout_t made = nullptr;
    check(cublas_lt().matrix_layout_create(&made, type, static_cast<std::uint64_t>(rows),
                                           static_cast<std::uint64_t>(columns), stride),
          "matrix layout");
    return made;
  }
  void choose(cublasLtHandle_t handle, const Key& key) {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublas_lt().matmul_preference_create(&preference), "matmul");
    const std::size_t workspace = kWorkspace;
    check(cublas_lt().matmul_preference_set_attribute(
              preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)),
          "matmul");
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      check(cublas_lt().matmul_preference_set_attribute(preference, attribute, &key.alignment,
                                                        sizeof(key.alignment)),
            "matmul");
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = cublas_lt().matmul_algo_get_heuristic(
        handle, operation_, first_, second_, out_, out_, preference, 1, &best, &found);
    cublas_lt().matmul_preference_destroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0)
      throw DeviceError(fmt::format("cuBLASLt has no product of {} x {} by {} x {}", key.rows,
                                    key.inner, key.inner, key.columns));
    algorithm_ = best.algo;
  }

  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, out_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace

struct Products::Library {
  explicit Library(cudaStream_t s) : stream(s), workspace(static_cast<std::int64_t>(kWorkspace)) {
    check(cublas_lt().create(&handle), "cuBLASLt");
  }
  ~Library() {
    plans.clear();
    cublas_lt().destroy(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  cudaStream_t stream;
  cublasLtHandle_t handle = nullptr;
  DeviceBuffer<std::byte> workspace;
  std::map<Key, Plan> plans;
};

Products::Products(cudaStream_t stream) : library_(std::make_unique<Library>(stream)) {}
Products::~Products() = default;

template <class E, class Out>
void Products::multiply(const ProductShape& s, DeviceMatrix<E> a, DeviceMatrix<E> b, Out* out,
                        std::int64_t out_stride, bool accumulate, const E* bias) {
  RECKON_CHECK(bias == nullptr || (std::is_same_v<E, Out>));
  const Key key{s.rows,
                s.columns,
                s.inner,
                a.stride,
                b.stride,
                out_stride,
                a.transposed,
                b.transposed,
                accumulate,
                bias != nullptr,
                alignment_of({a.data, b.data, out, bias}),
                kType<E>,
                kType<Out>};
  Library& l = *library_;
  const auto plan = l.plans.try_emplace(key, l.handle, key).first;
  plan->second.run(l.handle, a.data, b.data, out, accumulate, bias, l.workspace.data(), l.stream);
}

template void Products::multiply<float, float>(const ProductShape&, DeviceMatrix<float>,
                                               DeviceMatrix<float>, float*, std::int64_t, bool,
                                               const float*);
template void Products::multiply<Bf16, Bf16>(const ProductShape&, DeviceMatrix<Bf16>,
                                             DeviceMatrix<Bf16>, Bf16*, std::int64_t, bool,
                                             const Bf16*);
template void Products::multiply<Bf16, float>(const ProductShape&, DeviceMatrix<Bf16>,
                                              DeviceMatrix<Bf16>, float*, std::int64_t, bool,
                                              const Bf16*);
template void Products::multiply<Half, Half>(const ProductShape&, DeviceMatrix<Half>,
                                             DeviceMatrix<Half>, Half*, std::int64_t, bool,
                                             const Half*);
template void Products::multiply<Half, float>(const ProductShape&, DeviceMatrix<Half>,
                                              DeviceMatrix<Half>, float*, std::int64_t, bool,
                                              const Half*);

}  // namespace reckon::cuda
