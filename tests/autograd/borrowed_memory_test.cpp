// Leaves and gradients in memory of others, and results with a history that go to others.
#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/dlpack.h"
#include "braid/tensor/from_memory.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(borrowed_memory)

BOOST_AUTO_TEST_CASE(borrowed_leaves_have_gradients) {
  std::vector<double> numbers{1, 2, 3};
  int released = 0;
  {
    Tensor x = from_memory(numbers.data(), {3}, [&] { ++released; });
    require_grad(x);
    const Tensor y = sum(square(x));
    backward(y);
    BOOST_TEST(is_close(grad(x).to_vector<double>(), {2, 4, 6}, 0));
    const Tensor again = square(x);  // the history keeps the memory
    x = Tensor();
    BOOST_TEST(released == 0);
  }
  BOOST_TEST(released == 1);
}

BOOST_AUTO_TEST_CASE(writing_to_a_borrowed_leaf_is_noticed) {
  std::vector<double> numbers{1, 2, 3};
  Tensor x = from_memory(numbers.data(), {3});
  require_grad(x);
  const Tensor y = sum(square(x));
  as_mutable_span<double>(x)[0] = 5;
  BOOST_TEST(throws_with([&] { backward(y); }, "written in place"));
}

BOOST_AUTO_TEST_CASE(a_borrowed_gradient_stays_its_owners) {
  std::vector<double> dy{1, 1};
  Tensor x = from_values({1, 2}, {2}, DType::f64);
  require_grad(x);
  for (int pass = 0; pass < 3; ++pass) backward(x + 0.0, from_memory(dy.data(), {2}));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {3, 3}, 0));
  BOOST_TEST(dy == (std::vector<double>{1, 1}), boost::test_tools::per_element());
  set_grad(x, from_memory(dy.data(), {2}));
  backward(sum(x));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {2, 2}, 0));
  BOOST_TEST(dy == (std::vector<double>{1, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(results_with_a_history_go_out_for_reading) {
  Tensor x = from_values({1, 2}, {2});
  require_grad(x);
  const auto flags = [](const Tensor& t) {
    DLManagedTensorVersioned* out = to_dlpack(t);
    const uint64_t found = out->flags;
    out->deleter(out);
    return found;
  };
  const Tensor y = square(x);
  BOOST_TEST(flags(x) == 0u);
  BOOST_TEST(flags(y) == DLPACK_FLAG_BITMASK_READ_ONLY);
  BOOST_TEST(flags(y.detach()) == 0u);
  BOOST_TEST(!requires_grad(from_dlpack(to_dlpack(x))));
  BOOST_TEST(throws_with([&] { to_dlpack_unversioned(y); }, "as the result of a recorded op, and this envelope"));
  const Tensor values = from_dlpack(to_dlpack_unversioned(y.detach().clone()));
  BOOST_TEST(is_close(values.to_vector<double>(), {1, 4}, 0));
  backward(sum(y));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {2, 4}, 0));
}

BOOST_AUTO_TEST_SUITE_END()
