// Products by cuBLASLt.
#include "braid/cuda/matmul/matmul.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <vector>

#include "braid/cuda/matmul/algorithm_file.h"
#include "braid/cuda/runtime/check.h"
#include "braid/cuda/runtime/launch_times.h"
#include "braid/cuda/runtime/runtime.h"

namespace braid::cuda {

namespace {

constexpr int kCandidates = 8;  // that are measured, or searched for one that is usable
constexpr int kRepeats = 5;     // of a measurement

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
      fail("matmul", str("needs floating-point tensors, got ", t));
  }
}

struct Choice {
  Description operation;
  Layout a, b, c;
  cublasLtMatmulAlgo_t algorithm;
  bool found = false;
};

struct Blas {  // of one GPU
  std::mutex mutex;
  Light handle;
  std::map<ProductKey, Choice> choices;
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

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(Algorithm), "a file keeps algorithms as eight words");

// One call of a plan: its factors, and where it starts in the three tensors.
struct Call {
  const MatmulPlan& plan;
  double alpha, beta;
  const MatmulPlan::Offsets& at;

  // Enqueues the product; the result goes to `to`, which has the layout of c, or to c itself.
  void run(Blas& blas, const Choice& choice, const cublasLtMatmulAlgo_t& algorithm, void* to = nullptr) const {
    const float narrow_alpha = static_cast<float>(alpha), narrow_beta = static_cast<float>(beta);
    const bool wide = plan.a.tensor->dtype() == DType::f64;
    const void* by = wide ? static_cast<const void*>(&alpha) : &narrow_alpha;
    const void* keep = wide ? static_cast<const void*>(&beta) : &narrow_beta;
    if (plan.bias) set(choice.operation.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, plan.bias->raw());
    void* c = const_cast<void*>(address(plan.c, at.c));
    const LaunchTimer timer([this] { return str("product ", text_of(plan), ", ", plan.batch, " times"); });
    check(cublasLtMatmul(blas.handle.get(), choice.operation.get(), by, address(plan.a, at.a), choice.a.get(),
                         address(plan.b, at.b), choice.b.get(), keep, c, choice.c.get(), to ? to : c, choice.c.get(),
                         &algorithm, blas.workspace.mutable_raw(), static_cast<size_t>(kBlasWorkspace),
                         current_stream()));
  }
};

// A result's fields are valid only where its state is SUCCESS.
bool usable(const cublasLtMatmulHeuristicResult_t& result) {
  return result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= static_cast<size_t>(kBlasWorkspace);
}

// The usable ones among the library's first `count` proposals, best first.
std::vector<cublasLtMatmulAlgo_t> proposals(Blas& blas, const Choice& choice, cublasLtMatmulPreference_t preference,
                                            int count) {
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(blas.handle.get(), choice.operation.get(), choice.a.get(), choice.b.get(),
                                     choice.c.get(), choice.c.get(), preference, count, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check(status);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < std::min(found, count); ++i)
    if (usable(results[static_cast<size_t>(i)])) algorithms.push_back(results[static_cast<size_t>(i)].algo);
  return algorithms;
}

// An algorithm of the file, if the library accepts it for this product.
cublasLtMatmulAlgo_t kept_algorithm(Blas& blas, const Choice& choice, const Algorithm& kept, const MatmulPlan& plan,
                                    const AlgorithmFile& file) {
  const auto algorithm = std::bit_cast<cublasLtMatmulAlgo_t>(kept);
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(blas.handle.get(), choice.operation.get(), choice.a.get(), choice.b.get(), choice.c.get(),
                              choice.c.get(), &algorithm, &result);
  braid::check(status == CUBLAS_STATUS_SUCCESS && usable(result), ErrorKind::input, [&] {
    return file.path() + ": cuBLASLt rejects the algorithm for " + text_of(plan) + "; delete the file to measure anew";
  });
  return algorithm;
}

// Bytes from the first to behind the last element of c.
int64_t extent(const MatmulPlan& p) {
  return ((p.batch - 1) * std::abs(p.c.batch) + (p.columns - 1) * p.c.leading + p.rows) * size_of(p.c.tensor->dtype());
}

