#include "tests/cuda/driver/stand_in.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "braid/cuda/runtime/runtime.h"
#include "braid/tensor/kernels/backend.h"

namespace stand_in {

Trace trace;
std::vector<Proposal> proposals;
int device = 0;
int status = cudaSuccess, driver = 13000;
int failing_allocations = 0, failing_launches = 0, failing_attributes = 0;
bool capturing = false;
std::map<std::pair<const void*, int>, int> attributes;

int64_t Trace::count(const std::string& name) const { return std::count(calls.begin(), calls.end(), name); }

}  // namespace stand_in

using stand_in::trace;

namespace {

double now = 0;  // milliseconds of the GPU

template <class T>
T handle() {  // any address that is not null
  static char place;
  return reinterpret_cast<T>(&place);
}

template <class T>
cudaError_t made(T* out, const char* call) {
  trace.calls.emplace_back(call);
  *out = handle<T>();
  return cudaSuccess;
}
template <class T>
cublasStatus_t created(T* out) {
  *out = handle<T>();
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

// ---- the runtime ----
#define STAND_IN(name, parameters, ...) \
  cudaError_t CUDARTAPI name parameters { __VA_ARGS__ return cudaSuccess; }

extern "C" {

STAND_IN(cudaGetDeviceCount, (int* count), {
  *count = 2;
  if (stand_in::status != cudaSuccess) return static_cast<cudaError_t>(stand_in::status);
})
STAND_IN(cudaDriverGetVersion, (int* version), *version = stand_in::driver;)
STAND_IN(cudaGetDeviceProperties, (cudaDeviceProp * p, int), {
  *p = {};
  std::strcpy(p->name, "stand-in GPU");
  p->major = 9;
  p->multiProcessorCount = 132;
  p->totalGlobalMem = size_t{1} << 30;
  p->sharedMemPerBlockOptin = 227 * 1024;
})
STAND_IN(cudaSetDevice, (int index), stand_in::device = index;)
STAND_IN(cudaGetDevice, (int* index), *index = stand_in::device;)
STAND_IN(cudaGetLastError, (), {})
STAND_IN(cudaStreamCreateWithFlags, (cudaStream_t * s, unsigned), *s = nullptr;)
STAND_IN(cudaStreamSynchronize, (cudaStream_t), {})
STAND_IN(cudaMemcpyAsync, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t), {
  trace.calls.emplace_back(kind == cudaMemcpyHostToDevice ? "to the GPU" : "to the CPU");
  std::memcpy(to, from, bytes);
})
STAND_IN(cudaFuncSetAttribute, (const void* function, cudaFuncAttribute attribute, int value), {
  trace.calls.emplace_back("cudaFuncSetAttribute");
  if (stand_in::failing_attributes > 0 && stand_in::failing_attributes--) return cudaErrorMemoryAllocation;
  stand_in::attributes[{function, attribute}] = value;
})
STAND_IN(cudaLaunchKernel, (const void*, dim3, dim3, void**, size_t, cudaStream_t), {
  trace.calls.emplace_back("cudaLaunchKernel");
  if (stand_in::failing_launches > 0 && stand_in::failing_launches--) return cudaErrorMemoryAllocation;
  now += 0.5;
})
STAND_IN(cudaFuncGetName, (const char** name, const void*), *name = "_ZN5braid4cuda9attention3mixILi16EEEvPKf";)
STAND_IN(cudaEventCreate, (cudaEvent_t * e), *e = reinterpret_cast<cudaEvent_t>(new double(0));)
STAND_IN(cudaEventDestroy, (cudaEvent_t e), delete reinterpret_cast<double*>(e);)
STAND_IN(cudaEventRecord, (cudaEvent_t e, cudaStream_t), *reinterpret_cast<double*>(e) = now;)
STAND_IN(cudaEventSynchronize, (cudaEvent_t), {})
STAND_IN(cudaEventElapsedTime, (float* ms, cudaEvent_t a, cudaEvent_t b),
         *ms = static_cast<float>(*reinterpret_cast<double*>(b) - *reinterpret_cast<double*>(a));)
STAND_IN(cudaMalloc, (void** p, size_t bytes), {
  trace.calls.emplace_back("cudaMalloc");
  if (stand_in::failing_allocations > 0 && stand_in::failing_allocations--) return cudaErrorMemoryAllocation;
  *p = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
})
STAND_IN(cudaFree, (void* p), {
  trace.calls.emplace_back("cudaFree");
  std::free(p);
})
STAND_IN(cudaMemGetInfo, (size_t * free, size_t* total), *free = *total = size_t{1} << 30;)
STAND_IN(cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode*), {})
STAND_IN(cudaStreamBeginCapture, (cudaStream_t, cudaStreamCaptureMode), stand_in::capturing = true;)
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  stand_in::capturing = false;
  return made(graph, "cudaStreamEndCapture");
}
#undef cudaGraphInstantiate
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* graph, cudaGraph_t, unsigned long long) {
  return made(graph, "cudaGraphInstantiate");
}
STAND_IN(cudaGraphUpload, (cudaGraphExec_t, cudaStream_t), {})
STAND_IN(cudaGraphGetNodes, (cudaGraph_t, cudaGraphNode_t*, size_t* count), *count = 1;)
STAND_IN(cudaGraphLaunch, (cudaGraphExec_t, cudaStream_t), {})
STAND_IN(cudaGraphDestroy, (cudaGraph_t), {})
STAND_IN(cudaGraphExecDestroy, (cudaGraphExec_t), {})
const char* CUDARTAPI cudaGetErrorString(cudaError_t) { return "an error"; }
const char* CUDARTAPI cudaGetErrorName(cudaError_t) { return "cudaError"; }

}  // extern "C"

