#include "apps/train/config/origin.h"

#include <algorithm>

#include "apps/cli/plan_report.h"
#include "apps/cli/text.h"
#include "apps/train/config/data_sources.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/cost/size.h"
#include "braid/models/cost/trace.h"
#include "braid/models/folders/gguf/gguf_folder.h"
#include "braid/models/folders/init_from.h"
#include "braid/models/image_model.h"
#include "braid/models/registry.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/models/training/checkpoint/find_model.h"
#include "braid/nn/name_pattern.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {

namespace fs = std::filesystem;

namespace {

// train.init_base; empty: none
fs::path base_of(const TrainConfig& config) {
  return config.train.init_base.empty() ? fs::path() : models::find_model(config.train.init_base);
}

}  // namespace

std::unique_ptr<const models::ModelSpec> model_in(const fs::path& folder) {
  check(!models::is_gguf(folder), ErrorKind::setting, [&] {
    return "training starts from a folder, found the file " + folder.string() + "; braid convert " + folder.string() +
           " --out DIR makes one of it";
  });
  const std::string file = (folder / "config.json").string();
  return models::read_model_spec(io::read_text_file(file, 1 << 20), file);
}

bool has_checkpoint(const TrainConfig& config) { return !models::step_folders(config.run.out).empty(); }

TrainConfig with_found_origin(TrainConfig config, const dist::Communicator& world, std::vector<std::string>& notes) {
  std::string origin, base;
  dist::run_on_all_ranks(world, [&] {
    if (world.rank() != 0 || config.train.init_from.empty() || has_checkpoint(config)) return;
    origin = models::find_model(config.train.init_from, notes).string();
    base = base_of(config).string();
  });
  origin = world.gather_text(origin)[0], base = world.gather_text(base)[0];
  if (!origin.empty()) config.train.init_from = origin, config.train.init_base = base;
  return config;
}

fs::path continued_folder(const TrainConfig& config) {
  std::vector<std::string> notes;  // the resume prints them
  return has_checkpoint(config) ? models::newest_checkpoint(config.run.out, notes).path
                                : models::base_folder(models::find_model(config.train.init_from), base_of(config));
}

std::unique_ptr<const models::ModelSpec> continued_model(const TrainConfig& config, const models::SettingTexts& keys) {
  const fs::path folder = continued_folder(config);
  const auto origin = model_in(folder);
  const std::string& preset = config.model.preset;
  auto model = preset.empty() ? origin->with(keys) : models::configure_model(preset, keys);
  const auto* named = dynamic_cast<const models::ImageModelSpec*>(origin.get());
  const auto* image = dynamic_cast<const models::ImageModelSpec*>(model.get());
  if (named && image && named->classes() == image->classes()) model = image->with_class_names(named->class_names());
  if (!has_checkpoint(config)) models::added_parameters(*origin, *model, folder);  // checks
  return model;
}

void check_same_tokenizer(const TrainConfig& config, const models::text::Manifest& data) {
  if (config.train.init_from.empty() || has_checkpoint(config)) return;
  const fs::path folder = models::tokenizer_folder(models::find_model(config.train.init_from), base_of(config));
  if (!io::exists(folder / "tokenizer.json")) return;
  const auto tokenizer = models::text::load_tokenizer(folder.string());
  check(tokenizer->fingerprint() == data.tokenizer_fingerprint, ErrorKind::setting, [&] {
    return str("the data in ", data_folder(config), " have other tokens than the model in ", folder.string(),
               ": expected the tokenizer ", tokenizer->name(), " with ", tokenizer->vocab_size(), " ids, found ",
               data.tokenizer, " with ", data.vocab_size, "; prepare the text again with braid prepare --tokenizer ",
               folder.string());
  });
}

std::optional<Origin> origin_of(const TrainConfig& config, const models::ModelSpec& model) {
  if (config.train.init_from.empty() || has_checkpoint(config)) return std::nullopt;
  Origin origin;
  origin.folder = models::find_model(config.train.init_from);
  origin.model = model_in(models::base_folder(origin.folder, base_of(config)));
  origin.added = models::added_parameters(*origin.model, model, origin.folder);
  return origin;
}

std::vector<std::pair<std::string, std::string>> origin_lines(const Origin& origin, const models::ModelSpec& model,
                                                              int64_t seq_len) {
  int64_t added = 0;
  std::vector<std::string> kinds;
  for (const nn::NamedTensor& p : origin.added) {
    added += p.value.numel();
    const std::string kind = nn::without_indices(p.name);
    if (std::ranges::count(kinds, kind) == 0) kinds.push_back(kind);
  }
  const auto all = static_cast<double>(models::model_size(model).parameters);
  const double flops = models::forward_flops(model, seq_len).total(),
               before = models::forward_flops(*origin.model, seq_len).total();
  std::vector<std::pair<std::string, std::string>> lines = {
      {"weights of", origin.folder.string() + ", a model of type " + origin.model->model_type()}};
  if (origin.added.empty()) {
    lines.emplace_back("new weights", "none");
    return lines;
  }
  lines.emplace_back("new weights", str(origin.added.size(), " tensors with ", added, " parameters, ",
                                        share(double(added), all), " of the model: ", join(kinds, ", ")));
  lines.emplace_back("FLOPs that they add", share(flops - before, before) + " of the forward pass");
  return lines;
}

std::unique_ptr<models::Model> load_origin(const TrainConfig& config, const models::ModelSpec& model, DType dtype,
                                           RandomKey key, const dist::ProcessMesh& mesh,
                                           std::vector<std::string>& notes) {
  models::LoadedModel loaded;
  dist::run_on_all_ranks(mesh.world, [&] {
    loaded = models::init_from(models::find_model(config.train.init_from), model, key, dtype, mesh, base_of(config));
  });
  notes.insert(notes.end(), loaded.notes.begin(), loaded.notes.end());
  return std::move(loaded.model);
}

}  // namespace braid::apps