// Each candidate's shortest time of kRepeats runs, in microseconds.
std::vector<double> times(Blas& blas, const Choice& choice, const std::vector<cublasLtMatmulAlgo_t>& candidates,
                          const Call& call) {
  // c is an operand where beta is not 0: the result goes elsewhere.
  Tensor elsewhere = call.beta != 0 ? empty({extent(call.plan)}, DType::u8, call.plan.c.tensor->device()) : Tensor();
  void* to = elsewhere ? elsewhere.mutable_raw() : nullptr;
  cudaEvent_t raw[2] = {};
  for (cudaEvent_t& event : raw) check(cudaEventCreate(&event));
  const Event begin(raw[0]), end(raw[1]);
  std::vector<double> best;
  for (const cublasLtMatmulAlgo_t& algorithm : candidates) {
    float shortest = 0;
    for (int i = -1; i < kRepeats; ++i) {  // the first run loads the kernel
      check(cudaEventRecord(begin.get(), current_stream()));
      call.run(blas, choice, algorithm, to);
      check(cudaEventRecord(end.get(), current_stream()));
      check(cudaEventSynchronize(end.get()));
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
      if (i <= 0 || milliseconds < shortest) shortest = milliseconds;
    }
    best.push_back(1e3 * static_cast<double>(shortest));
  }
  return best;
}

// The fastest candidate, which the file keeps; the first one where there is no memory to measure, or no room to keep it
// (the products of another GPU may have taken it meanwhile).
cublasLtMatmulAlgo_t measured_algorithm(Blas& blas, const Choice& choice,
                                        const std::vector<cublasLtMatmulAlgo_t>& candidates, const Call& call,
                                        const ProductKey& key, AlgorithmFile& file) {
  std::vector<double> microseconds{0};
  try {
    microseconds = times(blas, choice, candidates, call);
  } catch (const OutOfMemory&) {
  }
  const auto fastest = std::min_element(microseconds.begin(), microseconds.end());
  const cublasLtMatmulAlgo_t& algorithm = candidates[static_cast<size_t>(fastest - microseconds.begin())];
  return file.add(key, std::bit_cast<Algorithm>(algorithm), *fastest) ? algorithm : candidates.front();
}

Choice choose(Blas& blas, const Call& call, const ProductKey& key) {
  const MatmulPlan& p = call.plan;
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
  AlgorithmFile* file = algorithm_file(properties().name, static_cast<int64_t>(cublasLtGetVersion()));
  if (const Algorithm* kept = file ? file->find(key) : nullptr) {
    choice.algorithm = kept_algorithm(blas, choice, *kept, p, *file);
    choice.found = true;
    return choice;
  }

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference));
  const Preference owner(preference);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kBlasWorkspace));
  // Partial sums of a split inner axis are added in the type of the sums, never in 16 bits.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(key[0]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(key[1]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(key[2]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(key[2]));

  // Without a file always the library's first proposal: timing candidates would make results differ from run to run.
  const bool measures = file && file->measures();
  std::vector<cublasLtMatmulAlgo_t> candidates = proposals(blas, choice, preference, measures ? kCandidates : 1);
  if (candidates.empty()) candidates = proposals(blas, choice, preference, kCandidates);
  choice.found = !candidates.empty();
  if (!choice.found && p.bias) return choice;  // the bias can also come first
  braid::check(choice.found, "matmul", [&] { return "cuBLASLt has no algorithm for " + text_of(p); });
  choice.algorithm = measures && candidates.size() > 1 ? measured_algorithm(blas, choice, candidates, call, key, *file)
                                                       : candidates.front();
  return choice;
}

void open(Blas& blas, Device device) {
  if (blas.handle.get()) return;
  blas.workspace = empty({kBlasWorkspace}, DType::u8, device);  // first: where it fails, the next call begins anew
  cublasLtHandle_t raw = nullptr;
  check(cublasLtCreate(&raw));
  blas.handle = Light(raw);
}

}  // namespace

bool execute(const MatmulPlan& p, double alpha, double beta) {
  Blas& own = blas();
  std::lock_guard lock(own.mutex);
  for (const auto& at : p.calls) {
    const Call call{p, alpha, beta, at};
    const ProductKey key = key_of(p, at, beta != 0);
    auto it = own.choices.find(key);
    if (it == own.choices.end()) {
      check_may_choose(p);
      open(own, p.c.tensor->device());
      it = own.choices.emplace(key, choose(own, call, key)).first;
    }
    if (!it->second.found) return false;
    call.run(own, it->second, it->second.algorithm);
  }
  return true;
}

}  // namespace braid::cuda
