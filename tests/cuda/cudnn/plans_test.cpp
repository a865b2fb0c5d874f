// cuDNN compiles its kernels of attention for an H200 that is not here: the operations as Braid describes them are a
// chain that it knows. Their results can be tested on a GPU only (plain_attention_test.cpp).
#include "braid/cuda/attention/cudnn_plan.h"

#include <boost/test/unit_test.hpp>
#include <string_view>

using namespace braid;
using namespace braid::cuda;
using namespace braid::cuda::attention::sdpa_cudnn;

namespace {

// An H200 in the form in which cuDNN writes down a GPU.
constexpr std::string_view kH200 = R"({
  "cudaDeviceId": 0, "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "pciDeviceId": 0,
  "isTccDriver": 0, "supportCoopLaunch": 1, "multiProcessorCount": 132, "totalGlobalMem": 150754820096,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "warpSize": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32, "regsPerBlock": 65536,
  "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "l2CacheSize": 62914560, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000
})";

const Descriptor& gpu() {
  static const Descriptor gpu = [] {
    cudnnBackendDescriptor_t raw = nullptr;
    check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &raw));
    Descriptor owner(raw);
    check(cudnnBackendSetAttribute(raw, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                   static_cast<int64_t>(kH200.size()), kH200.data()));
    check(cudnnBackendFinalize(raw));
    return owner;
  }();
  return gpu;
}

struct Sizes {
  int64_t B, T, S, N, Nkv, d;
  AttentionMask mask;
};

// Workspace of the plan. Tensors have layouts only: q, k and v are parts of one projection's result.
int64_t workspace(const Sizes& n, DType dtype, bool backward) {
  auto part = [&](int64_t rows, int64_t heads) {
    return empty({n.B, rows, 3, heads, n.d}, dtype).sliced(2, 0, 1).squeezed(2);
  };
  const Tensor q = part(n.T, n.N), k = part(n.S, n.Nkv), y = empty_like(q);
  AttentionCall call{.q = q,
                     .k = k,
                     .v = k,
                     .y = y,
                     .lse = {},
                     .dy = backward ? y : Tensor(),
                     .dq = y,
                     .dk = empty_like(k),
                     .dv = empty_like(k),
                     .mask = n.mask,
                     .scale = 0.125};
  CudnnGraph graph;
  build_plan(graph, call, {.description = gpu().get()});
  return graph.workspace();
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_of_call_has_a_plan) {
  const Sizes all[] = {{2, 512, 512, 16, 16, 64, {true, 0, 0}},    {2, 512, 512, 32, 32, 128, {false, 0, 0}},
                       {2, 500, 700, 16, 4, 64, {true, 100, 200}}, {2, 300, 300, 12, 12, 80, {true, 128, 0}},
                       {1, 256, 256, 4, 4, 256, {true, 0, 0}},     {2, 33, 20, 8, 8, 72, {true, 0, 0}},
                       {2, 1, 512, 16, 16, 64, {true, 0, 511}}};
  for (const Sizes& n : all) {
    for (DType dtype : {DType::bf16, DType::f16}) {
      BOOST_TEST_CONTEXT("T " << n.T << " S " << n.S << " N " << n.N << " d " << n.d << " " << str(dtype)) {
        BOOST_CHECK_NO_THROW(workspace(n, dtype, false));
        BOOST_CHECK_NO_THROW(workspace(n, dtype, true));
      }
    }
  }
}

// Backward is the way that writes dS down and then needs no sum in an order that differs from run to run.
BOOST_AUTO_TEST_CASE(backward_needs_the_memory_that_pieces_are_made_for) {
  const int64_t scores = 2 * 2 * 16 * 512 * 1024;
  const int64_t bytes = workspace({2, 512, 1024, 16, 16, 64, {true, 0, 0}}, DType::bf16, true);
  BOOST_TEST(bytes >= scores);
  BOOST_TEST(bytes <= scores + 1024);
}

BOOST_AUTO_TEST_CASE(what_has_no_plan_is_said) {
  try {
    workspace({1, 64, 64, 2, 2, 12, {true, 0, 0}}, DType::bf16, false);
    BOOST_ERROR("there is a plan");
  } catch (const Error& error) {
    BOOST_TEST(std::string(error.what()).find("there is no plan for these shapes") != std::string::npos);
  }
}
