#include "braid/models/families/seq2seq/family.h"

#include <algorithm>

#include "braid/models/families/family_settings.h"
#include "braid/models/families/seq2seq/model.h"

namespace braid::models {

namespace {

double of(int64_t n) { return static_cast<double>(n); }

// D width, F hidden width, N heads, R rank, K = 2 R N hidden width of the weight generator; branches of Compose.
struct Sizes {
  explicit Sizes(const Seq2SeqConfig& c)
      : D(of(c.hidden_size)),
        F(of(c.intermediate_size)),
        N(of(c.num_attention_heads)),
        R(of(c.rank)),
        S(of(c.max_source_length)),
        T(of(c.max_target_length)),
        stages(c.use_dcmha ? c.pre_compose + c.post_compose : 0),
        query(stages * c.query_side),
        key(stages * c.key_side),
        base(c.static_proj ? stages : 0) {}
  // FLOPs of the dynamic weights of a position, by branch: dw1, qkw, dd.
  double generator() const { return 2 * D * 2 * R * N + 2 * 2 * R * N * 2 * R * N + 2 * D * N; }
  double pair() const { return 4 * D + (query + key) * (4 * R * N + 2 * N) + base * 2 * N * N; }
  // Projections of q and out, of k and v, and the pairs.
  double attention(double queries, double keys) const {
    return queries * (4 * D * D + query * generator()) + keys * (4 * D * D + key * generator()) +
           queries * keys * pair();
  }
  double ffn() const { return 4 * D * F; }  // of a position
  double D, F, N, R, S, T, stages, query, key, base;
};

Seq2SeqConfig configured(Seq2SeqConfig config, const SettingTexts& settings) {
  apply_settings(seq2seq_keys(config), settings, "seq2seq");
  return config;
}

}  // namespace

Seq2SeqSpec::Seq2SeqSpec(Seq2SeqConfig config) : config_(std::move(config)) { check_config(config_); }

std::vector<ModelSetting> Seq2SeqSpec::settings() const {
  Seq2SeqConfig copy = config_;
  const auto in_use = [&](const std::string& name) { return composition_in_use(config_, name); };
  return model_settings("seq2seq", seq2seq_keys(copy), in_use, composition_may_change);
}

std::unique_ptr<const ModelSpec> Seq2SeqSpec::with(const SettingTexts& settings) const {
  return std::make_unique<Seq2SeqSpec>(configured(config_, settings));
}

std::unique_ptr<Model> Seq2SeqSpec::make(RandomKey key, const dist::ProcessMesh& mesh) const {
  return std::make_unique<Seq2Seq>(config_, key, mesh);
}

ModelSize Seq2SeqSpec::size() const {
  const int64_t all = nn::count(*make_shape_only());
  return {.parameters = all,
          .non_embedding = all - 2 * config_.vocab_size * config_.hidden_size,
          .layers = config_.encoder_layers + config_.decoder_layers};
}

SettingTexts Seq2SeqSpec::matching_settings(int64_t parameters) const {
  const int64_t unit = (config_.encoder_layers + config_.decoder_layers) * (2 * config_.hidden_size + 1);
  return matching_width(config_.intermediate_size, unit, parameters - size().parameters);
}

double Seq2SeqSpec::forward_flops(int64_t) const {
  const Sizes s(config_);
  return of(config_.encoder_layers) * (s.attention(s.S, s.S) + s.S * s.ffn()) +
         of(config_.decoder_layers) * (s.attention(s.T, s.T) + s.attention(s.T, s.S) + s.T * s.ffn()) +
         2 * s.T * s.D * of(config_.vocab_size);
}

// Saved by a block: residual stream (2 D), q, k, v (3 D), heads' output (D), hidden layer before its activation (F),
// row statistics of softmax (N) and of both norms (4), dynamic weights, and where all is kept the norms' results (2 D)
// and those of the activations. Cross-attention adds residual stream, queries and heads' output (3 D) and keys and
// values (2 D) of the source. At the ends: the inputs of both final norms, and the gradient of the decoder's result. A
// test measures it.
TrainingMemory Seq2SeqSpec::training_memory(const TrainingSetup& setup) const {
  TrainingMemory memory = ModelSpec::training_memory(setup);
  const Sizes s(config_);
  const double bytes = of(setup.bytes_per_element), wide = std::max(4.0, bytes);
  const double all = setup.keeps_all() ? 1 : 0;
  const double weights = bytes * s.N * ((6 + 2 * all) * s.R + 2);  // of a branch
  const double self = bytes * ((6 + 2 * all) * s.D + (1 + all) * s.F) + wide * (s.N + 4) + (s.query + s.key) * weights;
  const double cross_target = bytes * (3 + all) * s.D + wide * (s.N + 2) + s.query * weights;
  const double cross_source = bytes * 2 * s.D + s.key * weights;
  const double source_end = bytes * (1 + all) * s.D + 2 * wide, target_end = (bytes + wide) * s.D + 2 * wide;
  memory.activations =
      of(setup.batch) *
      (s.S * (of(config_.encoder_layers) * self + source_end) +
       of(config_.decoder_layers) * (s.T * (self + cross_target) + s.S * cross_source) + s.T * target_end);
  memory.working = of(setup.batch) * bytes * std::max(s.S, s.T) * std::max(s.F, 10 * s.D);
  return memory;
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
