// Milestone 3: two moons, told apart by a network that your engine trains, beside the same network on Braid's engine.
#include <braid/autograd.h>

#include <cmath>
#include <cstdio>

#include "03_engine/exercise.h"
#include "course/curves.h"
using namespace braid;

namespace {

constexpr int kSteps = 300;
constexpr double kRate = 0.02;

// Two half circles with noise, one shifted below the other: points (n, 2) and what they are, -1 or 1, (n, 1).
struct Moons {
  Tensor points, sides;
};
Moons two_moons(int64_t n) {
  const Tensor angle = rand({n, 1}, {.seed = 1}, DType::f64) * 3.14159265358979;
  const Tensor side = cast(arange(n) % 2, DType::f64) * 2.0 - 1.0;
  const Tensor sides = reshape(side, {n, 1});
  const Tensor points =
      concat({cos(angle) * sides + (sides + 1.0) * -0.5 + 1.0, sin(angle) * sides * -1.0 - sides * 0.25}, 1);
  return {points + randn({n, 2}, {.seed = 2}, DType::f64) * 0.08, sides};
}

}  // namespace

int main(int argc, char** argv) {
  course::Curves curves(argc, argv, "your engine", "Braid's", 50);
  const Moons moons = two_moons(200);
  std::vector<Tensor> own, real;
  const std::vector<Shape> shapes{{2, 16}, {16}, {16, 16}, {16}, {16, 1}, {1}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const double spread = shapes[i].rank() == 2 ? std::sqrt(2.0 / static_cast<double>(shapes[i][0])) : 0;
    own.push_back(randn(shapes[i], {.seed = 10 + i}, DType::f64) * spread);
    real.push_back(own.back().clone());
    require_grad(real.back());
  }
  double right = 0;
  for (int step = 1; step <= kSteps; ++step) {
    // mean squared error of relu(relu(x w0 + w1) w2 + w3) w4 + w5
    std::vector<exercise::Value> w;
    for (const Tensor& x : own) w.push_back(exercise::leaf(x));
    const exercise::Value hidden = relu(add(matmul(exercise::leaf(moons.points), w[0]), w[1]));
    const exercise::Value out = add(matmul(relu(add(matmul(hidden, w[2]), w[3])), w[4]), w[5]);
    const exercise::Value miss = add(out, exercise::leaf(neg(moons.sides)));
    exercise::Value loss =
        multiply(exercise::sum(multiply(miss, miss)), exercise::leaf(full({}, 1.0 / 200, DType::f64)));
    exercise::backward(loss);
    for (size_t i = 0; i < own.size(); ++i) own[i] = own[i] - w[i]->gradient * kRate;
    const double of_own = loss->value.item();
    right = mean(cast(gt(out->value * moons.sides, 0), DType::f64)).item();
    exercise::clear(loss);

    const Tensor deep = relu(matmul(relu(matmul(moons.points, real[0]) + real[1]), real[2]) + real[3]);
    const Tensor of_braid = mean(square(matmul(deep, real[4]) + real[5] - moons.sides));
    backward(of_braid);
    for (Tensor& x : real) {
      x.add_(no_grad([&] { return grad(x) * -kRate; }));
      zero_grad(x);
    }
    curves.add(step, of_own, of_braid.item());
  }
  std::printf("%.0f %% of the points are on the right side; the losses differ by at most %.1e\n", 100 * right,
              curves.apart());
  return curves.apart() < 1e-9 && curves.last() < curves.first() / 4 && right > 0.95 ? 0 : 1;
}
