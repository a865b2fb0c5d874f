#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {
DType wide(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }
}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_optimisers)

BOOST_AUTO_TEST_CASE(adamw_and_adam) {
  for (DType t : kFloats) {
    for (int64_t n : {0, 1, 7, 8, 33, 2100}) {
      for (bool coupled : {false, true}) {
        BOOST_TEST_CONTEXT(str(t) << " " << n << (coupled ? " coupled" : "")) {
          check_on_card(
              [coupled](const auto& in) {
                Tensor p = copy_of(in[0]), m = copy_of(in[2]), v = copy_of(in[3]);
                const Backend& k = backend(p.device());
                for (int64_t step : {1, 2, 3}) {
                  k.adamw({p, in[1], m, v, 0.01, 0.9, 0.95, 1e-8, 0.1, step, 0.5, coupled});
                }
                return std::vector{p, m, v};
              },
              {random_tensor({n}, 1, t), random_tensor({n}, 2, t), random_tensor({n}, 3, wide(t)),
               random_tensor({n}, 4, wide(t), 0, 1)},
              tolerance_of(t), n == 33);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(scalars_in_the_memory_of_the_card) {
  for (DType t : kFloats) {
    check_on_card(
        [](const auto& in) {
          Tensor p = copy_of(in[0]), q = copy_of(in[0]), m = copy_of(in[2]), v = copy_of(in[3]), u = copy_of(in[2]);
          const Backend& k = backend(p.device());
          k.adamw({p, in[1], m, v, 99, 0.9, 0.95, 1e-8, 0.1, 1, 99, false, in[4]});
          k.sgd({q, in[1], u, 99, 0.9, 0.1, 99, false, in[4]});
          return std::vector{p, m, v, q, u};
        },
        {random_tensor({45}, 1, t), random_tensor({45}, 2, t), random_tensor({45}, 3, wide(t)),
         random_tensor({45}, 4, wide(t), 0, 1), from_values({0.01, 0.5, 3, 7}, {4}, DType::f64)},
        tolerance_of(t));
  }
}

BOOST_AUTO_TEST_CASE(descent_with_and_without_momentum) {
  for (DType t : kFloats) {
    for (int64_t n : {0, 1, 33, 2100}) {
      for (bool first : {false, true}) {
        check_on_card(
            [first](const auto& in) {
              Tensor p = copy_of(in[0]), plain = copy_of(in[0]), u = copy_of(in[2]);
              const Backend& k = backend(p.device());
              k.sgd({p, in[1], u, 0.1, 0.9, 0.01, 0.5, first});
              k.sgd({plain, in[1], {}, 0.1, 0.9, 0.01, 0.5, first});
              return std::vector{p, u, plain};
            },
            {random_tensor({n}, 1, t), random_tensor({n}, 2, t), random_tensor({n}, 3, wide(t))}, tolerance_of(t),
            n == 33);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
