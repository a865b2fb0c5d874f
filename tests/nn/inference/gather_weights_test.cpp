#include "braid/nn/inference/gather_weights.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/nn/layers/linear.h"
#include "tests/support/compare.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(gather_weights)

namespace {

// Parameters of two types, a tie, and one that is larger than a buffer.
class Mixed final : public nn::Module {
 public:
  Mixed()
      : first_(300, 100, {.bias = true}, {1, 1}),
        second_(5, 3, {.bias = true}, {1, 2}),
        large_(nn::parameter(full({17 << 20}, 0.5))),
        tie_(large_),
        half_(nn::parameter(full({7, 3}, 2, DType::bf16))) {}
  void visit(nn::Visitor& v) const override {
    v("first", first_);
    v("half", half_);
    v("second", second_);
    v("large", large_);
    v("tie", tie_);
  }

 private:
  nn::Linear first_, second_;
  Tensor large_, tie_, half_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(values_names_and_ties_stay) {
  Mixed m;
  const auto before = nn::parameters(m);
  nn::gather_weights(m);
  const auto after = nn::parameters(m);
  BOOST_REQUIRE(after.size() == before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    BOOST_TEST_CONTEXT(before[i].name) {
      BOOST_TEST(after[i].name == before[i].name);
      BOOST_TEST((after[i].value.shape() == before[i].value.shape()));
      BOOST_TEST((after[i].value.dtype() == before[i].value.dtype()));
      BOOST_TEST((after[i].value.to_vector<double>() == before[i].value.to_vector<double>()));
      BOOST_TEST(!requires_grad(after[i].value));
      BOOST_TEST(reinterpret_cast<uintptr_t>(after[i].value.raw()) % 64 == 0u);
    }
  }
  nn::check_separate(after);
}

BOOST_AUTO_TEST_CASE(neighbours_share_a_buffer_of_their_type) {
  Mixed m;
  nn::gather_weights(m);
  const auto p = nn::parameters(m);  // first.weight, first.bias, half, second.weight, second.bias, large
  BOOST_TEST(p[0].value.shares_storage(p[1].value));
  BOOST_TEST(!p[0].value.shares_storage(p[2].value));
  BOOST_TEST(p[0].value.shares_storage(p[4].value));
  BOOST_TEST(!p[0].value.shares_storage(p[5].value));
  BOOST_TEST(p[0].value.storage().bytes() == 4 * (30000 + 112 + 16 + 16));  // each to the next line of a cache
  BOOST_TEST(p[5].value.storage().bytes() == 68 << 20);
}

BOOST_AUTO_TEST_CASE(little_memory_is_needed_beside_the_weights) {
  Mixed m;
  reset_peak_memory(kCpu);
  const int64_t before = memory_stats(kCpu).current;
  nn::gather_weights(m);
  BOOST_TEST(memory_stats(kCpu).peak <= before + (68 << 20) + (1 << 20));  // the largest parameter
  BOOST_TEST(memory_stats(kCpu).current <= before + (1 << 20));
}

BOOST_AUTO_TEST_SUITE_END()
