#include "braid/nn/layers/norm.h"

#include <boost/test/unit_test.hpp>

#include "braid/nn/layers/batch_norm.h"
#include "tests/nn/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(norms)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  nn::RmsNorm rms(6, 1e-5);
  check_gradient_flow(rms, rms(randn({3, 6}, {11, 1})));
  nn::LayerNorm layer(6, 1e-5);
  check_gradient_flow(layer, layer(randn({3, 6}, {11, 1})));
  nn::RmsNorm offset(6, 1e-5, "weight", true);
  check_gradient_flow(offset, offset(randn({3, 6}, {11, 1})));
}

// The weight w of a norm with an offset is the weight 1 + w of one without, and 16 bits keep a w that 1 + w would lose.
BOOST_AUTO_TEST_CASE(a_variance_beyond_f16) {
  const Tensor y = nn::BatchNorm(1, {.affine = false})(from_values({-400, 400}, {2, 1}, DType::f16), nn::Mode::train);
  BOOST_TEST((y.dtype() == DType::f16));
  BOOST_TEST(is_close(y.to_vector<double>(), {-1, 1}, 0));
}

BOOST_AUTO_TEST_CASE(an_offset_of_the_gain) {
  const NoGrad off;
  for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
    nn::RmsNorm offset(6, 1e-5, "weight", true), plain(6, 1e-5);
    const Tensor x = randn({3, 6}, {11, 1}), r = randn({3, 6}, {11, 2});
    BOOST_TEST(is_close(offset(x), plain(x), 1e-7));
    Tensor w = from_vector(std::vector<float>{0.5f, -0.25f, 2, 0.001953125f, -1, 0}, {6});
    nn::parameters(offset)[0].value.copy_(w);
    nn::parameters(plain)[0].value.copy_(w + 1.0);
    const Tensor want = plain(x.to(type).to(DType::f32)), sum = x.to(type) + r.to(type);
    nn::to(offset, type);
    BOOST_TEST(is_close(offset(x.to(type)).to(DType::f32), want, type == DType::bf16 ? 4e-3 : 1e-6));
    const SumAndNorm both = offset(x.to(type), r.to(type));
    BOOST_TEST(is_close(both.sum, sum, 0));
    BOOST_TEST(is_close(both.y, offset(sum), type == DType::bf16 ? 1e-2 : 1e-6));
  }
}

BOOST_AUTO_TEST_SUITE_END()
