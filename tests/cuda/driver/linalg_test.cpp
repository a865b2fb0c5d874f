// Linear algebra of a GPU, by a cuSOLVER that computes by LAPACK, beside that of the CPU.
#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

namespace {

const Device kGpu{Device::Kind::cuda, 0};

// Three matrices (m, n) of the type, and the first of their transpose's products with themselves, which is definite.
Tensor matrices(int64_t m, int64_t n, DType type, uint64_t seed) { return random_tensor({3, m, n}, seed, type); }
Tensor definite(int64_t n, DType type, uint64_t seed) {
  Tensor a = matrices(n, n, type, seed), y = zeros(a.shape(), type);
  cpu_backend().matmul.product(a, a.transposed(), false, y);
  Tensor diagonal = y.view({3, n}, {n * n, n + 1}, 0);
  diagonal.add_(full({3, n}, 1, type));
  return y;
}

// Calls f(kernels, inputs, results) for both devices and compares the results.
template <class F>
void compare_devices(const std::vector<Tensor>& inputs, const std::vector<Shape>& shapes, F&& f) {
  const auto run = [&](Device device) {
    std::vector<Tensor> in, out;
    for (const Tensor& x : inputs) in.push_back(x.to(device));
    for (const Shape& s : shapes) {
      out.push_back(empty(s, inputs[0].dtype(), device));
      out.back().fill(-77);
    }
    f(backend(device).linalg, in, out);
    for (size_t i = 0; i < inputs.size(); ++i) BOOST_TEST(is_close(in[i].to(kCpu), inputs[i], 0));  // read only
    return out;
  };
  const std::vector<Tensor> cpu = run(kCpu), gpu = run(kGpu);
  const double tolerance = inputs[0].dtype() == DType::f64 ? 1e-12 : 1e-4;
  for (size_t i = 0; i < cpu.size(); ++i) BOOST_TEST(is_close(gpu[i].to(kCpu), cpu[i], tolerance));
}

template <class F>
void fails(const std::string& part, const Tensor& a, F&& f) {
  for (const Device device : {kCpu, kGpu}) {
    const Tensor x = a.to(device);
    Tensor y = empty_like(x), w = empty({x.dim(0), x.dim(-1)}, x.dtype(), device);
    BOOST_TEST(throws_with([&] { f(backend(device).linalg, x, y, w); }, part));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_linalg)

BOOST_AUTO_TEST_CASE(a_gpu_computes_what_the_cpu_does) {
  for (const DType type : {DType::f64, DType::f32}) {
    for (const int64_t n : {1, 2, 5, 8}) {
      const Shape square{3, n, n};
      const Tensor a = matrices(n, n, type, 1), b = matrices(n, 4, type, 2), positive = definite(n, type, 3);
      compare_devices({positive}, {square}, [](const auto& k, auto& in, auto& out) { k.cholesky(in[0], out[0]); });
      compare_devices({a, b}, {b.shape()}, [](const auto& k, auto& in, auto& out) { k.solve(in[0], in[1], out[0]); });
      for (const bool upper : {false, true})
        compare_devices({positive, b}, {b.shape()}, [upper](const auto& k, auto& in, auto& out) {
          k.solve_triangular(in[0], in[1], upper, out[0]);
        });
      compare_devices({a}, {square}, [](const auto& k, auto& in, auto& out) { k.inverse(in[0], out[0]); });
      compare_devices({a}, {{3}, {3}}, [](const auto& k, auto& in, auto& out) { k.slogdet(in[0], out[0], out[1]); });
      compare_devices({positive}, {{3, n}, square},
                      [](const auto& k, auto& in, auto& out) { k.eigh(in[0], out[0], out[1]); });
      for (const int64_t m : {1, 3, 5, 9}) {
        const int64_t k = std::min(m, n);
        const Tensor rectangle = matrices(m, n, type, 4);
        compare_devices({rectangle}, {{3, m, k}, {3, k, n}},
                        [](const auto& l, auto& in, auto& out) { l.qr(in[0], out[0], out[1]); });
        compare_devices({rectangle}, {{3, k}}, [&](const auto& l, auto& in, auto& out) {
          // Factors may differ in sign between a matrix and its transpose: their product may not.
          const Device device = in[0].device();
          Tensor u = empty({3, m, k}, type, device), vh = empty({3, k, n}, type, device);
          l.svd(in[0], u, out[0], vh);
          Tensor scaled = empty({3, m, k}, type), product = zeros(rectangle.shape(), type);
          cpu_backend().pointwise.binary(BinaryOp::mul, u.to(kCpu), out[0].to(kCpu).unsqueezed(1).expanded({3, m, k}),
                                         scaled);
          cpu_backend().matmul.product(scaled, vh.to(kCpu), false, product);
          BOOST_TEST(is_close(product, rectangle, type == DType::f64 ? 1e-12 : 1e-4));
        });
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_and_matrices_without_elements) {
  for (const Device device : {kCpu, kGpu}) {
    const LinalgKernels& kernels = backend(device).linalg;
    const Tensor none = empty({2, 0, 0}, DType::f64, device), no_matrix = empty({0, 3, 3}, DType::f64, device);
    Tensor sign = empty({2}, DType::f64, device), log = empty({2}, DType::f64, device);
    kernels.slogdet(none, sign, log);
    BOOST_TEST(is_close(sign.to(kCpu), from_values({1, 1}, {2}, DType::f64), 0));
    BOOST_TEST(is_close(log.to(kCpu), from_values({0, 0}, {2}, DType::f64), 0));
    Tensor y = empty(no_matrix.shape(), DType::f64, device), w = empty({0, 3}, DType::f64, device), z = y;
    Tensor nothing = empty({0}, DType::f64, device);
    kernels.inverse(no_matrix, y);
    kernels.cholesky(no_matrix, y);
    kernels.slogdet(no_matrix, nothing, nothing);
    kernels.eigh(no_matrix, w, y);
    kernels.svd(no_matrix, y, w, z);
    Tensor q = empty({2, 4, 0}, DType::f64, device), r = empty({2, 0, 0}, DType::f64, device);
    kernels.qr(empty({2, 4, 0}, DType::f64, device), q, r);
  }
}

BOOST_AUTO_TEST_CASE(errors_are_those_of_the_cpu) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor singular = from_values({1, 0, 0, 1, 1, 2, 2, 4}, {2, 2, 2}, DType::f64);
  const Tensor no_pivot = from_values({1, 0, 0, 1, 1, 5, 5, 0}, {2, 2, 2}, DType::f64);
  const Tensor unknown = from_values({1, 0, 0, 1, 1, 0, nan, 1}, {2, 2, 2}, DType::f64);
  fails("[solve] matrix 1 is singular: pivot 1 is 0", singular,
        [](const auto& k, const auto& x, auto& y, auto&) { k.solve(x, x, y); });
  fails("[inverse] matrix 1 is singular: pivot 1 is 0", singular,
        [](const auto& k, const auto& x, auto& y, auto&) { k.inverse(x, y); });
  for (const bool upper : {false, true})
    fails("[solve_triangular] matrix 1 is singular: pivot 1 is 0", no_pivot,
          [upper](const auto& k, const auto& x, auto& y, auto&) { k.solve_triangular(x, x, upper, y); });
  fails("[cholesky] matrix 1 is not positive definite", no_pivot,
        [](const auto& k, const auto& x, auto& y, auto&) { k.cholesky(x, y); });
  fails("[cholesky] matrix 1 is not positive definite", unknown,
        [](const auto& k, const auto& x, auto& y, auto&) { k.cholesky(x, y); });
  fails("[eigh] matrix 1 holds NaN or infinity", unknown,
        [](const auto& k, const auto& x, auto& y, auto& w) { k.eigh(x, w, y); });
  fails("[svd] matrix 1 holds NaN or infinity", unknown, [](const auto& k, const auto& x, auto& y, auto& w) {
    Tensor z = empty_like(y);
    k.svd(x, y, w, z);
  });
}

BOOST_AUTO_TEST_CASE(a_captured_step_factorises_nothing) {
  const Tensor a = definite(3, DType::f64, 1).to(kGpu);
  Tensor y = empty_like(a);
  backend(kGpu).stream.begin_capture();
  BOOST_TEST(throws_with([&] { backend(kGpu).linalg.inverse(a, y); },
                         "[graph] a matrix was factorised while a graph is captured"));
  backend(kGpu).stream.abort_capture();
}

BOOST_AUTO_TEST_SUITE_END()
