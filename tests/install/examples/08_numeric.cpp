// Numbers without a network: a damped oscillation is found in noise. The Fourier transform tells where to begin; steps
// of Gauss and Newton fit its four parameters, with a Jacobian by autograd and least squares by LAPACK.
#include <braid/autograd.h>

#include <cstdio>
#include <numbers>
using namespace braid;

int main() {
  const int64_t n = 400;
  const Tensor time = linspace(0, 10, n, DType::f64);  // seconds
  const auto oscillation = [&](const Tensor& parameters) {
    const std::vector<Tensor> p = unbind(parameters);  // amplitude, decay (1/s), frequency (1/s), phase
    return p[0] * exp(-p[1] * time) * sin(2 * std::numbers::pi * p[2] * time + p[3]);
  };
  const Tensor truth = tensor({1.5, 0.2, 1.3, 0.4}, DType::f64);
  const Tensor measured = oscillation(truth) + 0.1 * randn({n}, RandomKey{.seed = 1}, DType::f64);

  const Tensor spectrum = rfft(measured);  // (n/2 + 1, 2)
  const Tensor peak = argmax(complex_abs(spectrum)), wave = index(spectrum, {peak});
  const double frequency = take(rfftfreq(n, 10. / n, DType::f64), peak).item();
  const double phase = atan2(imag_part(wave), real_part(wave)).item() + std::numbers::pi / 2;
  Tensor p = tensor({1., 0.1, frequency, phase}, DType::f64), errors, deviation;
  for (int step = 0; step < 8; ++step) {
    const Tensor residual = measured - oscillation(p), slopes = jacobian(oscillation, p);  // (n), (n, 4)
    deviation = sqrt(sum(square(residual)) / static_cast<double>(n - 4));
    errors = deviation * sqrt(diagonal(inverse(matmul(t(slopes), slopes))));
    std::printf("step %d deviation %.4f frequency %.4f\n", step, deviation.item(), at(p, {2}));
    p = p + flatten(lstsq(slopes, unsqueeze(residual, 1)));
  }
  const char* names[] = {"amplitude", "decay", "frequency", "phase"};
  for (int i = 0; i < 4; ++i)
    std::printf("%-9s %7.4f +- %.4f, truth %.1f\n", names[i], at(p, {i}), at(errors, {i}), at(truth, {i}));
  const bool found = all(abs(p - truth) < 4 * errors).item() != 0;
  std::printf("every parameter within four standard errors: %s\n", found ? "yes" : "no");
  return found ? 0 : 1;
}
