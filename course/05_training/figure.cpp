// Left: three optimizers of Braid in the valley f(x, y) = (x^2 + 20 y^2) / 2. Right: what five Newton-Schulz steps make
// of singular values.
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/nn/optim/rules/adamw.h"
#include "braid/nn/optim/rules/sgd.h"
#include "course/drawing.h"

using namespace braid;
using course::Color;

namespace {

double across(double x) { return 340 + 100 * x; }  // pixels of x from -3 to 0.3
double down(double y) { return 140 - 75 * y; }

template <class Rule>
void path(course::Drawing& out, const nn::OptimizerOptions& options, Color color) {
  Tensor p = from_values({-3, 1.2}, {2}, DType::f64);
  Rule rule({{"p", require_grad(p)}}, options);
  std::vector<double> at = p.detach().to_vector<double>();
  for (int step = 0; step < 40; ++step) {
    rule.zero_grad();
    backward(sum(square(p) * from_values({1, 20}, {2}, DType::f64)) * 0.5);
    rule.step();
    const std::vector<double> next = p.detach().to_vector<double>();
    out.line(across(at[0]), down(at[1]), across(next[0]), down(next[1]), color, 1.5);
    at = next;
  }
}

void level(course::Drawing& out, double value) {  // of the left half: f = value
  for (int i = 24; i < 72; ++i) {
    const double a = std::acos(-1.0) * i / 48, b = std::acos(-1.0) * (i + 1) / 48, r = std::sqrt(2 * value);
    out.line(across(r * std::cos(a)), down(r / std::sqrt(20) * std::sin(a)), across(r * std::cos(b)),
             down(r / std::sqrt(20) * std::sin(b)), Color::soft, 0.6);
  }
}

}  // namespace

int main(int argc, char** argv) {
  course::Drawing out(720, 280,
                      "Paths of SGD, momentum and AdamW in a valley, and singular values in Newton-Schulz steps");
  for (const double value : {0.5, 2.0, 4.5}) level(out, value);
  path<nn::Sgd>(out, {.lr = 0.09, .weight_decay = 0}, Color::blue);
  path<nn::Sgd>(out, {.lr = 0.02, .weight_decay = 0, .momentum = 0.8}, Color::orange);
  path<nn::AdamW>(out, {.lr = 0.15, .weight_decay = 0}, Color::green);
  out.text(20, 24, "40 updates in a valley");
  out.text(20, 262, "SGD", Color::blue);
  out.text(70, 262, "with momentum", Color::orange);
  out.text(190, 262, "AdamW", Color::green);

  out.text(420, 24, "singular values, step by step");
  const auto x = [](int step) { return 450 + 48.0 * step; };
  const auto y = [](double s) { return 230 - 150 * s; };
  for (const double s : {0.0, 0.5, 1.0}) {
    out.line(x(0), y(s), x(5), y(s), Color::soft, 0.5);
    out.text(442, y(s) + 4, s == 0.5 ? "0.5" : std::to_string(static_cast<int>(s)), Color::soft, "end");
  }
  for (int step = 0; step <= 5; ++step) out.text(x(step), 262, std::to_string(step), Color::soft, "middle");
  for (double s : {1.0, 0.6, 0.3, 0.1, 0.03, 0.01, 0.003}) {
    for (int step = 0; step < 5; ++step) {
      const double next = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
      out.line(x(step), y(s), x(step + 1), y(next), Color::blue, 1.5);
      s = next;
    }
  }
  out.save(argc, argv);
}
