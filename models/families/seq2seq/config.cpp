#include "braid/models/families/seq2seq/config.h"

#include "braid/models/families/config_file.h"
#include "braid/models/families/family_settings.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr std::string_view kProfile = "profile.";

Seq2SeqConfig sized(int64_t D, int64_t layers, int64_t N) {
  Seq2SeqConfig c;
  c.hidden_size = D;
  c.encoder_layers = c.decoder_layers = layers;
  c.num_attention_heads = N;
  c.intermediate_size = 2 * D;
  return c;
}

const FamilyPresets<Seq2SeqConfig>& presets() {
  static const FamilyPresets<Seq2SeqConfig> table(
      {{"seq2seq-tiny", sized(64, 2, 4)}, {"seq2seq-small", sized(128, 3, 8)}});
  return table;
}

}  // namespace

Seq2SeqConfig Seq2SeqConfig::mup_base() const { return mup_base_of(*this); }

// Bounds keep every product of sizes far below 2^63.
std::vector<Setting> seq2seq_keys(Seq2SeqConfig& c) {
  std::vector<Setting> table = {
      {"hidden_size", &c.hidden_size, "model width D", between(1, 1 << 20)},
      {"encoder_layers", &c.encoder_layers, "blocks of the encoder", between(1, 1 << 14)},
      {"decoder_layers", &c.decoder_layers, "blocks of the decoder", between(1, 1 << 14)},
      {"num_attention_heads", &c.num_attention_heads, "attention heads N", between(1, 1 << 14)},
      {"intermediate_size", &c.intermediate_size, "hidden width F of the FFN", between(1, 1 << 24)},
      {"vocab_size", &c.vocab_size, "symbols V, of sources and targets", between(1, 1 << 24)},
      {"max_source_length", &c.max_source_length, "symbols of the longest source", between(1, 1 << 20)},
      {"max_target_length", &c.max_target_length, "symbols of the longest target", between(1, 1 << 20)},
      {"layer_norm_eps", &c.layer_norm_eps, "epsilon of the norms", {.min = 0, .max = 1, .min_open = true}},
  };
  for (Setting& key : composition_keys(c, "weights from the query, of cross-attention the decoder's state",
                                       "weights from the key, of cross-attention the encoder's state"))
    table.push_back(std::move(key));
  table.push_back(mup_key(c.mup_base_width));
  return table;
}

void check_config(const Seq2SeqConfig& config) {
  Seq2SeqConfig c = config;
  check_rules(seq2seq_keys(c));
  need_setting(c.hidden_size % c.num_attention_heads == 0, "num_attention_heads",
               str("a divisor of hidden_size = ", c.hidden_size), std::to_string(c.num_attention_heads));
  check_mup_base(c.mup_base_width, c.hidden_size, c.num_attention_heads);
  for (const int64_t layers : {c.encoder_layers, c.decoder_layers}) c.composing(layers);
}

std::vector<std::string> seq2seq_preset_names() { return presets().names(); }

Seq2SeqConfig seq2seq_preset(const std::string& name) { return presets().at(name); }

std::string write_seq2seq_config(const Seq2SeqConfig& config) {
  ordered_json object;
  object["model_type"] = "seq2seq";
  Seq2SeqConfig copy = config;
  // Without the name of the settings that are written.
  const auto is_written = [&](const Setting& setting) {
    if (setting.name == "compose_layers") return config.compose_layers != "all";
    return setting.name != "compose" && (setting.name != "mup_base_width" || config.mup_base_width != 0);
  };
  object["profile"] = add_values(object, seq2seq_keys(copy), is_written);
  return object.dump(2) + "\n";
}

Seq2SeqConfig read_seq2seq_config(const std::string& text, const std::string& file) {
  const json object = parse_config(text, file);
  Seq2SeqConfig config;
  const std::vector<Setting> table = seq2seq_keys(config);
  std::vector<std::string> names;
  for (const Setting& setting : table) names.push_back(setting.name);
  const auto read = [&](const json& from, const std::string& prefix) {
    for (const auto& [key, value] : from.items()) {
      const std::string name = prefix + key;
      if (name == "model_type" || name == "profile") continue;
      const Setting* setting = find_setting(table, name);
      if (!setting)
        fail(ErrorKind::input,
             "unknown key '" + detail::preview(name) + "' in " + file + detail::did_you_mean(name, names));
      read_setting(*setting, name, value, file);
    }
  };
  read(object, "");
  if (const json* profile = find_key(object, "profile")) {
    if (!profile->is_object()) bad_config("bad value for profile", file, "an object", shown(*profile));
    read(*profile, std::string(kProfile));
  }
  check_read(file, [&] { check_config(config); });
  return config;
}

}  // namespace braid::models
