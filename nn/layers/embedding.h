#pragma once
#include "braid/nn/init.h"
#include "braid/nn/module.h"

namespace braid::nn {

// Looks up rows of a table.  ids (...) -> (..., D)
class Embedding final : public Module {
 public:
  Embedding() = default;
  Embedding(int64_t vocabulary, int64_t width, const Init& init, RandomKey key);
  Tensor operator()(const Tensor& ids) const;
  void visit(Visitor& v) const override {
    v("weight", weight_, {.axis = 0, .unit = "vocabulary row", .units = vocabulary_});
  }
  const Tensor& weight() const { return weight_; }

 private:
  int64_t vocabulary_ = 0;  // V
  Tensor weight_;           // (V, D)
};

}  // namespace braid::nn
