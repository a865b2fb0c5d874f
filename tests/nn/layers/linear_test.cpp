#include "braid/nn/layers/linear.h"

#include <boost/test/unit_test.hpp>

#include "braid/nn/inference/quantize.h"
#include "braid/nn/layers/norm.h"
#include "braid/nn/optim/master_weights.h"
#include "tests/nn/support.h"
#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(linear_layer)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  nn::Linear linear(5, 3, {.bias = true}, {1, 1});
  check_gradient_flow(linear, linear(randn({2, 4, 5}, {11, 1})));
}

// y + alpha / r (x A^T) B^T, against the merged weight and finite differences.
BOOST_AUTO_TEST_CASE(lora_is_a_low_rank_change_of_the_weight) {
  const auto make = [](const Tensor& a, const Tensor& b) {
    nn::Linear linear(5, 3, {.bias = true}, {1, 1});
    nn::to(linear, DType::f64);
    linear.set_lora(a.clone(), b.clone(), 3);
    return linear;
  };
  const Tensor x = randn({4, 5}, {11, 1}, DType::f64), a = randn({2, 5}, {12, 1}, DType::f64),
               b = randn({3, 2}, {13, 1}, DType::f64);
  nn::Linear apart = make(a, b), merged = make(a, b);
  check_gradient_flow(apart, cast(apart(x), DType::f32));
  merged.merge_lora();
  BOOST_TEST(merged.lora_rank() == 0);
  BOOST_TEST(nn::parameters(merged).size() == 2u);
  NoGrad off;
  BOOST_TEST(is_close(apart(x), merged(x), 1e-14));
  nn::Linear quantised = make(a, b);
  nn::quantize_weights(quantised);
  BOOST_TEST(quantised.lora_rank() == 0);
  nn::to(quantised, DType::f32);
  BOOST_TEST(is_close(quantised(x.to(DType::f32)).to(DType::f64), merged(x), 0.02));
  nn::Linear plain(5, 3, {.bias = true}, {1, 1});
  nn::to(plain, DType::f64);
  BOOST_TEST(
      is_close(apart(x), add(plain(x), scale(matmul(matmul(x, transpose(a, 0, 1)), transpose(b, 0, 1)), 1.5)), 1e-14));
  BOOST_CHECK_THROW(make(b, a), Error);
}

// Pairs of some of the outputs: the others are those of the weight alone.
BOOST_AUTO_TEST_CASE(parts_of_the_outputs_have_pairs_of_their_own) {
  const Tensor x = randn({4, 5}, {11, 1}, DType::f64), a = randn({2, 5}, {12, 1}, DType::f64),
               b = randn({2, 2}, {13, 1}, DType::f64), c = randn({2, 5}, {14, 1}, DType::f64),
               d = randn({1, 2}, {15, 1}, DType::f64);
  const auto make = [&](int64_t first) {
    nn::Linear linear(5, 6, {.bias = true}, {1, 1});
    nn::to(linear, DType::f64);
    linear.set_lora({{"q", 0, a.clone(), b.clone()}, {"v", first, c.clone(), d.clone()}}, 3);
    return linear;
  };
  nn::Linear apart = make(4), merged = make(4);
  check_gradient_flow(apart, cast(apart(x), DType::f32));
  std::vector<std::string> names;
  for (const nn::NamedTensor& p : nn::parameters(apart)) names.push_back(p.name);
  BOOST_TEST(names == std::vector<std::string>({"weight", "bias", "q.lora_A.weight", "q.lora_B.weight",
                                                "v.lora_A.weight", "v.lora_B.weight"}),
             boost::test_tools::per_element());
  merged.merge_lora();
  BOOST_TEST(nn::parameters(merged).size() == 2u);
  NoGrad off;
  BOOST_TEST(is_close(apart(x), merged(x), 1e-14));
  nn::Linear plain(5, 6, {.bias = true}, {1, 1});
  nn::to(plain, DType::f64);
  const auto added = [&](const Tensor& down, const Tensor& up) {
    return scale(matmul(matmul(x, transpose(down, 0, 1)), transpose(up, 0, 1)), 1.5);
  };
  const Tensor y = plain(x);
  BOOST_TEST(is_close(apart(x),
                      concat({add(slice(y, 1, 0, 2), added(a, b)), slice(y, 1, 2, 4),
                              add(slice(y, 1, 4, 5), added(c, d)), slice(y, 1, 5, 6)},
                             1),
                      1e-14));
  BOOST_CHECK_THROW(make(1), Error);  // rows of q
  BOOST_CHECK_THROW(make(6), Error);  // beyond the weight
}