// ---- cuBLASLt ----
extern "C" {

cublasStatus_t CUBLASWINAPI cublasLtCreate(cublasLtHandle_t* out) {
  trace.calls.emplace_back("cublasLtCreate");
  return stand_in::capturing ? CUBLAS_STATUS_NOT_INITIALIZED : created(out);
}
cublasStatus_t CUBLASWINAPI cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
size_t CUBLASWINAPI cublasLtGetVersion() { return 130000; }
const char* CUBLASWINAPI cublasLtGetStatusString(cublasStatus_t) { return "a status"; }
cublasStatus_t CUBLASWINAPI cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t, cudaDataType_t) {
  return created(out);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t CUBLASWINAPI cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
                                                           const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType, uint64_t, uint64_t,
                                                       int64_t) {
  return created(out);
}
cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
                                                             const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) { return created(out); }
cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                                 cublasLtMatmulPreferenceAttributes_t, const void*,
                                                                 size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                                           cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                           cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                           cublasLtMatmulPreference_t, int requested,
                                                           cublasLtMatmulHeuristicResult_t results[], int* found) {
  trace.calls.emplace_back("cublasLtMatmulAlgoGetHeuristic");
  if (stand_in::capturing) return CUBLAS_STATUS_INTERNAL_ERROR;
  *found = 0;
  for (const stand_in::Proposal& p : stand_in::proposals) {
    if (*found == requested) break;
    cublasLtMatmulHeuristicResult_t& result = results[(*found)++];
    result.algo = {};
    result.algo.data[0] = p.algorithm;
    result.workspaceSize = 0;
    result.state = static_cast<cublasStatus_t>(p.status);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                                    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                    cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulHeuristicResult_t* result) {
  trace.calls.emplace_back("cublasLtMatmulAlgoCheck");
  *result = {};
  for (const stand_in::Proposal& p : stand_in::proposals)
    if (p.algorithm == algorithm->data[0]) return result->state = static_cast<cublasStatus_t>(p.status);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t CUBLASWINAPI cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*,
                                           cublasLtMatrixLayout_t, const void*, cublasLtMatrixLayout_t, const void*,
                                           const void* c, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t,
                                           const cublasLtMatmulAlgo_t* algorithm, void*, size_t, cudaStream_t) {
  trace.products.push_back({algorithm->data[0], c, d});
  for (const stand_in::Proposal& p : stand_in::proposals)
    if (p.algorithm == algorithm->data[0]) now += p.milliseconds;
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

// ---- the table: memory, capture, products, linear algebra with the CPU's kernels around it ----
namespace braid {

const Backend& cuda_backend(int index) {
  static const Backend table{.name = "cuda",
                             .allocator = cuda::device_allocator,
                             .stream = cuda::stream_kernels,
                             .copy = cpu_backend().copy,
                             .pointwise = cpu_backend().pointwise,
                             .reduce = cpu_backend().reduce,
                             .matmul = cuda::matmul_kernels,
                             .linalg = cuda::linalg_kernels};
  cuda::use_device(index);
  return table;
}

}  // namespace braid
