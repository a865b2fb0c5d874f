// model.depth: one dial for a new model of text and its training. It gives the settings that are not given; nothing
// else knows of it. With depth L, n parameters beside the tables of the vocabulary and sequences of T tokens:
//
//   model.n_layer, dim    L and 64 L: a constant ratio of width to depth, near the best over a wide range of sizes
//                         (Kaplan et al. 2020, figure 5)
//   model.n_head          L up to 16, above the largest power of two below L: heads of 64 to 128, up to depth 16 of
//                         one width, as muP needs
//   tokens                20 n (Hoffmann et al. 2022), so C = 6 n 20 n FLOPs, by which DeepSeek LLM (2024, arXiv
//                         2401.02954, section 3.1) fitted the best rate and batch:
//   optimizer.lr          0.3118 C^-0.1250 = 0.171 n^-0.25, that of 1e17 FLOPs where C is less; under muP n of the base
//   tokens of a step      0.2920 C^0.3271 = 1.40 n^0.654, as sequences rounded to a power of two
//   train.batch_size      these sequences up to 16384 tokens; train.accumulate: the rest
//   train.steps           20 n / tokens of a step
//   schedule.warmup       a twentieth of the steps
#pragma once
#include <set>
#include <string>
#include <vector>

#include "apps/train/config/train_config.h"

namespace braid::apps {

// n_head of this depth.
int64_t heads_of_depth(int64_t depth);
// Sets what model.depth above 0 gives and `given`, the names of settings, lacks. Returns what to tell the user.
// Error(setting) beside a model from elsewhere.
std::vector<std::string> set_by_depth(TrainConfig& config, const std::set<std::string>& given);

}  // namespace braid::apps
