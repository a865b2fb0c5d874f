#include "braid/nn/module.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/autograd/ops.h"
#include "braid/nn/linear.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

namespace {
class Pair final : public nn::Module {
 public:
  Pair() : first_(2, 3, {.bias = true}, {1, 1}), second_(3, 2, {}, {1, 2}) {}
  Tensor operator()(const Tensor& x) const { return second_(tanh(first_(x))); }
  void visit(nn::Visitor& v) override {
    v("first", first_);
    v("list.0", second_);
  }

 private:
  nn::Linear first_, second_;
};

std::vector<std::string> names(nn::Module& m) {
  std::vector<std::string> list;
  for (const nn::NamedTensor& p : nn::parameters(m)) list.push_back(p.name);
  return list;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(module)

BOOST_AUTO_TEST_CASE(names_come_from_visit_once) {
  Pair m;
  std::vector<std::string> want{"first.weight", "first.bias", "list.0.weight"};
  BOOST_TEST(names(m) == want, boost::test_tools::per_element());
  BOOST_TEST(nn::count(m) == 6 + 3 + 6);
}

BOOST_AUTO_TEST_CASE(a_moved_module_still_names_its_own_parameters) {
  Pair a;
  nn::require_grad(a);
  Pair b = std::move(a);
  backward(sum(b(full({4, 2}, 0.5))));
  for (const nn::NamedTensor& p : nn::parameters(b)) BOOST_TEST_CONTEXT(p.name) BOOST_TEST(bool(grad(p.value)));
}

BOOST_AUTO_TEST_CASE(conversion_keeps_the_wish_for_gradients) {
  Pair m;
  nn::require_grad(m);
  nn::to(m, DType::f64);
  for (const nn::NamedTensor& p : nn::parameters(m)) {
    BOOST_TEST((p.value.dtype() == DType::f64));
    BOOST_TEST(requires_grad(p.value));
  }
}

BOOST_AUTO_TEST_CASE(load_reports_every_problem_and_changes_nothing) {
  Pair m;
  std::vector<double> before = nn::parameters(m)[0].value.to_vector<double>();
  Tensor nan = full({3, 2}, 0);
  nan.sliced(0, 1, 2).fill(std::numeric_limits<double>::quiet_NaN());
  std::vector<nn::NamedTensor> source{
      {"first.weight", nan}, {"list.0.weight", full({2, 4}, 1)}, {"extra", full({1}, 1)}};
  auto attempt = [&] { nn::load(m, source, "model.safetensors"); };
  BOOST_TEST(throws_with(attempt, "first.weight (3, 2) contains NaN or Inf"));
  BOOST_TEST(throws_with(attempt, "first.bias is missing (expected (3))"));
  BOOST_TEST(throws_with(attempt, "list.0.weight has shape (2, 4), expected (2, 3)"));
  BOOST_TEST(throws_with(attempt, "extra (1) is not a parameter of this model"));
  BOOST_TEST(throws_with(attempt, "in model.safetensors"));
  BOOST_TEST(is_close(nn::parameters(m)[0].value.to_vector<double>(), before, 0));
}

BOOST_AUTO_TEST_CASE(load_fills_in_any_order_and_type) {
  Pair m;
  nn::load(
      m,
      {{"list.0.weight", full({2, 3}, 3, DType::f64)}, {"first.bias", full({3}, 2)}, {"first.weight", full({3, 2}, 1)}},
      "test");
  BOOST_TEST(nn::parameters(m)[2].value.to_vector<double>()[5] == 3.0);
}

BOOST_AUTO_TEST_SUITE_END()
