// Checks of exercise 14: numbers worked by hand, and whether intervals hold the truth as often as they say.
#include EXERCISE

#include <braid/autograd.h>

using exercise::Interval;
using exercise::Losses;

namespace {

void expect_number(const char* what, double found, double expected) {
  course::expect(std::abs(found - expected) <= 1e-9, what, ": expected ", expected, ", found ", found);
}
void expect_interval(const char* what, const Interval& found, double low, double high) {
  course::expect(std::abs(found.low - low) <= 1e-6 && std::abs(found.high - high) <= 1e-6, what, ": expected from ",
                 low, " to ", high, ", found from ", found.low, " to ", found.high);
}

const Losses kOld{2.31, 2.24, 2.40, 2.28, 2.37}, kNew{2.29, 2.23, 2.37, 2.27, 2.34};

}  // namespace

int main() {
  course::Checks check;
  check("mean and deviation", "the sum divided by the count, in double", [] {
    expect_number("mean of 1 2 3 6", exercise::mean({1, 2, 3, 6}), 3);
    course::hint("the deviation divides by n - 1, and is a square root");
    expect_number("deviation of 1 3", exercise::deviation({1, 3}), 1.4142135623730951);
    expect_number("deviation of 1 2 3 6", exercise::deviation({1, 2, 3, 6}), 2.160246899469287);
  });
  check("interval of four runs", "t[n], not t[n - 1]; divide by the square root of n", [] {
    expect_interval("interval of 1 2 3 6", exercise::interval({1, 2, 3, 6}), 3 - 3.436953, 3 + 3.436953);
  });
  check("paired: the seeds' luck cancels", "take new - old of each pair first", [] {
    expect_interval("new - old of the table in the chapter", exercise::paired(kOld, kNew), -0.032415, -0.007585);
  });
  check("verdict", "lower losses are better; an interval with 0 in it decides nothing", [] {
    for (const auto& [low, high, expected] : {std::tuple{-0.03, -0.01, "better"},
                                              {0.01, 0.03, "worse"},
                                              {-0.01, 0.03, "not decided"},
                                              {-0.03, 0.01, "not decided"}}) {
      const std::string found = exercise::verdict({low, high});
      course::expect(found == expected, "from ", low, " to ", high, ": expected \"", expected, "\", found \"", found,
                     "\"");
    }
  });
  check("an interval of 95 % holds the truth in 95 of 100 studies", "if pairs are too few for t[n], count again", [] {
    constexpr int kStudies = 4000, kSeeds = 5;
    constexpr double kTruth = -0.01;
    const auto noise = braid::randn({kStudies, 3, kSeeds}, {.seed = 5}, braid::DType::f64).to_vector<double>();
    int held = 0;
    for (size_t study = 0; study < kStudies; ++study) {
      Losses a(kSeeds), b(kSeeds);
      for (size_t i = 0; i < kSeeds; ++i) {
        const double* z = noise.data() + study * 3 * kSeeds + i;
        a[i] = 2 + 0.05 * z[0] + 0.01 * z[kSeeds], b[i] = 2 + kTruth + 0.05 * z[0] + 0.01 * z[2 * kSeeds];
      }
      const Interval found = exercise::paired(a, b);
      held += found.low <= kTruth && kTruth <= found.high;
    }
    const double percent = 100.0 * held / kStudies;
    course::expect(percent > 94 && percent < 96, "of 4000 simulated studies with 5 seeds the interval holds the true ",
                   "difference in ", percent, " %, expected 95 %");
  });
  check("pairs_needed", "try 2, 3, ... until the half width is below the effect", [] {
    course::expect(exercise::pairs_needed(0.02, 0.01) == 4, "effect 0.02, deviation 0.01: expected 4 pairs, found ",
                   exercise::pairs_needed(0.02, 0.01));
    course::expect(exercise::pairs_needed(0.01, 0.01) == 7, "effect 0.01, deviation 0.01: expected 7 pairs, found ",
                   exercise::pairs_needed(0.01, 0.01));
    course::expect(exercise::pairs_needed(0.007, 0.01) == 11, "effect 0.007, deviation 0.01: expected 11, found ",
                   exercise::pairs_needed(0.007, 0.01));
    course::hint("kT ends at 11 pairs; where these are not enough the answer is 0");
    course::expect(exercise::pairs_needed(0.001, 0.01) == 0, "effect 0.001, deviation 0.01: expected 0, found ",
                   exercise::pairs_needed(0.001, 0.01));
  });
  check("false_alarm", "one minus the probability that none of the m does", [] {
    expect_number("of 1 comparison", exercise::false_alarm(1), 0.05);
    expect_number("of 14 comparisons", exercise::false_alarm(14), 0.512325020894158);
  });
  check("holm", "sort, multiply the smallest by m, the next by m - 1, ...; never below the one before it in that order",
        [] {
          const std::vector<double> found = exercise::holm({0.01, 0.04, 0.03, 0.005}), expected{0.03, 0.06, 0.06, 0.02};
          for (size_t i = 0; i < expected.size(); ++i)
            expect_number(("holm of 0.01 0.04 0.03 0.005, entry " + std::to_string(i)).c_str(), found.at(i),
                          expected[i]);
          course::hint("a probability is at most 1");
          for (const size_t i : {0, 1}) expect_number("holm of 0.6 0.7", exercise::holm({0.6, 0.7}).at(i), 1);
        });
  return check.result();
}
