// Leaves and gradients in memory of others, and results with a history that go to others.
#include <boost/test/unit_test.hpp>
#include <functional>

#include "braid/autograd.h"
#include "braid/dlpack.h"
#include "braid/tensor/from_memory.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"

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

// The op table has small operands; products and attention of these sizes have kernels of their own.
BOOST_AUTO_TEST_CASE(kernels_of_large_operands_read_nothing_behind_them) {
  using Ops = std::vector<Tensor>;
  struct Case {
    const char* name;
    std::function<Tensor(const Ops&)> op;
    std::vector<Shape> shapes;
  };
  const std::vector<Case> cases{
      {"matmul", [](const Ops& x) { return matmul(x[0], x[1]); }, {{131, 133}, {133, 135}}},
      {"matmul of a row", [](const Ops& x) { return matmul(x[0], x[1]); }, {{1, 261}, {261, 133}}},
      {"matmul, transposed", [](const Ops& x) { return matmul(x[0], transpose(x[1])); }, {{131, 133}, {135, 133}}},
      {"attention",
       [](const Ops& x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.mask = {.causal = true}}); },
       {{1, 69, 2, 24}, {1, 69, 2, 24}, {1, 69, 2, 24}}},
      {"softmax", [](const Ops& x) { return softmax(x[0]); }, {{3, 1001}}},
      {"conv2d", [](const Ops& x) { return conv2d(x[0], x[1]); }, {{1, 3, 19, 21}, {5, 3, 3, 3}}},
      {"sum", [](const Ops& x) { return sum(x[0], {0}); }, {{67, 131}}},
      {"sort", [](const Ops& x) { return sort(x[0]).values; }, {{3, 1001}}}};
  for (const Case& c : cases) {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      Ops own, borrowed;
      for (size_t i = 0; i < c.shapes.size(); ++i) {
        own.push_back(randn(c.shapes[i], {.seed = i + 1}).to(dtype));
        borrowed.push_back(guarded(own.back()));
        require_grad(own.back()), require_grad(borrowed.back());
      }
      const Tensor want = c.op(own), got = c.op(borrowed), dy = randn(want.shape(), {.seed = 9}).to(dtype);
      backward(want, dy), backward(got, guarded(dy));
      BOOST_TEST_CONTEXT(c.name << " " << str(dtype)) {
        BOOST_TEST(is_close(got, want, 0));
        for (size_t i = 0; i < own.size(); ++i) BOOST_TEST(is_close(grad(borrowed[i]), grad(own[i]), 0));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
