// Layer-wise decay of the learning rate (optimizer.layer_decay), for models that begin with trained weights.
//
//   factor of a parameter = decay^(L + 1 - depth)     depth: 0 in front of the first block, i in block i = 1 ... L,
//                                                     L + 1 behind the last one
#pragma once
#include <string>
#include <vector>

#include "braid/nn/optim/groups.h"

namespace braid::apps {

// names: of all parameters, in the model's order; "layers.N" in a name is its block.
std::vector<double> layer_factors(double decay, const std::vector<std::string>& names);
// The groups and, behind them, one for each parameter with its factor times the rate that the groups give it.
std::vector<nn::ParameterGroup> with_layer_decay(std::vector<nn::ParameterGroup> groups, double decay,
                                                 const std::vector<std::string>& names);

}  // namespace braid::apps
