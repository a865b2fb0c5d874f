#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cuda_rope)

BOOST_AUTO_TEST_CASE(turns_pairs_and_passes_the_rest) {
  struct Case {
    Shape x;
    int64_t batch, half;  // of the tables
  };
  for (DType t : kFloats) {
    for (const Case& c : std::vector<Case>{{{2, 3, 4, 64}, 1, 32},
                                           {{2, 3, 2, 6}, 2, 2},
                                           {{1, 1, 1, 1}, 1, 0},
                                           {{3, 2, 5, 34}, 3, 17},
                                           {{1, 2, 3, 40}, 1, 8},
                                           {{1, 2, 70, 16}, 1, 8},
                                           {{2, 0, 2, 6}, 1, 3}}) {
      for (bool inverse : {false, true}) {
        for (bool misaligned : {false, true}) {
          BOOST_TEST_CONTEXT(str(t) << " " << str(c.x) << " half " << c.half << (inverse ? " inverse" : "")) {
            DType wide = accumulate_type(t);
            Shape table{c.batch, c.x[1], c.half};
            check_on_gpu(
                [inverse](const auto& in) {
                  Tensor y = empty_like(in[0]);
                  backend(y.device()).rope.rotate(in[0], in[1], in[2], inverse, y);
                  return std::vector{y};
                },
                {random_tensor(c.x, 1, t), random_tensor(table, 2, wide, -1, 1), random_tensor(table, 3, wide, -1, 1)},
                tolerance_of(t), misaligned);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
