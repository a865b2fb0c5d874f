#include "apps/train/task/from_config.h"

#include <algorithm>
#include <filesystem>

#include "apps/train/config/data_sources.h"
#include "apps/train/config/origin.h"
#include "apps/train/config/trained.h"
#include "apps/train/task/task.h"
#include "braid/models/data/text/manifest.h"
#include "braid/models/data/vision/model_input.h"
#include "braid/models/registry.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/models/training/hold_in_16_bits.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/kernels/attention.h"

namespace braid::apps {

namespace {

constexpr const char* kVocabulary = "vocab_size";

bool names_model(const TrainConfig& config) {
  return !config.model.preset.empty() || !config.model.values.empty() || !config.train.init_from.empty();
}

models::SettingTexts given_settings(const TrainConfig& config) {
  models::SettingTexts keys;
  for (const auto& [key, value] : config.model.values) keys.emplace_back(key, plain_text(value));
  return keys;
}

// The size of the vocabulary by default: "0" where it is to be set, "" where the family does not model text.
std::string default_vocabulary(const models::ModelFamily& family) {
  for (const models::ModelSetting& setting : family.settings)
    if (setting.name == kVocabulary) return setting.value;
  return "";
}

// Whether the settings leave the size of the vocabulary to the data.
bool vocabulary_of_data(const TrainConfig& config, const models::ModelFamily& family) {
  return config.model.preset.empty() && !config.model.values.contains(kVocabulary) && default_vocabulary(family) == "0";
}

}  // namespace

std::vector<models::ModelSetting> model_settings() {
  std::vector<models::ModelSetting> all;
  for (const models::ModelFamily& family : models::model_families())
    all.insert(all.end(), family.settings.begin(), family.settings.end());
  return all;
}

std::vector<models::ModelSetting> settings_in_effect(const TrainConfig& config) {
  if (!names_model(config)) return {};
  const bool data =
      models::PairTask::of_path(config.data.path) ||
      (names_data(config) && io::exists(std::filesystem::path(data_folder(config)) / models::text::manifest_name));
  if (data) return model_for_data(config)->settings();
  if (!config.train.init_from.empty() ||
      !vocabulary_of_data(config, models::find_family(config.model.preset, given_settings(config))))
    return model_spec(config, 0)->settings();
  std::vector<models::ModelSetting> settings = model_spec(config, 1 << 20)->settings();
  for (models::ModelSetting& setting : settings)
    if (setting.name == kVocabulary) setting.value.clear();
  return settings;
}

std::vector<std::string> train_setting_names() {
  TrainConfig config;
  const Schema schema = train_schema(config, model_settings());
  std::vector<std::string> names;
  for (const Setting& setting : schema.settings) names.push_back(setting.name);
  for (const models::ModelSetting& setting : schema.open[0].keys) names.push_back("model." + setting.name);
  return names;
}

static void check_names_model(const TrainConfig& config) {
  check(names_model(config), ErrorKind::setting,
        "no model is named: expected model.preset (for example dcformer-tiny; braid info lists them), model.* sizes or "
        "train.init_from");
}

std::unique_ptr<const models::ModelSpec> model_spec(const TrainConfig& config, int64_t vocabulary) {
  check_names_model(config);
  models::SettingTexts keys = given_settings(config);
  const auto check_text = [&](bool text, const std::string& model_type) {
    check(text, ErrorKind::setting, [&] {
      return "a model of type " + model_type + " does not model text: expected a language model for the data in " +
             data_folder(config);
    });
  };
  const auto with_capacity = [&](std::unique_ptr<const models::ModelSpec> model) {
    check_text(vocabulary == 0 || model->vocab_size() > 0, model->model_type());
    check(model->vocab_size() >= vocabulary, ErrorKind::setting, [&] {
      return str("model.vocab_size is too small for the data: expected at least ", vocabulary, ", found ",
                 model->vocab_size());
    });
    return model;
  };
  if (!config.train.init_from.empty()) return with_capacity(continued_model(config, keys));
  const models::ModelFamily family = models::find_family(config.model.preset, keys);
  check(vocabulary > 0 || !vocabulary_of_data(config, family), ErrorKind::setting,
        "the size of the vocabulary is not known: expected model.vocab_size, or data.path (a folder that braid prepare "
        "wrote, whose vocabulary it is by default), or model.preset");
  if (vocabulary > 0 && !config.model.values.contains(kVocabulary)) {
    check_text(!default_vocabulary(family).empty(), family.model_type);
    keys.emplace_back(kVocabulary, std::to_string(vocabulary));
  }
  return with_capacity(models::configure_model(config.model.preset, keys));
}

// The model that the settings describe, with those `of_data` that they do not give. `what`: the kind of data, for
// messages.
static std::unique_ptr<const models::ModelSpec> model_that_fits(const TrainConfig& config,
                                                                const models::SettingTexts& of_data,
                                                                const std::string& what, const std::string& example) {
  check_names_model(config);
  models::SettingTexts keys = given_settings(config);
  const auto setting_of = [](const std::vector<models::ModelSetting>& settings, const std::string& name) {
    return std::ranges::find(settings, name, &models::ModelSetting::name);
  };
  const auto check_reads = [&](const std::vector<models::ModelSetting>& settings, const std::string& model_type) {
    for (const auto& [name, value] : of_data)
      check(setting_of(settings, name) != settings.end(), ErrorKind::setting, [&] {
        return "a model of type " + model_type + " does not read " + what + ": expected a model for the " + what +
               " in " + config.data.path + ", for example model.preset=" + example;
      });
  };
  std::unique_ptr<const models::ModelSpec> model;
  if (!config.train.init_from.empty()) {
    model = continued_model(config, keys);
  } else {
    const models::ModelFamily family = models::find_family(config.model.preset, keys);
    check_reads(family.settings, family.model_type);
    for (const auto& [name, value] : of_data)
      if (!config.model.values.contains(name)) keys.emplace_back(name, value);
    model = models::configure_model(config.model.preset, keys);
  }
  const std::vector<models::ModelSetting> settings = model->settings();
  check_reads(settings, model->model_type());
  for (const auto& [name, value] : of_data) {
    const std::string found = setting_of(settings, name)->value;
    check(found == value, ErrorKind::setting, [&, &name = name, &value = value] {
      return "model." + name + " does not fit the " + what + " in " + config.data.path + ": expected " + value +
             ", found " + found;
    });
  }
  return model;
}

std::unique_ptr<const models::ModelSpec> image_model_spec(const TrainConfig& config,
                                                          const models::vision::ImageManifest& data) {
  const std::vector<int64_t> size =
      data.height == data.width ? std::vector{data.height} : std::vector{data.height, data.width};
  models::SettingTexts of_data = {{"image_size", models::value_text(size)},
                                  {"num_channels", std::to_string(data.channels)}};
  if (config.train.init_from.empty()) of_data.emplace_back("num_labels", std::to_string(data.classes.size()));
  auto model = model_that_fits(config, of_data, "images", "vit-28");
  const auto& image = dynamic_cast<const models::ImageModelSpec&>(*model);
  models::vision::match_classes(data.classes, image.class_names(), image.classes(), config.data.path,
                                ErrorKind::setting);  // checks
  return image.class_names().empty() ? image.with_class_names(data.classes) : std::move(model);
}

std::unique_ptr<const models::ModelSpec> pair_model_spec(const TrainConfig& config, const models::PairTask& data) {
  return model_that_fits(config,
                         {{"max_source_length", std::to_string(data.source_length())},
                          {"max_target_length", std::to_string(data.target_length())},
                          {kVocabulary, std::to_string(models::kPairVocabulary)}},
                         "pairs of sequences", "seq2seq-tiny");
}

bool holds_preferences(const TrainConfig& config) {
  const std::string& path = config.data.path;
  return !path.empty() && io::exists(std::filesystem::path(path) / models::text::manifest_name) &&
         !models::vision::holds_images(path) && models::text::holds_preferences(models::text::read_manifest(path));
}

void reject_text_settings(const TrainConfig& config, const std::string& what) {
  const TrainConfig defaults;
  const auto unset = [&](const char* key, const auto& value, const auto& expected) {
    check(value == expected, ErrorKind::setting, [&] {
      return str(key, " is for text, and ", config.data.path, " ", what, ": expected ", expected, ", found ", value);
    });
  };
  unset("data.seq_len", config.data.seq_len, defaults.data.seq_len);
  unset("data.documents", config.data.documents, defaults.data.documents);
  unset("data.packing", config.data.packing, defaults.data.packing);
  unset("data.long_samples", config.data.long_samples, defaults.data.long_samples);
  unset("eval.tasks", config.eval.tasks, defaults.eval.tasks);
}

models::PreferenceOptions preference_options(const TrainConfig& config) {
  return {.beta = config.dpo.beta,
          .label_smoothing = config.dpo.label_smoothing,
          .length_normalised = config.dpo.length_normalised,
          .sft_weight = config.dpo.sft_weight};
}

std::shared_ptr<const models::Objective> objective(const TrainConfig& config) {
  if (!holds_preferences(config)) return std::make_shared<models::Objective>();
  return std::make_shared<models::PreferenceObjective>(preference_options(config));
}

nn::OptimizerOptions optimizer_options(const TrainConfig& config) {
  const TrainConfig::Optimizer& o = config.optimizer;
  return {.name = o.name,
          .lr = o.lr,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .decay = nn::parse_decay(o.decay),
          .momentum = o.momentum,
          .muon = {.momentum = config.muon.momentum,
                   .nesterov = config.muon.nesterov,
                   .scale = nn::parse_muon_scale(config.muon.scale),
                   .bf16 = config.muon.dtype == "bf16",
                   .steps = config.muon.steps,
                   .normalise = nn::parse_muon_normalise(config.muon.normalise),
                   .heads = config.muon.heads},
          .groups = parameter_groups(config)};
}

nn::OptimizerOptions optimizer_options(const TrainConfig& config, const nn::Module& model) {
  nn::OptimizerOptions options = optimizer_options(config);
  options.groups = parameter_groups(config, model);
  return options;
}

nn::Schedule schedule(const TrainConfig& config) {
  auto decay_steps = static_cast<int64_t>(static_cast<double>(config.train.steps) * config.schedule.decay_fraction);
  return {.kind = nn::parse_schedule(config.schedule.name),
          .peak = config.optimizer.lr,
          .steps = config.train.steps,
          .warmup = config.schedule.warmup,
          .final_fraction = config.schedule.final_fraction,
          .decay_steps =
              std::clamp<int64_t>(decay_steps, 0, std::max<int64_t>(0, config.train.steps - config.schedule.warmup)),
          .tail = nn::parse_schedule_tail(config.schedule.tail)};
}

int64_t sequence_length(const TrainConfig& config, const models::ModelSpec& model) {
  const int64_t longest = std::max<int64_t>(1, model.max_sequence_length());
  check(config.data.seq_len <= longest, ErrorKind::setting, [&] {
    return str("data.seq_len is longer than the model's block_size: expected at most ", longest, ", found ",
               config.data.seq_len,
               "; with rotary positions a larger model.block_size may be given, also to a run that "
               "is resumed");
  });
  return config.data.seq_len > 0 ? config.data.seq_len : longest;
}

Arithmetic arithmetic(const TrainConfig& config) {
  DType compute = DType::f32;
  parse_dtype(config.train.dtype, compute);
  const bool masters = compute == DType::bf16 && !rounds_stochastically(config);
  return {masters ? DType::f32 : compute, compute};
}

bool rounds_stochastically(const TrainConfig& config) { return config.train.rounding == "stochastic"; }

RandomKey rounding_key(const TrainConfig& config) {
  return child({static_cast<uint64_t>(config.run.seed), 0}, "rounding");
}

RandomKey dropout_key(const TrainConfig& config) {
  return child({static_cast<uint64_t>(config.run.seed), 0}, "dropout");
}

int64_t attention_workspace(const TrainConfig& config, Device device) {
  if (device == kCpu) return 0;
  return config.train.attention_workspace > 0 ? config.train.attention_workspace << 20 : kAttentionWorkspace;
}

std::unique_ptr<models::Model> make_model(const TrainConfig& config, const models::ModelSpec& model,
                                          const dist::ProcessMesh& mesh, Device device,
                                          std::vector<std::string>& notes) {
  MemoryScope scope(MemoryUse::weights);
  const RandomKey key = child({static_cast<uint64_t>(config.run.seed), 0}, "parameters");
  const DType masters = accumulate_type(arithmetic(config).masters);
  const bool starts = models::step_folders(config.run.out, mesh.world).empty();
  auto made = starts && !config.train.init_from.empty() ? load_origin(config, model, masters, key, mesh, notes)
                                                        : model.make(key, mesh);
  made->to(masters);
  if (rounds_stochastically(config)) models::hold_in_16_bits(*made);
  if (config.lora.rank > 0) models::add_lora(*made, lora_options(config), child(key, "lora"), mesh);
  made->to(device);
  made->set_recompute(config.train.recompute);
  made->set_dropout(config.model.dropout);
  made->set_z_loss(config.train.z_loss);
  made->set_attention_workspace(attention_workspace(config, device));
  return made;
}

}  // namespace braid::apps
