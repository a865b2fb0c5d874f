#include "tensor/backend.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(backend_table)

BOOST_AUTO_TEST_CASE(a_missing_kernel_says_its_name) {
  constexpr Backend empty_table{.name = "nothing"};
  Tensor x = zeros({1});
  BOOST_TEST(throws_with([&] { empty_table.softmax(x, x); }, "[softmax] no such kernel"));
  BOOST_TEST(!empty_table.softmax);
  BOOST_TEST(bool(cpu_backend().softmax));
  BOOST_TEST(std::string(empty_table.rms_norm.name()) == "rms_norm");
}

BOOST_AUTO_TEST_CASE(visibility_by_its_definition) {
  for (int64_t window : {0, 1, 3}) {
    for (int64_t offset : {-2, 0, 4}) {
      for (bool causal : {true, false}) {
        Visibility v{causal, causal ? window : 0, offset};
        for (int64_t t = 0; t < 6; ++t) {
          for (int64_t s = 0; s < 7; ++s) {
            bool want = !causal || (s <= t + offset && (window == 0 || s > t + offset - window));
            bool got = s >= v.first(t) && s < v.end(t, 7);
            BOOST_TEST(got == want);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
