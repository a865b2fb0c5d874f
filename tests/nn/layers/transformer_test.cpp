#include "braid/nn/layers/transformer.h"

#include <boost/test/unit_test.hpp>

#include "tests/nn/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(transformer_layers)

BOOST_AUTO_TEST_CASE(attention_is_its_formula) {
  nn::MultiheadAttention attention({.width = 6, .heads = 2, .key_width = 4, .value_width = 5}, {1, 1});
  const Tensor q = randn({2, 3, 6}, {2, 1}), k = randn({2, 7, 4}, {2, 2}), v = randn({2, 7, 5}, {2, 3});
  const std::vector<nn::NamedTensor> p = nn::parameters(attention);
  BOOST_REQUIRE(p.size() == 8u);
  BOOST_TEST(p[2].name == "k_proj.weight");
  const auto heads = [](const Tensor& x) { return permute(reshape(x, {2, x.dim(1), 2, 3}), {0, 2, 1, 3}); };
  {
    const NoGrad off;
    const Tensor scores =
        matmul(heads(linear(q, p[0].value)), transpose(heads(linear(k, p[2].value)))) / std::sqrt(3.0);
    const Tensor mixed = matmul(softmax(scores), heads(linear(v, p[4].value)));
    const Tensor expected = linear(reshape(permute(mixed, {0, 2, 1, 3}), {2, 3, 6}), p[6].value);
    BOOST_TEST(is_close(attention(q, k, v, {}), expected, 1e-5));
  }
  BOOST_TEST(throws_with([&] { attention(q, k, slice(v, 1, 0, 6), {}); }, "needs q (B, T, D)"));
  BOOST_TEST(throws_with([] { nn::MultiheadAttention({.width = 5, .heads = 2}, {1, 1}); }, "2 heads"));
}

BOOST_AUTO_TEST_CASE(padding_and_later_positions_are_not_seen) {
  const nn::TransformerEncoderLayer layer({.width = 8, .heads = 2}, {1, 1});
  const NoGrad off;
  const Tensor x = randn({2, 5, 8}, {2, 1}), other = randn({2, 2, 8}, {2, 2});
  const Tensor changed = concat({slice(x, 1, 0, 3), other}, 1);
  const auto first = [](const Tensor& y) { return slice(y, 1, 0, 3); };
  BOOST_TEST(is_close(first(layer(x, {.causal = true})), first(layer(changed, {.causal = true})), 1e-6));
  BOOST_TEST(is_close(first(layer(x, {.key_lengths = {3, 3}})), first(layer(changed, {.key_lengths = {3, 3}})), 1e-6));
  BOOST_TEST(!is_close(first(layer(x, {})), first(layer(changed, {})), 1e-3));
}

BOOST_AUTO_TEST_CASE(layers_have_gradients_and_dropout_with_norms_first_and_last) {
  for (const bool norm_first : {true, false}) {
    nn::TransformerEncoderLayer encoder({.width = 8, .heads = 2, .dropout = 0.2, .norm_first = norm_first}, {1, 1});
    nn::TransformerDecoderLayer decoder({.width = 8, .heads = 2, .dropout = 0.2, .norm_first = norm_first}, {1, 2});
    const Tensor x = randn({2, 5, 8}, {2, 1}), states = randn({2, 4, 8}, {2, 2});
    const Tensor a = encoder(x, nn::Mode::train, {3, 1});
    BOOST_TEST(is_close(a, encoder(x, nn::Mode::train, {3, 1}), 0));
    BOOST_TEST(!is_close(a, encoder(x, {}), 1e-3));
    const auto has_gradients = [](const nn::Module& m, const Tensor& y) {
      backward(sum(square(y + 1)));
      for (const nn::NamedTensor& p : nn::parameters(m)) BOOST_TEST(bool(grad(p.value)), p.name);
    };
    has_gradients(encoder, a);
    has_gradients(decoder, decoder(x, states, {.causal = true}, {}, nn::Mode::train, {3, 2}));
    nn::zero_grad(decoder);
    has_gradients(decoder, decoder(x, states, {.causal = true}, {.key_lengths = {4, 2}}));
    BOOST_TEST(nn::parameters(decoder).size() == 26u);
  }
}

// norm(x + f(x)) with f = 0 by weights of 0; norm first leaves x as it is.
BOOST_AUTO_TEST_CASE(the_residual_path) {
  const Tensor x = randn({1, 3, 4}, {2, 1});
  for (const bool norm_first : {true, false}) {
    nn::TransformerEncoderLayer layer({.width = 4, .heads = 2, .norm_first = norm_first}, {1, 1});
    const NoGrad off;
    for (const nn::NamedTensor& p : nn::parameters(layer)) {
      Tensor value = p.value;
      if (p.name.substr(0, 4) != "norm") value.fill(0);
    }
    const auto norm = [](const Tensor& v) { return layer_norm(v, {}, {}, 1e-5); };
    BOOST_TEST(is_close(layer(x, {}), norm_first ? x : norm(norm(x)), 1e-5));
  }
}

BOOST_AUTO_TEST_CASE(positions) {
  const Tensor table = nn::sinusoidal_positions(5, 4);
  BOOST_TEST(is_close(slice(table, 0, 3, 4).to_vector<double>(),
                      {std::sin(3.0), std::cos(3.0), std::sin(0.03), std::cos(0.03)}, 1e-6));
  nn::LearnedPositions learned(5, 4, {1, 1});
  const Tensor x = zeros({2, 3, 4});
  BOOST_TEST(is_close(no_grad([&] { return slice(learned(x), 0, 1, 2); }).to_vector<double>(),
                      nn::parameters(learned)[0].value.detach().sliced(0, 0, 3).to_vector<double>(), 0));
  BOOST_TEST(throws_with([&] { learned(zeros({2, 6, 4})); }, "T at most 5"));
  BOOST_TEST(throws_with([] { nn::sinusoidal_positions(5, 3); }, "even width"));
}

BOOST_AUTO_TEST_SUITE_END()
