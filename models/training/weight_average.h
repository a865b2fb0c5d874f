// A moving average of the weights (Polyak and Juditsky 1992), of this rank's pieces of them:
//
//   a <- d a + (1 - d) w  after update t = 1, 2, ...,   d = min(decay, (1 + t) / (10 + t))
//
// The smaller d of the first updates makes the average forget the random initial weights.
#pragma once
#include <string>
#include <vector>

#include "braid/nn/module.h"

namespace braid::models {

class WeightAverage {
 public:
  // Starts as the pieces, whose memory the module's parameters share. 0 < decay < 1.
  WeightAverage(std::vector<nn::NamedTensor> pieces, double decay);

  static double decay_at(double decay, int64_t update);
  void update(int64_t update);  // after update number `update`
  void restart();               // the average is what the pieces are now
  void exchange();              // of the pieces' values with those of the average
  // The average of a piece, shared memory; an empty handle where there is none.
  Tensor of(const std::string& name) const;

 private:
  std::vector<nn::NamedTensor> pieces_;
  std::vector<Tensor> averages_;
  double decay_;
};

}  // namespace braid::models
