// The configuration of an encoder-decoder Transformer.
#pragma once
#include <string>
#include <vector>

#include "braid/models/families/composition_settings.h"
#include "braid/models/model_spec.h"

namespace braid::models {

struct Seq2SeqConfig : CompositionSettings {
  int64_t hidden_size = 64, encoder_layers = 2, decoder_layers = 2;  // D
  int64_t num_attention_heads = 4, intermediate_size = 128;          // N F
  int64_t vocab_size = 44;                                           // V
  int64_t max_source_length = 64, max_target_length = 64;            // longest S and T
  double layer_norm_eps = 1e-5;
  int64_t mup_base_width = 0;  // hidden_size that the learning rate was found for (training/mup.h); 0: no muP

  bool operator==(const Seq2SeqConfig&) const = default;
  Seq2SeqConfig mup_base() const;  // the model of width mup_base_width, with heads of the same width
  double mup_ratio() const { return mup_base_width == 0 ? 1 : double(hidden_size) / double(mup_base_width); }  // m
};

// The table of the settings; it points into `config`.
std::vector<Setting> seq2seq_keys(Seq2SeqConfig& config);
// Conditions on single settings and between them. Error(setting).
void check_config(const Seq2SeqConfig& config);
// seq2seq-tiny and seq2seq-small, and each with DCMHA, dc-seq2seq-tiny, ...
std::vector<std::string> seq2seq_preset_names();
Seq2SeqConfig seq2seq_preset(const std::string& name);  // Error(setting) with the nearest name

// config.json. Error(input).
Seq2SeqConfig read_seq2seq_config(const std::string& text, const std::string& file);
std::string write_seq2seq_config(const Seq2SeqConfig& config);

}  // namespace braid::models
