// An op with its own derivative, a layer that uses it, and the check of both by finite differences.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
using namespace braid;

// y = log(1 + e^x), without overflow: max(x, 0) + log(1 + e^-|x|). dx = dy sigmoid(x)
Tensor my_softplus(const Tensor& x) {
  Tensor y = no_grad([&] { return relu(x) + log(1 + exp(-abs(x))); });
  return record("my_softplus", y, {x}, [x](const Tensor& dy) -> Grads { return {dy * sigmoid(x)}; });
}

class Gate final : public nn::Module {
 public:
  Gate(int64_t width, RandomKey key) : projection_(width, width, {}, child(key, "projection")) {}
  Tensor operator()(const Tensor& x) const { return x * my_softplus(projection_(x)); }  // (..., width) -> the same
  void visit(nn::Visitor& v) const override { v("projection", projection_); }

 private:
  nn::Linear projection_;
};

int main() {
  const RandomKey key{.seed = 2};
  Gate gate(3, key);
  nn::to(gate, DType::f64);
  Tensor x = 40 * randn({4, 3}, child(key, "x"), DType::f64);
  const double op = gradcheck([](const std::vector<Tensor>& in) { return my_softplus(in[0]); }, {x}).error;
  const double layer = gradcheck([&](const std::vector<Tensor>& in) { return gate(in[0]); }, {x}).error;
  std::printf("derivatives agree: %s\n", op < 1e-7 && layer < 1e-7 ? "yes" : "no");
  return op < 1e-7 && layer < 1e-7 ? 0 : 1;
}
