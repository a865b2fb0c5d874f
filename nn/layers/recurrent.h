// What LSTM and GRU share: the weights of each layer and direction, named as PyTorch's.
#pragma once
#include <functional>
#include <vector>

#include "braid/autograd/ops.h"
#include "braid/nn/init.h"
#include "braid/nn/layers/dropout.h"
#include "braid/nn/module.h"

namespace braid::nn {

struct RecurrentOptions {
  int64_t layers = 1;
  bool bidirectional = false;  // a second direction reads the sequence from its end; the results lie side by side
  double dropout = 0;          // of the results of every layer but the last, in training
  bool bias = true;
};

class Recurrent : public Module {
 public:
  void visit(Visitor& v) const override;  // weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ..., _l0_reverse

 protected:
  struct Weights {
    Tensor input, hidden, input_bias, hidden_bias;  // (G H, in), (G H, H), (G H), (G H)
  };
  // One direction of a layer over all steps. projected (B, T, G H) is W_ih x + b_ih; the state starts as the row
  // `index` of the states given. Writes the results in the order of x.
  using Direction = std::function<Tensor(const Tensor& projected, const Weights& w, int64_t index, bool reverse)>;

  Recurrent() = default;
  Recurrent(const char* op, int64_t gates, int64_t in, int64_t width, const RecurrentOptions& options, RandomKey key);
  int64_t states() const { return static_cast<int64_t>(weights_.size()); }  // layers x directions
  int64_t width() const { return width_; }
  // x (B, T, in) -> (B, T, directions H)
  Tensor run(Tensor x, Mode mode, RandomKey key, const Direction& direction) const;
  // The states given, (layers x directions, B, H), or zeros for an empty handle.
  Tensor start(const Tensor& given, const Tensor& x) const;

 private:
  const char* op_ = "recurrent";
  int64_t in_ = 0, width_ = 0;
  RecurrentOptions options_;
  std::vector<Weights> weights_;  // by layer, then direction
};

}  // namespace braid::nn
