// Rounding at random: no bias, two neighbours, bits that depend on the element alone; optimizers that round so.
#include "braid/nn/optim/stochastic_rounding.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "braid/autograd/record.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::nn;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(stochastic_rounding)

namespace {

constexpr RandomKey kKey{7, 3};

std::vector<uint16_t> bits(const Tensor& x) {
  std::vector<uint16_t> out;
  for (int64_t i = 0; i < x.numel(); ++i) out.push_back(x.data<bfloat16>()[i].bits);
  return out;
}

// Element i of a parameter in update t, by the definition.
bfloat16 expected(float x, const std::string& name, int64_t t, int64_t i) {
  const RandomKey key = child(child(kKey, t), name.c_str());
  const uint32_t word = random_bits(static_cast<uint64_t>(i / 2), key);
  return rounded_at_random(x, i % 2 == 0 ? word & 0xffff : word >> 16);
}

Tensor rounded(const Tensor& x, RandomKey key = kKey, const std::vector<ElementSpan>& spans = {}) {
  Tensor to = empty(x.shape(), DType::bf16);
  round_at_random(x, key, spans, 0, to);
  return to;
}

// Parameters of a matrix and a vector that are given gradients.
struct Trained {
  Tensor matrix = parameter(normal_tensor({6, 10}, 0.5, {1, 1}, DType::bf16));
  Tensor vector = parameter(normal_tensor({37}, 0.5, {1, 2}, DType::bf16));
  std::unique_ptr<Optimizer> optimizer;

  explicit Trained(const std::string& rule, DType type = DType::bf16) {
    if (type == DType::f32) {
      matrix = parameter(matrix.detach().to(type));
      vector = parameter(vector.detach().to(type));
    }
    optimizer = make_optimizer({{"matrix", matrix}, {"vector", vector}},
                               {.name = rule, .lr = 1e-3, .weight_decay = 0.1, .momentum = 0.9});
    if (type == DType::bf16) optimizer->round_stochastically(kKey);
  }
  void step(int64_t t) {
    for (const NamedTensor& p : optimizer->parameters())
      set_grad(p.value, normal_tensor(p.value.shape(), 1, child({2, 0}, t * 100 + p.value.rank())));
    optimizer->step();
  }
};

}  // namespace

// Exactly the share (x - lower) / (upper - lower) of the 2^16 random numbers leads up.
BOOST_AUTO_TEST_CASE(the_mean_over_all_draws_is_exact) {
  for (const float x : {1.0f + 0x1p-9f, 0.3f, -0.3f, 1e-30f, -7.25e20f, 0x1p-133f * 0.7f, 1.99999988f}) {
    const auto all = std::bit_cast<uint32_t>(x);
    bfloat16 lower, upper;
    lower.bits = static_cast<uint16_t>(all >> 16), upper.bits = static_cast<uint16_t>((all >> 16) + 1);
    uint32_t up = 0;
    for (uint32_t random = 0; random < 1 << 16; ++random) {
      const uint16_t y = rounded_at_random(x, random).bits;
      if (y != lower.bits && y != upper.bits) BOOST_FAIL("no neighbour of " << x);
      up += y == upper.bits;
    }
    BOOST_TEST(up > 0u);
    const double low = static_cast<float>(lower), high = static_cast<float>(upper);
    BOOST_TEST(low + (high - low) * up / 65536 == static_cast<double>(x));
  }
}

BOOST_AUTO_TEST_CASE(exact_values_stay_and_nothing_finite_becomes_infinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const uint32_t random : {0u, 1u, 0xffffu}) {
    for (const float x : {0.0f, -0.0f, 1.5f, -0x1p-130f, 0x1.fep127f, infinity, -infinity})
      BOOST_TEST(std::bit_cast<uint32_t>(static_cast<float>(rounded_at_random(x, random))) ==
                 std::bit_cast<uint32_t>(x));
    BOOST_TEST(static_cast<float>(rounded_at_random(std::numeric_limits<float>::max(), random)) == 0x1.fep127f);
    BOOST_TEST(std::isnan(static_cast<float>(rounded_at_random(std::bit_cast<float>(0x7f800001u), random))));
  }
}

// 4000 keys: the mean of each element is within five deviations of the element.
BOOST_AUTO_TEST_CASE(the_mean_over_many_keys_is_the_value) {
  const Tensor x = normal_tensor({101}, 1, {3, 1});
  const std::vector<double> want = x.to_vector<double>();
  std::vector<double> sum(want.size());
  constexpr int kDraws = 4000;
  for (int k = 0; k < kDraws; ++k) {
    const std::vector<double> y = rounded(x, child(kKey, k)).to_vector<double>();
    for (size_t i = 0; i < y.size(); ++i) sum[i] += y[i];
  }
  for (size_t i = 0; i < sum.size(); ++i) {
    const double spacing = std::fabs(want[i]) * 0x1p-7;  // at most
    BOOST_TEST(std::fabs(sum[i] / kDraws - want[i]) <= 5 * 0.5 * spacing / std::sqrt(kDraws));
  }
}

