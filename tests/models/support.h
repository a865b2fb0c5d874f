// A model small enough to train in a test.
#pragma once
#include <unistd.h>

#include <filesystem>

#include "braid/models/dcformer/model.h"
#include "braid/models/pretrained/pretrained.h"

namespace braid::test {

inline models::DcformerConfig small_config() {
  models::DcformerConfig config = models::preset("dcformer-tiny");
  config.vocab_size = 258;
  config.dim = 32;
  config.n_layer = 2;
  config.n_head = 4;
  config.head_dim = 0;
  config.intermediate_size = 64;
  config.window_size = 8;
  config.block_size = 32;
  config.initializer_std = 0.05;
  config.layer_windows.clear();
  models::resolve(config);
  return config;
}

inline models::Dcformer& dcformer(const models::LoadedModel& loaded) {
  return dynamic_cast<models::Dcformer&>(*loaded.model);
}

class ScratchFolder {
 public:
  ScratchFolder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("braid-models-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace braid::test
