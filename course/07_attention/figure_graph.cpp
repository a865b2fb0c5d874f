// What the engine walks back through after a layer of attention with one head that is written with ops.
#include <braid/autograd.h>
#include <braid/autograd/graph_svg.h>

#include <cmath>

using namespace braid;

int main(int argc, char** argv) {
  if (argc != 2) throw std::runtime_error("expected one argument: the SVG file to write");
  constexpr int64_t T = 4, D = 8;
  const auto leaf = [](const Shape& shape, uint64_t stream) {
    Tensor x = randn(shape, {7, stream});
    return require_grad(x);
  };
  const Tensor x = leaf({T, D}, 0), wq = leaf({D, D}, 1), wk = leaf({D, D}, 2), wv = leaf({D, D}, 3);
  const Tensor q = linear(x, wq), k = linear(x, wk), v = linear(x, wv);
  const Tensor scores = mask_scores(matmul(q, transpose(k)) / std::sqrt(1.0 * D), {}, -INFINITY);
  write_svg(matmul(softmax(scores), v), argv[1], {{"x", x}, {"wq", wq}, {"wk", wk}, {"wv", wv}});
}
