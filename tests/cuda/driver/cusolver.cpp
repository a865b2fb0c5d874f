// A cuSOLVER that computes by LAPACK, whose arguments are the same: what a GPU would get is tried on the CPU. It
// rejects what cuSOLVER rejects, and refuses workspaces that are smaller than those it asked for.
#include <cusolverDn.h>

#include <algorithm>
#include <vector>

#include "braid/tensor/linalg/lapack.h"
#include "tests/cuda/driver/stand_in.h"

namespace {

using namespace braid::linalg;

constexpr size_t kDevice = 40, kHost = 24;  // bytes that every routine asks for

cusolverStatus_t asks(size_t* device, size_t* host) {
  *device = kDevice;
  *host = kHost;
  return CUSOLVER_STATUS_SUCCESS;
}

// Writes to all of the workspace, then calls f<T>() for the type and returns what it reports.
template <class F>
cusolverStatus_t runs(cudaDataType type, void* device, size_t device_bytes, void* host, size_t host_bytes, int* info,
                      F&& f) {
  if (device_bytes < kDevice || host_bytes < kHost) return CUSOLVER_STATUS_INVALID_VALUE;
  std::fill_n(static_cast<char*>(device), device_bytes, char{0x5a});
  std::fill_n(static_cast<char*>(host), host_bytes, char{0x5a});
  *info = type == CUDA_R_64F ? f.template operator()<double>() : f.template operator()<float>();
  return CUSOLVER_STATUS_SUCCESS;
}

char triangle(cublasFillMode_t uplo) { return uplo == CUBLAS_FILL_MODE_UPPER ? 'U' : 'L'; }
int narrow(int64_t n) { return static_cast<int>(n); }

template <class T>
cusolverStatus_t makes_q(int m, int n, int k, T* a, int lda, const T* tau, T* work, int length, int* info) {
  if (m < n || n != k || lda != m || length < 5) return CUSOLVER_STATUS_INVALID_VALUE;
  std::fill_n(work, length, T(1));
  *info = orgqr(m, k, a, tau);
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cusolverStatus_t CUSOLVERAPI cusolverDnCreate(cusolverDnHandle_t* out) {
  *out = reinterpret_cast<cusolverDnHandle_t>(new char);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t CUSOLVERAPI cusolverDnDestroy(cusolverDnHandle_t handle) {
  delete reinterpret_cast<char*>(handle);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t CUSOLVERAPI cusolverDnCreateParams(cusolverDnParams_t* out) {
  *out = reinterpret_cast<cusolverDnParams_t>(new char);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t CUSOLVERAPI cusolverDnDestroyParams(cusolverDnParams_t parameters) {
  delete reinterpret_cast<char*>(parameters);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t CUSOLVERAPI cusolverDnSetStream(cusolverDnHandle_t, cudaStream_t) { return CUSOLVER_STATUS_SUCCESS; }

cusolverStatus_t CUSOLVERAPI cusolverDnXpotrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t,
                                                         int64_t, cudaDataType, const void*, int64_t, cudaDataType,
                                                         size_t* device, size_t* host) {
  return asks(device, host);
}
cusolverStatus_t CUSOLVERAPI cusolverDnXpotrf(cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t uplo, int64_t n,
                                              cudaDataType type, void* a, int64_t lda, cudaDataType, void* device,
                                              size_t device_bytes, void* host, size_t host_bytes, int* info) {
  if (lda != n) return CUSOLVER_STATUS_INVALID_VALUE;
  return runs(type, device, device_bytes, host, host_bytes, info,
              [&]<class T>() { return potrf(triangle(uplo), narrow(n), static_cast<T*>(a)); });
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgetrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, int64_t, int64_t,
                                                         cudaDataType, const void*, int64_t, cudaDataType,
                                                         size_t* device, size_t* host) {
  return asks(device, host);
}
cusolverStatus_t CUSOLVERAPI cusolverDnXgetrf(cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t n,
                                              cudaDataType type, void* a, int64_t lda, int64_t* pivots, cudaDataType,
                                              void* device, size_t device_bytes, void* host, size_t host_bytes,
                                              int* info) {
  if (lda != m || m != n) return CUSOLVER_STATUS_INVALID_VALUE;
  return runs(type, device, device_bytes, host, host_bytes, info, [&]<class T>() {
    std::vector<int> rows(static_cast<size_t>(n));
    const int found = getrf(narrow(n), static_cast<T*>(a), rows.data());
    std::copy(rows.begin(), rows.end(), pivots);
    return found;
  });
}
cusolverStatus_t CUSOLVERAPI cusolverDnXgetrs(cusolverDnHandle_t, cusolverDnParams_t, cublasOperation_t op, int64_t n,
                                              int64_t columns, cudaDataType type, const void* a, int64_t lda,
                                              const int64_t* pivots, cudaDataType, void* b, int64_t ldb, int* info) {
  if (lda != n || ldb != n) return CUSOLVER_STATUS_INVALID_VALUE;
  const std::vector<int> rows(pivots, pivots + n);
  char device[kDevice], host[kHost];
  return runs(type, device, kDevice, host, kHost, info, [&]<class T>() {
    return getrs(op == CUBLAS_OP_T ? 'T' : 'N', narrow(n), narrow(columns), static_cast<const T*>(a), rows.data(),
                 static_cast<T*>(b));
  });
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, int64_t, int64_t,
                                                         cudaDataType, const void*, int64_t, cudaDataType, const void*,
                                                         cudaDataType, size_t* device, size_t* host) {
  return asks(device, host);
}
cusolverStatus_t CUSOLVERAPI cusolverDnXgeqrf(cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t n,
                                              cudaDataType type, void* a, int64_t lda, cudaDataType, void* tau,
                                              cudaDataType, void* device, size_t device_bytes, void* host,
                                              size_t host_bytes, int* info) {
  if (lda != m) return CUSOLVER_STATUS_INVALID_VALUE;
  return runs(type, device, device_bytes, host, host_bytes, info,
              [&]<class T>() { return geqrf(narrow(m), narrow(n), static_cast<T*>(a), static_cast<T*>(tau)); });
}
cusolverStatus_t CUSOLVERAPI cusolverDnSorgqr_bufferSize(cusolverDnHandle_t, int, int, int, const float*, int,
                                                         const float*, int* length) {
  *length = 5;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t CUSOLVERAPI cusolverDnDorgqr_bufferSize(cusolverDnHandle_t, int, int, int, const double*, int,
                                                         const double*, int* length) {
  *length = 5;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t CUSOLVERAPI cusolverDnSorgqr(cusolverDnHandle_t, int m, int n, int k, float* a, int lda,
                                              const float* tau, float* work, int length, int* info) {
  return makes_q(m, n, k, a, lda, tau, work, length, info);
}
cusolverStatus_t CUSOLVERAPI cusolverDnDorgqr(cusolverDnHandle_t, int m, int n, int k, double* a, int lda,
                                              const double* tau, double* work, int length, int* info) {
  return makes_q(m, n, k, a, lda, tau, work, length, info);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXsyevd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                                         cublasFillMode_t, int64_t, cudaDataType, const void*, int64_t,
                                                         cudaDataType, const void*, cudaDataType, size_t* device,
                                                         size_t* host) {
  return asks(device, host);
}
cusolverStatus_t CUSOLVERAPI cusolverDnXsyevd(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t mode,
                                              cublasFillMode_t uplo, int64_t n, cudaDataType type, void* a, int64_t lda,
                                              cudaDataType, void* w, cudaDataType, void* device, size_t device_bytes,
                                              void* host, size_t host_bytes, int* info) {
  if (lda != n || mode != CUSOLVER_EIG_MODE_VECTOR) return CUSOLVER_STATUS_INVALID_VALUE;
  return runs(type, device, device_bytes, host, host_bytes, info,
              [&]<class T>() { return syevd(triangle(uplo), narrow(n), static_cast<T*>(a), static_cast<T*>(w)); });
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgesvd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, signed char,
                                                         signed char, int64_t, int64_t, cudaDataType, const void*,
                                                         int64_t, cudaDataType, const void*, cudaDataType, const void*,
                                                         int64_t, cudaDataType, const void*, int64_t, cudaDataType,
                                                         size_t* device, size_t* host) {
  return asks(device, host);
}
cusolverStatus_t CUSOLVERAPI cusolverDnXgesvd(cusolverDnHandle_t, cusolverDnParams_t, signed char u_mode,
                                              signed char v_mode, int64_t m, int64_t n, cudaDataType type, void* a,
                                              int64_t lda, cudaDataType, void* s, cudaDataType, void* u, int64_t ldu,
                                              cudaDataType, void* vt, int64_t ldvt, cudaDataType, void* device,
                                              size_t device_bytes, void* host, size_t host_bytes, int* info) {
  if (m < n || u_mode != 'S' || v_mode != 'S' || lda != m || ldu != m || ldvt != n)
    return CUSOLVER_STATUS_INVALID_VALUE;
  return runs(type, device, device_bytes, host, host_bytes, info, [&]<class T>() {
    return gesdd(narrow(m), narrow(n), static_cast<T*>(a), static_cast<T*>(s), static_cast<T*>(u), static_cast<T*>(vt));
  });
}

}  // extern "C"
