// Work that is recorded once and repeated.
#include "braid/tensor/graph.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

namespace {

const Device kGpu{Device::Kind::cuda, 0};

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_graph)

BOOST_AUTO_TEST_CASE(replays_with_what_its_inputs_hold_then) {
  Tensor x = from_values({1, 2, 3, 4}, {2, 2}).to(kGpu), y = from_values({0, 0, 0, 0}, {2, 2}).to(kGpu);
  int calls = 0;
  const auto work = [&] {
    ++calls;
    Tensor square = empty({2, 2}, DType::f32, kGpu);  // stays with the graph
    backend(kGpu).matmul.product(x, x, false, square);
    backend(kGpu).matmul.product(square, x, true, y);
  };
  work();  // what products need is made at their first use
  backend(kGpu).copy.fill(0, y);
  calls = 0;
  Graph graph(kGpu, work);
  BOOST_TEST(calls == 1);
  BOOST_TEST(is_close(y, from_values({0, 0, 0, 0}, {2, 2}), 0));
  graph.replay();
  BOOST_TEST(is_close(y, from_values({37, 54, 81, 118}, {2, 2}), 0));
  std::vector<Tensor> others;  // must not get the graph's memory
  for (int i = 0; i < 8; ++i) others.push_back(from_values({9, 9, 9, 9}, {2, 2}).to(kGpu));
  backend(kGpu).stream.transfer(from_values({1, 0, 0, 1}, {2, 2}), x);
  graph.replay();
  BOOST_TEST(is_close(y, from_values({38, 54, 81, 119}, {2, 2}), 0));
  for (const Tensor& other : others) BOOST_TEST(is_close(other, from_values({9, 9, 9, 9}, {2, 2}), 0));
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(the_host_stays_outside) {
  Tensor x = from_values({5}, {1, 1}).to(kGpu);
  BOOST_TEST(throws_with([&] { Graph(kGpu, [&] { x.item(); }); }, "values were read back while a graph is captured"));
  BOOST_TEST(throws_with([&] { Graph(kGpu, [&] { zeros({1}, DType::f32).to(kGpu); }); },
                         "values were copied to the GPU while a graph is captured"));
  BOOST_TEST(throws_with([&] { Graph(kGpu, [&] { synchronize(kGpu); }); }, "the CPU waited for the GPU"));
  BOOST_TEST(throws_with([&] { Graph(kGpu, [&] { Graph(kGpu, [] {}); }); }, "a graph is being captured already"));
  BOOST_TEST(x.item() == 5);  // after all these errors the GPU works as before
}

// Algorithms of products are chosen, and cuDNN's kernels made, outside of captures.
BOOST_AUTO_TEST_CASE(nothing_is_made_inside) {
  Tensor x = randn({3, 7}, {1, 2}, DType::f32, kGpu), y = empty({3, 3}, DType::f32, kGpu);
  const auto product = [&] { backend(kGpu).matmul.product(x, x.transposed(), false, y); };
  BOOST_TEST(throws_with([&] { Graph(kGpu, product); },
                         "[matmul] the product (3, 7) x (7, 3) of f32 is new while a graph is captured, but its "
                         "algorithm is chosen outside of captures only; run the work once before it is captured"));
  product();
  Graph(kGpu, product).replay();
#if defined(BRAID_EMULATION)
  Tensor q = randn({2, 40, 2, 24}, {1, 3}, DType::bf16, kGpu);
  const auto attention = [&] { scaled_dot_product_attention(q, q, q); };
  BOOST_TEST(
      throws_with([&] { Graph(kGpu, attention); },
                  "attention of (2, 40, 2, 24) queries and (2, 40, 2, 24) keys is new while a graph is captured"));
  attention();
  Graph(kGpu, attention).replay();
#endif
}

BOOST_AUTO_TEST_CASE(the_cpu_has_none) {
  BOOST_TEST(throws_with([] { Graph(kCpu, [] {}); }, "graphs are for CUDA devices; cpu has none"));
}

BOOST_AUTO_TEST_SUITE_END()
