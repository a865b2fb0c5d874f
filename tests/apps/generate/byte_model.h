// A model of bytes with random weights, sequences of 64 or another number.
#pragma once
#include "braid/models/registry.h"

namespace braid::test {

inline std::unique_ptr<models::Model> byte_model(const std::string& vocabulary = "258", uint64_t seed = 5,
                                                 const std::string& context = "64") {
  return models::configure_model("dcformer-tiny", {{"dim", "16"},
                                                   {"n_head", "2"},
                                                   {"n_layer", "2"},
                                                   {"intermediate_size", "24"},
                                                   {"window_size", "8"},
                                                   {"block_size", context},
                                                   {"initializer_std", "0.3"},
                                                   {"vocab_size", vocabulary}})
      ->make({seed, 0});
}

}  // namespace braid::test
