#pragma once
#include "braid/nn/init.h"
#include "braid/nn/module.h"

namespace braid::nn {

// Row ids of a table.  ids (...) -> (..., D)
class Embedding final : public Module {
 public:
  Embedding() = default;
  Embedding(int64_t vocabulary, int64_t width, const Init& init, RandomKey key);
  Tensor operator()(const Tensor& ids) const;
  void visit(Visitor& v) const override { v("weight", weight_); }
  const Tensor& weight() const { return weight_; }

 private:
  Tensor weight_;  // (V, D)
};

}  // namespace braid::nn
