#include "braid/models/families/seq2seq/family.h"

#include "braid/models/families/family_settings.h"
#include "braid/models/families/seq2seq/model.h"

namespace braid::models {

namespace {

Seq2SeqConfig configured(Seq2SeqConfig config, const SettingTexts& settings) {
  apply_settings(seq2seq_keys(config), settings, "seq2seq");
  return config;
}

}  // namespace

Seq2SeqSpec::Seq2SeqSpec(Seq2SeqConfig config) : config_(std::move(config)) { check_config(config_); }

std::vector<ModelSetting> Seq2SeqSpec::settings() const {
  Seq2SeqConfig copy = config_;
  const auto in_use = [&](const std::string& name) { return composition_in_use(config_, name); };
  const auto may_change = [](const std::string& name) {
    return name == "mup_base_width" || composition_may_change(name);
  };
  return model_settings("seq2seq", seq2seq_keys(copy), in_use, may_change);
}

std::unique_ptr<const ModelSpec> Seq2SeqSpec::with(const SettingTexts& settings) const {
  return std::make_unique<Seq2SeqSpec>(configured(config_, settings));
}

std::unique_ptr<const ModelSpec> Seq2SeqSpec::mup_base() const {
  if (config_.mup_base_width == 0) return nullptr;
  return std::make_unique<Seq2SeqSpec>(config_.mup_base());
}

std::unique_ptr<Model> Seq2SeqSpec::make(RandomKey key, const dist::ProcessMesh& mesh) const {
  return std::make_unique<Seq2Seq>(config_, key, mesh);
}

std::unique_ptr<const ModelSpec> Seq2Seq::spec() const { return std::make_unique<Seq2SeqSpec>(config_); }

ModelFamily seq2seq_family() {
  return {.model_type = "seq2seq",
          .presets = seq2seq_preset_names(),
          .settings = Seq2SeqSpec(Seq2SeqConfig()).settings(),
          .read = [](const std::string& text, const std::string& file) -> std::unique_ptr<const ModelSpec> {
            return std::make_unique<Seq2SeqSpec>(read_seq2seq_config(text, file));
          },
          .configure = [](const std::string& preset, const SettingTexts& settings) -> std::unique_ptr<const ModelSpec> {
            return std::make_unique<Seq2SeqSpec>(
                configured(preset.empty() ? Seq2SeqConfig() : seq2seq_preset(preset), settings));
          }};
}

}  // namespace braid::models
