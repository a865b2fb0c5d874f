// How far rounding grows over 200 steps of training, and that ranks add no more than the last bits of one process do.
//
// Training amplifies differences: two runs of one process whose weights differ by one unit in the last place drift
// apart by a factor that grows with the learning rate and is the model's, not ours. A layout adds in another order,
// which changes last bits in every step. So its distance from one process after 200 steps is held against the distance
// of one process from itself with such bits changed in every step, at a learning rate at which models are trained, and
// against 1e-11 at one so small that rounding is not amplified.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "distributed/thread_ranks.h"
#include "tests/distributed/parity.h"

using namespace braid;
using namespace braid::test;

namespace {

constexpr int64_t kSamples = 8, kLength = 21, kSteps = 200;

// The largest difference of a weight tensor, relative to its largest entry; NaN counts as infinite.
double distance(const Record& a, const Record& b) {
  double worst = 0;
  for (const auto& [name, w] : b.weights) {
    double largest = 0, difference = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      largest = std::fmax(largest, std::fabs(w[i]));
      double d = std::fabs(a.weights.at(name)[i] - w[i]);
      difference = std::isnan(d) ? INFINITY : std::fmax(difference, d);
    }
    if (largest > 0) worst = std::fmax(worst, difference / largest);
  }
  return worst;
}

Record on_ranks(const std::string& kind, const Shape3& s, double lr) {
  Record record;
  dist::run_thread_ranks(static_cast<int>(s.data * s.context * s.tensor), [&](const dist::Communicator& world) {
    Record mine = train(parity_config(kind), dist::make_layout(world, s.data, s.context, s.tensor), kSteps, kSamples,
                        kLength, DType::f64, false, lr);
    if (world.rank() == 0) record = mine;
  });
  return record;
}

Record with_noise(const std::string& kind, double lr, uint64_t salt, int64_t steps) {
  return train(parity_config(kind), {}, kSteps, kSamples, kLength, DType::f64, false, lr, {salt, steps});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rounding)

// Minutes: run by the ctest `distributed_long` (label slow).
BOOST_AUTO_TEST_CASE(two_hundred_steps, *boost::unit_test::disabled()) {
  for (const char* kind : {"dcformer", "dcpythia", "dcformer-g4"}) {
    for (double lr : {1e-5, 1e-4, 1e-3, 1e-2}) {
      const Record& one = reference(kind, kSteps, kSamples, kLength, lr);
      double once = 0, always = 0, ranks = 0;
      for (uint64_t salt : {1, 2, 3}) {
        once = std::fmax(once, distance(with_noise(kind, lr, salt, 1), one));
        always = std::fmax(always, distance(with_noise(kind, lr, salt, kSteps), one));
      }
      std::string text;
      for (const Shape3& s : {Shape3{2, 1, 2}, Shape3{1, 2, 2}, Shape3{4, 1, 1}, Shape3{1, 1, 4}}) {
        double d = distance(on_ranks(kind, s, lr), one);
        ranks = std::fmax(ranks, d);
        char t[32];
        std::snprintf(t, sizeof t, " %.1e", d);
        text += t;
      }
      char line[200];
      std::snprintf(line, sizeof line, "%-12s lr %.0e: last bits once %.1e, in every step %.1e, layouts %.1e :%s", kind,
                    lr, once, always, ranks, text.c_str());
      BOOST_TEST_MESSAGE(line);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
