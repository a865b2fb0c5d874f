// The dry device itself: what it logs of a call, what the CPU reads back, what happens when memory runs out.
#include "braid/tensor/dry/dry_device.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/tensor/graph.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(dry_device)

BOOST_AUTO_TEST_CASE(a_launch_is_logged_with_its_shape_and_bytes) {
  const DryDevice dry;
  const Tensor x = empty({64, 1024}, DType::bf16, dry.device()), row = empty({1024}, DType::bf16, dry.device());
  const size_t before = dry.log().size();
  const Tensor y = add(x, row), z = softmax(y, -1);
  BOOST_REQUIRE(dry.log().size() == before + 2);
  const DryWork &sum = dry.log()[before], &rows = dry.log()[before + 1];
  BOOST_TEST(sum.op == "binary");
  BOOST_TEST(sum.grid[0] == 64 * 1024 / (256 * 8));
  BOOST_TEST(sum.block[0] == 256);
  BOOST_TEST(sum.bytes == 2 * (2 * 64 * 1024 + 1024), "a broadcast row counts once");
  BOOST_TEST(rows.op == "softmax");
  BOOST_TEST(rows.bytes == 2 * 2 * 64 * 1024);
}

BOOST_AUTO_TEST_CASE(a_product_is_logged_with_its_shape_and_flops) {
  const DryDevice dry;
  const Tensor x = empty({2, 3, 64, 32}, DType::bf16, dry.device()),
               z = empty({2, 3, 32, 16}, DType::bf16, dry.device());
  const size_t before = dry.log().size();
  const Tensor y = matmul(x, z);
  BOOST_REQUIRE(dry.log().size() == before + 1);
  const DryWork& product = dry.log()[before];
  BOOST_TEST((product.kind == DryWork::Kind::product));
  BOOST_TEST(product.name == "product");
  BOOST_TEST(product.batch == 6);
  BOOST_TEST(product.inner == 32);
  BOOST_TEST(product.rows * product.columns == 64 * 16);
  BOOST_TEST(product.flops == 2.0 * 6 * 64 * 32 * 16);
  BOOST_TEST(product.bytes == 2 * 6 * (64 * 32 + 32 * 16 + 64 * 16));
}

BOOST_AUTO_TEST_CASE(kernels_have_their_names) {
  const DryDevice dry;
  const Tensor x = empty({64, 1024}, DType::f32, dry.device());
  const Tensor y = rms_norm(x, empty({1024}, DType::f32, dry.device()), 1e-6);
  BOOST_TEST(dry.log().back().name == "rms_norm_kernel");
}

BOOST_AUTO_TEST_CASE(values_read_back_are_zero) {
  const DryDevice dry;
  const Tensor x = full({3}, 7, DType::f32, dry.device());
  BOOST_TEST((x.to_vector<double>() == std::vector<double>{0, 0, 0}));
  BOOST_TEST(dry.counts().to_host == 12);
}

BOOST_AUTO_TEST_CASE(a_graph_is_logged_when_it_is_replayed) {
  DryDevice dry;
  Tensor x = empty({8}, DType::f32, dry.device());
  Graph graph(dry.device(), [&] { x.fill(1), x.fill(2); });
  BOOST_TEST(dry.log().empty());
  BOOST_TEST(dry.counts().nodes == 2);
  graph.replay();
  BOOST_TEST(dry.log().size() == 2U);
  BOOST_TEST(dry.log()[0].replayed);
}

BOOST_AUTO_TEST_CASE(memory_is_address_space_of_the_size_of_the_gpu) {
  const DryDevice dry({.memory = int64_t{40} << 30});
  const Tensor x = empty({int64_t{30} << 30}, DType::u8, dry.device());
  BOOST_TEST(memory_stats(dry.device()).reserved >= int64_t{30} << 30);
  BOOST_TEST(throws_with([&] { empty({int64_t{11} << 30}, DType::u8, dry.device()); },
                         "out of memory on the dry device (NVIDIA H100 SXM 80 GB): requested 11264 MiB"));
}

// For memory checkers: each tensor is an allocation of the driver.
BOOST_AUTO_TEST_CASE(an_environment_variable_gives_every_tensor_its_own_memory) {
  for (const char* value : {"exact", "cached"}) {
    setenv("BRAID_ALLOCATOR", value, 1);
    const bool exact = std::string(value) == "exact";
    const DryDevice dry;
    {
      const Tensor a = empty({100}, DType::f32, dry.device()), b = empty({7}, DType::f32, dry.device());
      BOOST_TEST(dry.counts().allocations == (exact ? 2 : 1));
      BOOST_TEST(memory_stats(dry.device()).reserved == (exact ? 428 : 16 << 20));
    }
    BOOST_TEST(dry.counts().frees == (exact ? 2 : 0));
  }
  setenv("BRAID_ALLOCATOR", "all", 1);
  BOOST_TEST(throws_with([] { DryDevice dry; }, "BRAID_ALLOCATOR=all is not known: expected exact"));
  unsetenv("BRAID_ALLOCATOR");
}

BOOST_AUTO_TEST_CASE(there_is_one_at_a_time) {
  const DryDevice dry;
  BOOST_TEST(throws_with([] { DryDevice second; }, "there is a dry device already"));
}

BOOST_AUTO_TEST_SUITE_END()
