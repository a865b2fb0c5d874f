#include "braid/tensor/memory.h"

#include <boost/test/unit_test.hpp>

#include "braid/tensor/tensor.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(memory)

namespace {
int64_t now(MemoryUse use) { return memory_by_use(kCpu).current[static_cast<size_t>(use)]; }
}  // namespace

BOOST_AUTO_TEST_CASE(buffers_are_counted_under_the_innermost_scope) {
  const int64_t weights = now(MemoryUse::weights), workspace = now(MemoryUse::workspace), other = now(MemoryUse::other);
  {
    Tensor none = empty({5});
    MemoryScope outer(MemoryUse::weights);
    Tensor a = empty({10});
    {
      MemoryScope inner(MemoryUse::workspace);
      Tensor b = empty({100}), view = a.sliced(0, 0, 5);
      BOOST_TEST(now(MemoryUse::workspace) - workspace == 400);
    }
    Tensor c = a.clone();
    BOOST_TEST(now(MemoryUse::workspace) == workspace);
    BOOST_TEST(now(MemoryUse::weights) - weights == 80);
    BOOST_TEST(now(MemoryUse::other) - other == 20);
    count_as(c.sliced(0, 2, 3), MemoryUse::gradients);  // the whole buffer
    BOOST_TEST(now(MemoryUse::weights) - weights == 40);
  }
  BOOST_TEST(now(MemoryUse::weights) == weights);
  BOOST_TEST(now(MemoryUse::other) == other);
}

BOOST_AUTO_TEST_CASE(the_peak_is_that_of_the_sum_with_its_parts) {
  auto make = [](MemoryUse use, int64_t n) {
    MemoryScope scope(use);
    return empty({n}, DType::u8);
  };
  Tensor keep = make(MemoryUse::weights, 1000);
  reset_peak_memory(kCpu);
  const MemoryByUse before = memory_by_use(kCpu);
  auto more = [&](MemoryUse use) {
    return memory_by_use(kCpu).at_peak_of(use) - before.current[static_cast<size_t>(use)];
  };
  { Tensor a = make(MemoryUse::activations, 500), b = make(MemoryUse::workspace, 10); }
  { Tensor c = make(MemoryUse::workspace, 400); }  // the most workspace, but not the most in all
  BOOST_TEST(more(MemoryUse::activations) == 500);
  BOOST_TEST(more(MemoryUse::workspace) == 10);
  BOOST_TEST(memory_by_use(kCpu).peak() - before.peak() == 510);
  const auto workspace = static_cast<size_t>(MemoryUse::workspace);
  BOOST_TEST(memory_by_use(kCpu).max[workspace] - before.current[workspace] == 400);
  reset_peak_memory(kCpu);
  BOOST_TEST(memory_by_use(kCpu).peak() == before.peak());
}

BOOST_AUTO_TEST_SUITE_END()
