// A program outside the tree: the derivative of a sum of squares, and a model.
#include <cstdio>

#include "braid/autograd/autograd.h"
#include "braid/models/dcformer/model.h"

int main() {
  braid::Tensor x = braid::from_values({1, 2, 3}, {3});
  braid::backward(braid::sum(braid::mul(braid::require_grad(x), x)));
  std::printf("d(sum of squares)/dx =");
  for (double g : braid::grad(x).to_vector<double>()) std::printf(" %g", g);
  braid::models::ModelConfig config = braid::models::preset("dcformer-tiny");
  braid::models::finish(config);
  braid::models::Dcformer model = braid::models::Dcformer::uninitialised(config);
  std::printf(", model with %lld parameters\n", static_cast<long long>(braid::nn::count(model)));
}
