// One layer's DCMHA on the dry device, forward and backward: launches, and the bytes of GPU memory that they move for
// each score that is not masked.
#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/attention.h"
#include "tests/cuda/dry/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

namespace {

struct Layer {
  int64_t N, d, window;
  size_t launches;
  double bytes;  // per unmasked score
  int64_t B = 8, T = 2048;
};

// q, k and v as the layer makes them, heads first in memory.
Tensor heads_first(const Layer& l, Device device) {
  return empty({l.B, l.N, l.T, l.d}, DType::bf16, device).permuted({0, 2, 1, 3});
}

HeadMixing mixing(const Layer& l, Device device) {
  const auto make = [&](const Shape& shape) { return empty(shape, DType::bf16, device); };
  HeadMixing m;
  for (Tensor* t : {&m.q_down, &m.q_up, &m.k_down, &m.k_up}) *t = make({l.B, l.T, 1, 2, l.N});
  for (Tensor* t : {&m.q_gate, &m.k_gate}) *t = make({l.B, l.T, 1, l.N});
  return m;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dry_attention)

BOOST_AUTO_TEST_CASE(launches_and_bytes_of_a_layer) {
  for (const Layer& l : {Layer{16, 64, 0, 52, 32.0}, Layer{32, 80, 0, 118, 47.9}, Layer{32, 128, 0, 118, 51.8},
                         Layer{16, 64, 256, 23, 50.9}, Layer{32, 80, 256, 31, 84.2}, Layer{32, 128, 256, 31, 100.7}}) {
    DryDevice dry;
    DcmhaInputs x{.q = heads_first(l, dry.device()),
                  .k = heads_first(l, dry.device()),
                  .v = heads_first(l, dry.device()),
                  .pre = mixing(l, dry.device()),
                  .post = mixing(l, dry.device())};
    for_each_tensor(
        [](const AttentionRole&, Tensor& t) {
          if (t) require_grad(t);
        },
        x);
    const Tensor dy = empty(x.q.shape(), DType::bf16, dry.device());
    dry.clear();
    const Tensor y = dcmha(x.q, x.k, x.v, x.pre, x.post, {{.mask = {true, l.window, 0}}});
    backward(y, dy);
    size_t launches = 0;
    double bytes = 0;
    for (const DryWork& work : dry.log()) {
      if (!is_attention(work)) continue;
      ++launches;
      bytes += static_cast<double>(work.bytes);
    }
    const double keys = l.window > 0 ? static_cast<double>(l.window) : static_cast<double>(l.T) / 2;
    const double each = bytes / (static_cast<double>(l.B * l.N * l.T) * keys);
    BOOST_TEST_CONTEXT("N " << l.N << " d " << l.d << " window " << l.window << ": " << launches << " launches, "
                            << each << " bytes per score") {
      BOOST_TEST(launches <= l.launches);
      BOOST_TEST(each <= l.bytes);
      BOOST_TEST_MESSAGE("N " << l.N << " d " << l.d << " window " << l.window << ": " << launches << " launches, "
                              << each << " bytes per score");
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
