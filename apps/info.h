// The text of `braid info` for a model of any registered family.
#pragma once
#include <filesystem>
#include <string>

#include "braid/models/model_spec.h"

namespace braid::apps {

struct InfoOptions {
  models::SettingTexts settings = {};  // instead of the model's own
  int64_t seq_len = 0;                 // 0: the longest of the model
  int64_t batch = 1;
  bool json = false;
  std::filesystem::path base = {};  // models::base_folder()
  std::string match_params = "";    // a number of parameters, or a model as in info_text(), to be equal in size to
};
// `model`: a preset, a config.json, a model folder or a run folder.
std::string info_text(const std::string& model, const InfoOptions& options = {});

}  // namespace braid::apps
