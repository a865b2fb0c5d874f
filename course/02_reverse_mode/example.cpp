// a b + a by hand and by the engine, then an op of one's own: a soft absolute value.
#include <braid/autograd.h>

#include <cstdio>
using namespace braid;

// y = sqrt(x^2 + 1), dy/dx = x / y. The closure keeps x and y; record() ties it to the inputs.
static Tensor soft_abs(const Tensor& x) {
  const Tensor value = x.detach();
  const Tensor y = no_grad([&] { return sqrt(value * value + 1.0); });
  return record("soft_abs", y, {x}, [value, y](const Tensor& dy) { return Grads{value / y * dy}; });
}

int main() {
  Tensor a = from_values({2}, {1}, DType::f64), b = from_values({3}, {1}, DType::f64);
  require_grad(a), require_grad(b);

  const double c = a.item() * b.item(), y = c + a.item();    // forward
  const double dy = 1, dc = dy;                              // backward: y = c + a
  const double da = dy + dc * b.item(), db = dc * a.item();  // a is used twice: its gradients add up
  std::printf("by hand    y %g, da %g, db %g\n", y, da, db);

  const Tensor result = a * b + a;
  backward(result);
  std::printf("backward() y %g, da %g, db %g\n", result.item(), grad(a).item(), grad(b).item());

  const Function f = [](const std::vector<Tensor>& in) { return soft_abs(in[0]); };
  const GradcheckResult checked = gradcheck(f, {from_values({-2, -0.5, 0, 3}, {4}, DType::f64)});
  std::printf("soft_abs: derivative %s finite differences\n", checked.error < 1e-8 ? "equals" : "differs from");
}
