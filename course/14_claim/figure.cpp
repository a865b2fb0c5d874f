// Twenty-four studies of five seeds each, drawn by lot: their intervals, and the true difference that they look for.
#include <braid/autograd.h>

#include <cmath>
#include <vector>

#include "course/drawing.h"

using course::Color;

int main(int argc, char** argv) {
  constexpr double kTruth = -0.01, kDeviation = 0.01;
  constexpr size_t kStudies = 24, kSeeds = 5;
  const auto noise = braid::randn({kStudies, kSeeds}, {.seed = 3}, braid::DType::f64).to_vector<double>();
  course::Drawing out(640, 300, "Intervals of twenty-four simulated studies around the true difference");
  const auto at = [](double difference) { return 330 + difference * 8000; };
  out.line(at(0), 30, at(0), 270, Color::soft);
  out.line(at(kTruth), 30, at(kTruth), 270, Color::blue, 2);
  out.text(at(0), 22, "0: no difference", Color::soft, "start");
  out.text(at(kTruth), 22, "true difference", Color::blue, "end");
  int decided = 0, missed = 0;
  for (size_t study = 0; study < kStudies; ++study) {
    double mean = 0, sum = 0;
    for (size_t i = 0; i < kSeeds; ++i) mean += (kTruth + kDeviation * noise[study * kSeeds + i]) / kSeeds;
    for (size_t i = 0; i < kSeeds; ++i) sum += std::pow(kTruth + kDeviation * noise[study * kSeeds + i] - mean, 2);
    const double half = 2.776 * std::sqrt(sum / (kSeeds - 1)) / std::sqrt(static_cast<double>(kSeeds));
    const bool holds = std::fabs(mean - kTruth) <= half, excludes = std::fabs(mean) > half;
    decided += excludes, missed += !holds;
    const double y = 36 + 10 * static_cast<double>(study);
    const Color color = !holds ? Color::red : excludes ? Color::green : Color::ink;
    out.line(at(mean - half), y, at(mean + half), y, color, 2);
    out.box(at(mean) - 2, y - 2, 4, 4, "", color, 1);
  }
  out.text(470, 80, std::to_string(decided) + " exclude 0: decided", Color::green);
  out.text(470, 102, std::to_string(static_cast<int>(kStudies) - decided) + " do not: not decided");
  out.text(470, 124, std::to_string(missed) + " miss the truth (red)", Color::red);
  out.text(20, 292, "difference of the losses, new - old, in nats; to the left: new is better", Color::soft);
  out.save(argc, argv);
}
