// Products by cuBLASLt.
#include "braid/cuda/matmul/matmul.h"

#include <array>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "braid/cuda/runtime/check.h"
#include "braid/cuda/runtime/runtime.h"

namespace braid::cuda {

namespace {

using Light = Handle<cublasLtHandle_t, cublasLtDestroy>;
using Description = Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType_t type_of(DType t) {
  switch (t) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      fail("matmul", "needs floating-point tensors, got " + str(t));
  }
}

// A choice of algorithm depends on types, sizes, layouts and the alignment of pointers.
using Key = std::array<int64_t, 19>;

struct Choice {
  Description operation;
  Layout a, b, c;
  cublasLtMatmulAlgo_t algorithm;
  bool found = false;
};

struct Blas {  // of one GPU
  std::mutex mutex;
  Light handle;
  std::map<Key, Choice> choices;
  Tensor workspace;
};

Blas& blas() {
  static auto* of = new std::array<Blas, 64>;  // never destroyed: the driver may be gone by then
  return (*of)[static_cast<size_t>(current_device())];
}

template <class T>
void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, T value) {
  check(cublasLtMatmulDescSetAttribute(d, what, &value, sizeof value));
}
template <class T>
void set(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t what, T value) {
  check(cublasLtMatrixLayoutSetAttribute(l, what, &value, sizeof value));
}
template <class T>
void set(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what, T value) {
  check(cublasLtMatmulPreferenceSetAttribute(p, what, &value, sizeof value));
}

Layout layout_of(const BlasOperand& o, int64_t rows, int64_t columns, int64_t batch) {
  if (o.transposed) std::swap(rows, columns);
  cublasLtMatrixLayout_t raw = nullptr;
  check(cublasLtMatrixLayoutCreate(&raw, type_of(o.tensor->dtype()), static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), o.leading));
  Layout layout(raw);
  set(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
  set(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, o.batch);
  return layout;
}

const void* address(const BlasOperand& o, int64_t offset) {
  return static_cast<const std::byte*>(o.tensor->raw()) + offset * size_of(o.tensor->dtype());
}

// The power of two, up to 256, that all of the operand's addresses are multiples of.
int64_t alignment(const BlasOperand& o, int64_t offset) {
  const uint64_t all = std::bit_cast<uintptr_t>(address(o, offset)) |
                       static_cast<uint64_t>((o.batch | o.leading) * size_of(o.tensor->dtype())) | 256u;
  return int64_t{1} << std::countr_zero(all);
}

Choice choose(Blas& blas, const MatmulPlan& p, const Key& alignments) {
  const bool wide = p.a.tensor->dtype() == DType::f64;
  Choice choice;
  cublasLtMatmulDesc_t operation = nullptr;
  check(cublasLtMatmulDescCreate(&operation, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                 wide ? CUDA_R_64F : CUDA_R_32F));
  choice.operation = Description(operation);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  choice.a = layout_of(p.a, p.rows, p.inner, p.batch);
  choice.b = layout_of(p.b, p.inner, p.columns, p.batch);
  choice.c = layout_of(p.c, p.rows, p.columns, p.batch);
  if (p.bias) {
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(p.bias->dtype()));
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias->raw());
  }

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference));
  const Preference owner(preference);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kBlasWorkspace));
  // Partial sums of a split inner axis are added in the type of the sums, never in 16 bits.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(alignments[0]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(alignments[1]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(alignments[2]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(alignments[2]));

  // Always the library's first proposal: timing candidates would make results differ from run to run.
  cublasLtMatmulHeuristicResult_t result;
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(blas.handle.get(), operation, choice.a.get(), choice.b.get(), choice.c.get(),
                                     choice.c.get(), preference, 1, &result, &found);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status);
  choice.found = status == CUBLAS_STATUS_SUCCESS && found > 0;
  if (!choice.found && p.bias) return choice;  // the bias can also come first
  braid::check(choice.found, "matmul", [&] {
    return "cuBLASLt has no algorithm for (" + std::to_string(p.rows) + ", " + std::to_string(p.inner) + ") x (" +
           std::to_string(p.inner) + ", " + std::to_string(p.columns) + ") of " + str(p.a.tensor->dtype());
  });
  choice.algorithm = result.algo;
  return choice;
}

}  // namespace

bool execute(const MatmulPlan& p, double alpha, double beta) {
  Blas& own = blas();
  std::lock_guard lock(own.mutex);
  if (!own.handle.get()) {
    cublasLtHandle_t raw = nullptr;
    check(cublasLtCreate(&raw));
    own.handle = Light(raw);
    own.workspace = empty({kBlasWorkspace}, DType::u8, p.c.tensor->device());
  }
  const float narrow_alpha = static_cast<float>(alpha), narrow_beta = static_cast<float>(beta);
  const bool wide = p.a.tensor->dtype() == DType::f64;
  const void* by = wide ? static_cast<const void*>(&alpha) : &narrow_alpha;
  const void* keep = wide ? static_cast<const void*>(&beta) : &narrow_beta;
  for (const auto& call : p.calls) {
    const Key key{alignment(p.a, call.a),
                  alignment(p.b, call.b),
                  alignment(p.c, call.c),
                  static_cast<int64_t>(p.a.tensor->dtype()),
                  static_cast<int64_t>(p.c.tensor->dtype()),
                  p.rows,
                  p.columns,
                  p.inner,
                  p.batch,
                  p.a.transposed,
                  p.b.transposed,
                  p.a.leading,
                  p.b.leading,
                  p.c.leading,
                  p.a.batch,
                  p.b.batch,
                  p.c.batch,
                  beta != 0,
                  p.bias != nullptr};
    auto it = own.choices.find(key);
    if (it == own.choices.end()) it = own.choices.emplace(key, choose(own, p, key)).first;
    const Choice& choice = it->second;
    if (!choice.found) return false;
    if (p.bias) set(choice.operation.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias->raw());
    void* c = const_cast<void*>(address(p.c, call.c));
    check(cublasLtMatmul(own.handle.get(), choice.operation.get(), by, address(p.a, call.a), choice.a.get(),
                         address(p.b, call.b), choice.b.get(), keep, c, choice.c.get(), c, choice.c.get(),
                         &choice.algorithm, own.workspace.mutable_raw(), static_cast<size_t>(kBlasWorkspace),
                         current_stream()));
  }
  return true;
}

}  // namespace braid::cuda
