// The decisive test: loss, every gradient, the gradient norm and the weights after some steps are those of one process,
// in f64 to rounding, for every layout.
#include "tests/distributed/parity.h"

#include <boost/test/unit_test.hpp>

#include "distributed/thread_ranks.h"

using namespace braid;
using namespace braid::test;

namespace {
constexpr int64_t kSteps = 3, kSamples = 8, kLength = 21;

void check_layout(const std::string& kind, const Shape3& s) {
  const Record& want = reference(kind, kSteps, kSamples, kLength);
  dist::run_thread_ranks(static_cast<int>(s.data * s.context * s.tensor), [&](const dist::Communicator& world) {
    dist::Layout layout = dist::make_layout(world, s.data, s.context, s.tensor);
    Record got = train(parity_config(kind), layout, kSteps, kSamples, kLength);
    expect_parity(got, want, 1e-12, 1e-11, world.rank() == 0, kind + ", " + str(s));
  });
}
}  // namespace

BOOST_AUTO_TEST_SUITE(parity)

BOOST_AUTO_TEST_CASE(every_layout_of_up_to_four_ranks) {
  for (const std::string& kind : parity_kinds()) {
    for (int64_t data : {1, 2, 4}) {
      for (int64_t context : {1, 2, 4}) {
        for (int64_t tensor : {1, 2, 4}) {
          if (data * context * tensor > 4 || data * context * tensor == 1) continue;
          if (kind == "vocabulary-50257" && tensor != 2) continue;
          BOOST_CHECK_NO_THROW(check_layout(kind, {data, context, tensor}));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
