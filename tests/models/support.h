// A model small enough to train in a test.
#pragma once
#include "braid/models/batch.h"
#include "braid/models/families/dcformer/config_keys.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/folders/pretrained.h"
#include "tests/support/temp_folder.h"

namespace braid::test {

inline models::DcformerConfig small_config(const std::string& preset = "dcformer-tiny") {
  models::DcformerConfig config = models::unresolved_preset(preset);
  config.vocab_size = 258;
  config.dim = 32;
  config.n_layer = 2;
  config.n_head = 4;
  config.head_dim = 0;
  config.intermediate_size = 64;
  if (config.window_size > 0) config.window_size = 8;
  config.block_size = 32;
  config.initializer_std = 0.05;
  config.layer_windows.clear();
  models::resolve(config);
  return config;
}

// Tokens that follow from `salt`, (rows, length).
inline models::Batch small_batch(int64_t salt, int64_t rows = 2, int64_t length = 16) {
  std::vector<int64_t> ids, targets;
  for (int64_t i = 0; i < rows * length; ++i) {
    ids.push_back((i * 31 + salt * 7 + i * i) % 200);
    targets.push_back((i * 17 + salt) % 200);
  }
  return models::text_batch(from_vector(ids, {rows, length}), from_vector(targets, {rows, length}));
}

inline models::Dcformer& dcformer(const models::LoadedModel& loaded) {
  return dynamic_cast<models::Dcformer&>(*loaded.model);
}

}  // namespace braid::test
