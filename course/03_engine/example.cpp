// Braid's engine at work: what it counts, one graph used twice, and a graph too deep for recursion.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
using namespace braid;

int main() {
  Tensor a = from_values({2}, {1}, DType::f64), b = from_values({3}, {1}, DType::f64);
  require_grad(a), require_grad(b);
  int order = 0;
  // A closure that prints when it runs, in place of the derivative of multiplication by 1.
  const auto watched = [&order](const char* name, const Tensor& x) {
    return record(name, x.detach(), {x}, [&order, name](const Tensor& dy) {
      std::printf("%d. %s runs with the gradient %g\n", ++order, name, dy.item());
      return Grads{dy};
    });
  };
  const Tensor c = watched("c", a * b), y = watched("y", c + a);
  backward(y);
  std::printf("a receives %g, b receives %g\n", grad(a).item(), grad(b).item());

  try {
    backward(y);
  } catch (const Error& error) {
    const std::string text = error.what();
    std::printf("a second time: %s\n", text.substr(0, text.find(':')).c_str());
  }

  Tensor x = from_values({1}, {1}, DType::f64);
  require_grad(x);
  Tensor deep = x;
  for (int i = 0; i < 200000; ++i) deep = deep + 0.0;
  backward(deep);
  std::printf("200000 ops deep: the gradient of x is %g\n", grad(x).item());

  nn::Sequential model(nn::Linear(2, 3, {.bias = true}, {.seed = 1}), relu,
                       nn::Linear(3, 1, {.bias = true}, {.seed = 2}));
  write_svg(sum(model(from_values({1, 2}, {1, 2}))), "graph.svg", nn::parameters(model));
  std::printf("graph.svg shows the graph of a small network\n");
}