BOOST_AUTO_TEST_CASE(bits_depend_on_the_element_alone) {
  const Tensor x = normal_tensor({9, 5000}, 1, {3, 2});
  const std::vector<uint16_t> want = bits(rounded(x));
  const int before = threads();
  for (const int n : {1, 3}) {
    set_threads(n);
    BOOST_TEST((bits(rounded(x)) == want));
  }
  set_threads(before);
  // Columns 7 to 4000 of the rows, as a rank of tensor parallelism has them.
  const Tensor part = x.sliced(1, 7, 4001).contiguous();
  std::vector<ElementSpan> spans;
  for (int64_t row = 0; row < 9; ++row) spans.push_back({row * 5000 + 7, row * 3994, 3994});
  const std::vector<uint16_t> got = bits(rounded(part, kKey, spans));
  int different = 0;
  for (int64_t i = 0; i < part.numel(); ++i)
    different += got[static_cast<size_t>(i)] != want[static_cast<size_t>(i / 3994 * 5000 + 7 + i % 3994)];
  BOOST_TEST(different == 0);
  BOOST_TEST((bits(rounded(x, child(kKey, 1))) != want));
}

// Every rule: the update is that of an f32 optimizer at the same values, each element rounded by its bits.
BOOST_AUTO_TEST_CASE(every_rule_updates_in_f32_and_rounds) {
  for (const std::string& rule : optimizer_names()) {
    BOOST_TEST_CONTEXT(rule) {
      Trained narrow(rule), wide(rule, DType::f32);
      for (int64_t t = 1; t <= 5; ++t) {
        for (auto [to, from] : {std::pair{&wide.matrix, &narrow.matrix}, {&wide.vector, &narrow.vector}})
          to->detach().copy_(from->detach());
        narrow.step(t), wide.step(t);
        for (const auto& [name, x, y] :
             {std::tuple{"matrix", wide.matrix, narrow.matrix}, std::tuple{"vector", wide.vector, narrow.vector}}) {
          std::vector<uint16_t> want;
          for (int64_t i = 0; i < x.numel(); ++i) want.push_back(expected(x.data<float>()[i], name, t, i).bits);
          BOOST_TEST((bits(y) == want), name << " after " << t);
        }
      }
      const std::vector<NamedTensor> a = narrow.optimizer->state(), b = wide.optimizer->state();
      for (size_t i = 0; i < a.size(); ++i)
        BOOST_TEST((a[i].value.dtype() == b[i].value.dtype() && is_close(a[i].value, b[i].value, 0)), a[i].name);
    }
  }
}

// More elements than are widened at a time; the second half by itself, as a rank of ZeRO-1 has it.
BOOST_AUTO_TEST_CASE(parts_of_a_parameter_get_the_bits_of_the_whole) {
  const int64_t n = (1 << 22) + 1001, half = n / 2;
  const Tensor start = full({n}, 0.7, DType::bf16), gradient = normal_tensor({n}, 1, {4, 1});
  const auto trained = [&](int64_t begin, int64_t end) {
    Tensor p = parameter(start.sliced(0, begin, end).clone());
    const auto optimizer = make_optimizer({{"p", p}}, {.lr = 1e-3});
    optimizer->round_stochastically(kKey, {{{begin, 0, end - begin}}});
    for (int step = 0; step < 2; ++step) {
      set_grad(p, gradient.sliced(0, begin, end).contiguous());
      optimizer->step();
    }
    return p.detach();
  };
  const Tensor whole = trained(0, n);
  BOOST_TEST(is_close(trained(half, n), whole.sliced(0, half, n), 0));
  BOOST_TEST(is_close(trained(0, half), whole.sliced(0, 0, half), 0));
}

BOOST_AUTO_TEST_CASE(a_loaded_state_goes_on_with_the_same_bits) {
  Trained straight("adamw"), before("adamw"), after("adamw");
  for (int64_t t = 1; t <= 6; ++t) straight.step(t);
  for (int64_t t = 1; t <= 3; ++t) before.step(t);
  after.matrix.detach().copy_(before.matrix.detach()), after.vector.detach().copy_(before.vector.detach());
  after.optimizer->load(before.optimizer->state(), "a test");
  for (int64_t t = 4; t <= 6; ++t) after.step(t);
  BOOST_TEST((bits(after.matrix) == bits(straight.matrix)));
  BOOST_TEST((bits(after.vector) == bits(straight.vector)));
}

// Steps of a hundredth of the spacing: nearest never moves, at random the mean does.
BOOST_AUTO_TEST_CASE(small_updates_are_not_lost) {
  const auto mean_after = [](bool at_random) {
    Tensor p = parameter(full({4096}, 1, DType::bf16));
    const auto optimizer = make_optimizer({{"p", p}}, {.name = "sgd", .lr = 0x1p-14, .weight_decay = 0});
    if (at_random) optimizer->round_stochastically(kKey);
    for (int step = 0; step < 256; ++step) {
      set_grad(p, full({4096}, -1, DType::bf16));
      optimizer->step();
    }
    double sum = 0;
    for (const double x : p.to_vector<double>()) sum += x;
    return sum / 4096;
  };
  BOOST_TEST(mean_after(false) == 1);
  BOOST_TEST(std::fabs(mean_after(true) - (1 + 0x1p-6)) < 0x1p-11);
}

BOOST_AUTO_TEST_SUITE_END()
