#include "apps/train/log/spike.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(spike)

// A falling loss with a fixed ripple.
static double normal_loss(int i) { return 3 - 0.005 * i + 0.05 * std::sin(1.7 * i); }

BOOST_AUTO_TEST_CASE(finds_the_spike_and_only_it) {
  SpikeDetector detector(6, 20, 64);
  for (int i = 0; i < 300; ++i) {
    const bool jump = i == 150;
    BOOST_TEST(detector.add(normal_loss(i) + (jump ? 2 : 0)).spike == jump, "step " << i);
  }
}

BOOST_AUTO_TEST_CASE(z_is_the_distance_in_deviations) {
  SpikeDetector detector(0, 0, 4);
  for (double loss : {100.0, 1.0, 2.0, 3.0, 4.0}) detector.add(loss);  // 100 has left the window of four
  const auto verdict = detector.add(5.0);
  BOOST_TEST(std::fabs(verdict.z - 2.5 / std::sqrt(5.0 / 3)) < 1e-12);
  BOOST_TEST(!verdict.spike);  // threshold 0: never
}

BOOST_AUTO_TEST_CASE(a_spike_does_not_hide_the_next) {
  SpikeDetector detector(6, 10, 64);
  for (int i = 0; i < 100; ++i) detector.add(normal_loss(i));
  for (int i = 0; i < 5; ++i) BOOST_TEST(detector.add(5).spike);
}

BOOST_AUTO_TEST_CASE(warmup_only_watches) {
  SpikeDetector detector(6, 50, 64);
  for (int i = 0; i < 30; ++i) detector.add(normal_loss(i));
  BOOST_TEST(!detector.add(9).spike);
}

BOOST_AUTO_TEST_CASE(a_standing_loss_has_a_scale) {
  SpikeDetector detector(6, 0, 64);
  for (int i = 0; i < 50; ++i) BOOST_TEST(!detector.add(2.0).spike);
  BOOST_TEST(!detector.add(2.001).spike);
  BOOST_TEST(detector.add(2.1).spike);
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_always_are_spikes) {
  SpikeDetector detector(0, 1000);
  BOOST_TEST(detector.add(NAN).spike);
  BOOST_TEST(detector.add(INFINITY).spike);
  BOOST_TEST(std::isinf(detector.add(NAN).z));
}

BOOST_AUTO_TEST_CASE(the_state_is_the_past_losses) {
  SpikeDetector whole(6, 20, 64), resumed(6, 20, 64);
  for (int i = 0; i < 200; ++i) whole.add(normal_loss(i));
  for (int i = 0; i < 200; ++i) resumed.add(normal_loss(i));
  BOOST_TEST(whole.add(3.7).z == resumed.add(3.7).z);
}

BOOST_AUTO_TEST_SUITE_END()
