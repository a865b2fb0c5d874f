// Offsets of strided walks, also of those with more than 2^31 items, which no test could hold in memory.
#include "braid/cuda/device/kernel.h"
// (first, as in every kernel file)
#include <boost/test/unit_test.hpp>

#include "braid/cuda/device/strided_index.cuh"
#include "braid/tensor/kernels/backend.h"

using namespace braid;

namespace {

const Device kGpu{Device::Kind::cuda, 0};

__global__ void find(cuda::Offsets<2> offsets, const int64_t* items, int64_t* places) {
  int64_t place[2];
  offsets.at(items[threadIdx.x], place);
  places[2 * threadIdx.x] = place[0];
  places[2 * threadIdx.x + 1] = place[1];
}

// The places of some items of a walk, next to those found by dividing axis by axis.
void check_walk(const std::vector<cuda::Axis<2>>& axes) {
  const cuda::Offsets<2> offsets(axes.data(), static_cast<int>(axes.size()));
  std::vector<int64_t> items, want;
  for (int64_t i = 0; i < 64; ++i) {  // the first, the last and some between them
    const Philox4 bits = philox(static_cast<uint64_t>(i), {1, 2});
    int64_t n = static_cast<int64_t>(bits.v[0]) << 20 ^ bits.v[1];
    if (i < 16) n = i < 8 ? i : offsets.count * 8 - i;
    items.push_back(n % offsets.count);
    int64_t rest = items.back(), place[2] = {0, 0};
    for (size_t a = axes.size(); a-- > 0; rest /= axes[a].size) {
      for (int k = 0; k < 2; ++k) place[k] += rest % axes[a].size * axes[a].stride[k];
    }
    want.insert(want.end(), place, place + 2);
  }
  Tensor there = from_vector(items, {64}).to(kGpu), found = empty({64, 2}, DType::i64, kGpu);
  cuda::launch(find, {.grid = 1, .block = 64}, offsets, there.data<int64_t>(), found.mutable_data<int64_t>());
  BOOST_TEST((found.to_vector<int64_t>() == want));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_strided)

BOOST_AUTO_TEST_CASE(places_of_items) {
  check_walk({{1, {5, 5}}});
  check_walk({{7, {1, 0}}});
  check_walk({{1000, {1, 1000}}, {1000, {1000, 1}}});
  check_walk({{3, {0, 700}}, {70, {10, 10}}, {10, {1, 1}}});
  check_walk({{2, {1, 96}}, {3, {2, 32}}, {4, {6, 8}}, {2, {24, 4}}, {2, {48, 2}}, {2, {96, 1}}});
  check_walk(
      {{2, {1, 9}}, {3, {2, 0}}, {2, {0, 4}}, {2, {24, 5}}, {3, {48, 1}}, {2, {7, 96}}, {5, {1, 3}}, {2, {0, 1}}});
  check_walk({{2147483647, {3, 1}}});
  check_walk({{715827882, {1, 3}}, {3, {1000000000, 1}}});  // 2^31 - 2 items
  check_walk({{65536, {1, 40000}}, {40000, {65536, 1}}});   // more than 2^31
  check_walk({{70001, {0, 1}}, {3, {7, 0}}, {4000037, {21, 5}}});
  check_walk({{1, {9, 9}}, {5000000029, {2, 1}}, {11, {0, 6}}});
  check_walk({{97, {1, 9}},
              {31, {2, 0}},
              {89, {0, 4}},
              {83, {24, 5}},
              {3, {48, 1}},
              {79, {7, 96}},
              {73, {1, 3}},
              {2, {0, 1}}});
}

BOOST_AUTO_TEST_CASE(neighbouring_axes_merge) {
  const cuda::Axis<1> dense[] = {{4, {60}}, {1, {999}}, {5, {12}}, {3, {4}}, {4, {1}}};
  BOOST_TEST(cuda::Offsets<1>(dense, 5).rank == 1);
  BOOST_TEST(cuda::Offsets<1>(dense, 5).count == 240);
  const cuda::Axis<2> apart[] = {{4, {15, 3}}, {5, {3, 0}}, {3, {1, 1}}};
  BOOST_TEST(cuda::Offsets<2>(apart, 3).rank == 3);
}

BOOST_AUTO_TEST_SUITE_END()
