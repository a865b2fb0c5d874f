// muP, the maximal update parametrisation (Yang et al. 2022, "Tensor Programs V", arXiv 2203.03466): the learning rate
// that is best at one width is nearly the best at all widths, so it is found with a narrow model. Here in the form of
// that paper's Table 3, without multipliers: a trained model is an ordinary one, and no program that reads it knows of
// muP.
//
//   m = fan-in / fan-in at the base width        at the base width m = 1, and nothing changes
//
//                                        first deviation    rate of AdamW    rate of Muon: rms, spectral
//   inputs, vectors                              1                1              of AdamW
//   matrices of hidden units                1 / sqrt(m)         1 / m            1 / sqrt(m),  1
//   the output projection                      1 / m            1 / m            of AdamW
//   qkw of Compose                          1 / m^1.5          1 / m^2           of AdamW
//
// Inputs are what reads no hidden units: tables by token and position, class tokens, linear maps of patches. A
// classifier is an output projection; the queries, keys and values of cross-attention are hidden matrices as all
// others.
//
// Factors are relative to the base. That of Muon keeps the spectral norm of an update in proportion to
// sqrt(fan-out / fan-in) (Yang, Simon, Bernstein 2023, arXiv 2310.17813). The fan-in of a matrix that reads no hidden
// units does not grow: m = 1. Heads keep their width, so that scores need no other factor than 1 / sqrt(d). Where heads
// are mixed, their number is a width too: what qkw makes multiplies sums over heads, each as large as their number, and
// has to fall with it.
#pragma once
#include <vector>

#include "braid/models/model_spec.h"
#include "braid/nn/optim/optimizer.h"

namespace braid::models {

// The groups and, behind them, one for each parameter of this model whose rate differs from that of its base, with the
// factor of the table times the rate that the groups give it. options: of the optimizer, complete.
std::vector<nn::ParameterGroup> with_mup_rates(const ModelSpec& spec, const ModelSpec& base,
                                               const nn::OptimizerOptions& options);

}  // namespace braid::models