namespace {
class TwoLayers final : public nn::Module {
 public:
  TwoLayers() : first_(24, 40, {.bias = true}, {1, 1}), second_(40, 8, {}, {1, 2}), norm_(40, 1e-5) {}
  Tensor operator()(const Tensor& x) const { return second_(norm_(first_(x))); }
  void visit(nn::Visitor& v) const override {
    v("first", first_);
    v("norm", norm_);
    v("second", second_);
  }

 private:
  nn::Linear first_, second_;
  nn::RmsNorm norm_;
};
}  // namespace

BOOST_AUTO_TEST_CASE(weights_of_8_and_4_bits_replace_those_of_linear_layers) {
  for (int bits : {8, 4}) {
    TwoLayers m;
    const Tensor x = randn({3, 24}, {11, 2});
    const int64_t expected_bytes = nn::quantized_bytes(m, bits);
    NoGrad off;
    const Tensor exact = m(x);
    BOOST_TEST(nn::quantized_bits(m) == 0);
    nn::quantize_weights(m, bits);
    BOOST_TEST(nn::quantized_bits(m) == bits);
    BOOST_TEST(is_close(m(x), exact, bits == 8 ? 0.02 : 0.3));
    std::string listed;
    int64_t bytes = 0;
    for (const nn::NamedTensor& p : nn::parameters(m)) {
      listed += p.name + " " + str(p.value.dtype()) + " " + str(p.value.shape()) + "; ";
      bytes += p.value.numel() * size_of(p.value.dtype());
      BOOST_TEST(!requires_grad(p.value));
    }
    BOOST_TEST(listed ==
               (bits == 8
                    ? "first.weight u8 (40, 24); first.scale f32 (40); first.bias f32 (40); norm.weight f32 (40); "
                      "second.weight u8 (8, 40); second.scale f32 (8); "
                    : "first.weight u8 (40, 16); first.scale f16 (40, 1); first.bias f32 (40); norm.weight f32 "
                      "(40); second.weight u8 (8, 32); second.scale f16 (8, 2); "));
    BOOST_TEST(bytes == expected_bytes);
    const Tensor once = m(x);
    nn::quantize_weights(m, bits);  // changes nothing
    nn::to(m, DType::f32);
    BOOST_TEST(is_close(m(x), once, 0));
  }
}

// Parts that end inside a panel of rows (tensor/group_weight.h), too.
BOOST_AUTO_TEST_CASE(parts_of_4_bit_weights_are_those_of_the_product) {
  const NoGrad off;
  for (const std::vector<int64_t>& widths : {std::vector<int64_t>{32, 64, 3}, {42, 22, 35}}) {
    nn::Linear layer(24, 99, {.bias = true}, {12, 1});
    layer.quantize(4);
    const Tensor x = randn({3, 24}, {12, 2});
    BOOST_TEST(is_close(layer.of_parts({x, x, x}, widths), layer(x), 0));
  }
}

BOOST_AUTO_TEST_CASE(a_quantised_model_is_for_inference_only) {
  TwoLayers m;
  nn::quantize_weights(m);
  const auto rejected = [](const std::function<void()>& f, const std::string& what) {
    BOOST_TEST(throws_with(
        f, "the model has quantised weights (first.weight), which are for inference: it cannot be " + what));
  };
  rejected([&] { nn::require_grad(m); }, "trained");
  rejected([&] { nn::MasterWeights(m, DType::f32, [](const std::string&) { return true; }); }, "trained");
  rejected([&] { nn::save(m, TempFolder() / "m.safetensors"); }, "saved");
  rejected([&] { nn::load(m, nn::parameters(TwoLayers()), "others"); }, "filled with other weights");
  rejected([&] { nn::to(m, DType::bf16); }, "converted to bf16");
  Tensor x = randn({3, 24}, {11, 2});
  require_grad(x);
  BOOST_TEST(throws_with([&] { m(x); }, "[linear_int8] has no derivative"));
}

BOOST_AUTO_TEST_SUITE_END()
