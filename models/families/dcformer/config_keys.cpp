#include "braid/models/families/dcformer/config_keys.h"

#include <algorithm>
#include <mutex>

#include "braid/models/families/dcformer/model_types.h"
#include "braid/models/families/family_settings.h"
#include "braid/models/families/layer_pattern.h"
#include "braid/nn/attention/variant.h"
#include "braid/nn/transformer/depth.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

// Bounds keep every product of sizes (parameters of a layer, of all layers) far below 2^63.
static constexpr double kMaxWidth = 1 << 20, kMaxHidden = 1 << 24, kMaxLayers = 1 << 14, kMaxHeads = 1 << 14;
static constexpr double kMaxVocab = 1 << 28, kMaxPositions = 1 << 30, kMaxFactor = 1 << 20;

namespace {

// "plain" stands for no variant, and says nothing beside others.
Setting attention_setting(DcformerConfig& c) {
  std::vector<std::string> names;
  for (const nn::AttentionVariantRule& rule : nn::attention_variants()) names.push_back(rule.name);
  names.emplace_back("plain");
  ValueRule rule = one_of(names);
  rule.type = ValueType::strings;
  return {"attention", "what attention has beside Compose, in this order: " + detail::join(names, ", ") + " (nothing)",
          rule, [&c]() -> Value { return c.attention.empty() ? std::vector<std::string>{"plain"} : c.attention; },
          [&c](const Value& value) {
            c.attention = std::get<std::vector<std::string>>(value);
            std::erase(c.attention, "plain");
          }};
}

ValueRule residual_rule() {
  std::vector<std::string> names = {"plain"};
  for (const nn::DepthRule& rule : nn::depth_rules()) names.push_back(rule.name);
  return one_of(names);
}

}  // namespace

std::vector<Setting> key_table(DcformerConfig& c) {
  Profile& p = c.profile;
  const ValueRule positive_to_1 = {.min = 0, .max = 1, .min_open = true}, window_keys = one_of({"W", "W+1"});
  const std::vector<std::string> activations = {"silu", "gelu", "gelu_tanh", "quick_gelu", "relu", "tanh", "relu2"};
  std::vector<std::string> profiles = profile_names();
  profiles.push_back("custom");
  return {
      {"model_type", "published family", one_of(model_type_names()), [&c] { return c.model_type; },
       [&c](const Value& value) { set_family(c, std::get<std::string>(value)); }},
      {"vocab_size", &c.vocab_size, "tokens V", between(1, kMaxVocab)},
      {"dim", &c.dim, "model width D", between(1, kMaxWidth)},
      {"n_layer", &c.n_layer, "blocks L", between(1, kMaxLayers)},
      {"n_head", &c.n_head, "attention heads N", between(1, kMaxHeads)},
      {"n_kv_head", &c.n_kv_head, "key/value heads, each shared by n_head / n_kv_head heads, null = n_head",
       between(1, kMaxHeads), 0},
      {"head_dim", &c.head_dim, "width d of a head, null = dim / n_head", between(1, 65536), 0},
      {"intermediate_size", &c.intermediate_size, "hidden width F of the FFN, null = the family's rule",
       between(1, kMaxHidden), 0},
      {"block_size", &c.block_size, "longest sequence", between(1, kMaxPositions)},
      {"norm", &c.norm, "normalisation of blocks and of the end", one_of({"rms", "layer"})},
      {"norm_place", &c.norm_place, "where blocks have norms: before attention and FFN, behind them, or both",
       one_of({"pre", "post", "both"})},
      {"norm_offset", &c.norm_offset, "RMS norms multiply by 1 + weight; the weights start at 0"},
      {"ffn", &c.ffn, "feed-forward kind: gated (swiglu) or plain (gelu)", one_of({"swiglu", "gelu"})},
      {"hidden_act",
       "activation of the FFN, null = silu where gated, else gelu",
       {.choices = activations, .nullable = true},
       [&c, activations] {
         return c.hidden_act == Activation::automatic ? Value() : activations[static_cast<size_t>(c.hidden_act) - 1];
       },
       [&c, activations](const Value& value) {
         const auto* name = std::get_if<std::string>(&value);
         c.hidden_act = name ? static_cast<Activation>(std::ranges::find(activations, *name) - activations.begin() + 1)
                             : Activation::automatic;
       }},
      {"norm_eps", &c.norm_eps, "epsilon of these norms", positive_to_1},
      {"rope_base", &c.rope_base, "base of the rotary frequencies", at_least(1)},
      {"rope_local_base", &c.rope_local_base, "base in local layers, without rope_scaling, null = as in the others",
       at_least(1), 0},
      {"rotary_pct", &c.rotary_pct, "part of a head that is rotated", positive_to_1},
      {"rope_scaling", &c.rope_scaling.kind, "change of the rotary frequencies for longer sequences",
       one_of({"none", "linear", "llama3", "yarn"})},
      {"rope_scaling_factor", &c.rope_scaling.factor, "divisor of the frequencies", between(1, kMaxFactor)},
      {"rope_low_freq_factor", &c.rope_scaling.low_freq_factor,
       "llama3: wavelengths above rope_original_block_size over this are scaled", between(1 / kMaxFactor, kMaxFactor)},
      {"rope_high_freq_factor", &c.rope_scaling.high_freq_factor,
       "llama3: wavelengths below rope_original_block_size over this are not", between(1 / kMaxFactor, kMaxFactor)},
      {"rope_original_block_size", &c.rope_scaling.original_block_size,
       "llama3, yarn: longest sequence before the frequencies were scaled", between(1, kMaxPositions), 0},
      {"rope_beta_fast", &c.rope_scaling.beta_fast, "yarn: pairs that turn more often in it keep their frequency",
       between(1 / kMaxFactor, kMaxFactor)},
      {"rope_beta_slow", &c.rope_scaling.beta_slow, "yarn: pairs that turn less often have it divided by the factor",
       between(1 / kMaxFactor, kMaxFactor)},
      {"rope_attention_factor", &c.rope_scaling.attention_factor,
       "yarn: factor of queries and keys, 0 = 1 + 0.1 ln(rope_scaling_factor)", between(0, kMaxFactor)},
      {"use_qk_norm", &c.use_qk_norm, "RMSNorm of queries and keys"},
      {"qk_norm_all_heads", &c.qk_norm_all_heads, "this norm over all heads of a token together, not over each"},
      {"score_dim", &c.score_dim, "scores of attention are divided by its square root, null = head_dim",
       between(1, kMaxFactor), 0},
      {"attention_softcap", &c.attention_softcap,
       "c of scores of attention that become c tanh(s / c) before heads are mixed, 0 = none", between(0, kMaxFactor)},
      {"compose", "parts of DCMHA by name: the settings that say which exist; none = plain attention",
       compose_rule(dcformer_compose_presets()), [&c] { return compose_name(c); },
       [&c](const Value& value) { set_compose(c, std::get<std::string>(value)); }},
      {"use_dcmha", &c.use_dcmha, "dynamic composition of heads; false = plain attention"},
      {"compose_layers", &c.compose_layers, "layers with DCMHA; the others have plain attention", layer_pattern_rule()},
      attention_setting(c),
      {"attention_layers", &c.attention_layers, "layers that have them", layer_pattern_rule()},
      {"use_linear_bias",
       "both of the next two",
       {.type = ValueType::boolean},
       [&c] { return c.attention_bias && c.mlp_bias; },
       [&c](const Value& value) { c.attention_bias = c.mlp_bias = std::get<bool>(value); }},
      {"attention_bias", &c.attention_bias, "biases of q, k, v and of the output projection of attention"},
      {"mlp_bias", &c.mlp_bias, "biases of the FFN"},
      {"qkv_bias", &c.qkv_bias, "biases of q, k, v, also without attention_bias"},
      {"tie_word_embeddings", &c.tie_word_embeddings, "the output projection is the token embedding"},
      {"logit_softcap", &c.logit_softcap, "c of logits that become c tanh(logits / c), 0 = none",
       between(0, kMaxFactor)},
      {"scale_embeddings", &c.scale_embeddings, "token embeddings times sqrt(dim)"},
      {"use_parallel_residual", &c.use_parallel_residual, "attention and FFN side by side"},
      {"residual", &c.residual, "connections over depth: what each layer reads of those before it", residual_rule()},
      {"expand_last", &c.expand_last, "residual=mudd: 4 times the hidden units behind the last block"},
      {"round64", &c.round64, "residual=mudd: hidden units in multiples of 64"},
      {"dynamic_mlp_dim", &c.dynamic_mlp_dim, "FFN widths from F / 2 in the first layer to 3 F / 2 in the last"},
      {"mgate", &c.mgate, "softmax gate over blocks of the SwiGLU FFN"},
      {"mgate_dim", &c.mgate_dim, "number of these blocks E", between(1, kMaxHidden)},
      {"window_size", &c.window_size, "keys W of a query of a local layer, null = no local layers",
       between(1, kMaxPositions), 0},
      {"window_type", &c.window_type, "pattern of local (L) and global (G) layers, null = LG",
       one_of({"LG", "LGLL", "LGL6", "L5G", "G", "L"}), ""},
      {"bos_token_id", &c.bos_token_id, "token that begins a text", between(0, kMaxVocab), -1},
      {"eos_token_id", &c.eos_token_id, "token that ends a text", between(0, kMaxVocab), -1},
      {"torch_dtype", &c.torch_dtype, "type that the published code of the folder computes in",
       one_of({"float64", "float32", "float16", "bfloat16"}), ""},
      {"init", &c.init, "published initialisation", one_of({"jax", "pytorch"})},
      {"initializer_std", &c.initializer_std, "std of embeddings and projections, init = jax", at_least(0)},
      {"compose_init", &c.compose_init, "start of Compose: published, or identity: the model without Compose",
       one_of({"published", "identity"})},
      mup_key(c.mup_base_width),
      {"profile.gelu", &p.gelu, "GELU of the dynamic-weight generator", one_of({"erf", "tanh"})},
      {"profile.qk_norm_eps", &p.qk_norm_eps, "epsilon of the QK-norm", between(0, 1)},
      {"profile.dw_norm_eps", &p.dw_norm_eps, "epsilon of the norm of the dynamic weights", positive_to_1},
      {"profile.window_keys", &p.window_plus_one, "unmasked keys of a local layer in a full pass", window_keys},
      {"profile.decode_window_keys", &p.decode_window_plus_one, "the same in one-token steps", window_keys},
      {"profile.causal", &p.causal, "false: no key is masked, windows are ignored"},
      {"profile.rope_table", &p.rope_table, "rounding of the cos/sin table; auto = f32, in f64 arithmetic exact",
       one_of({"exact", "f32", "f16", "torch_dtype", "auto", "bf16"})},
      {"profile.pre_compose", &p.pre_compose, "compose scores before the softmax"},
      {"profile.post_compose", &p.post_compose, "compose probabilities after it"},
      {"profile.query_side", &p.query_side, "dynamic weights from the query token"},
      {"profile.key_side", &p.key_side, "dynamic weights from the key token"},
      {"profile.static_proj", &p.static_proj, "learned static mixing of heads in the stages that are on"},
      {"profile.gates", &p.gates, "gate of each head beside the low-rank terms"},
      {"profile.num_groups", &p.num_groups, "head groups G", between(1, kMaxHeads)},
      {"profile.rank", &p.rank, "rank R of each dynamic term, 0 = gates alone", between(0, 64)},
      {"profile.branches", &p.branches, "order of the branches in dw1, qkw, dd; those switched off have no parameters",
       one_of({"pre_q", "pre_k", "post_q", "post_k"})},
      {"profile.layer_windows",
       "window of each layer (null = global), instead of window_type",
       {.type = ValueType::integers, .min = 1, .max = kMaxPositions, .nullable = true},
       [&c] {
         std::vector<int64_t> windows = c.layer_windows;
         std::ranges::replace(windows, 0, kNullItem);
         return windows;
       },
       [&c](const Value& value) {
         c.layer_windows = std::get<std::vector<int64_t>>(value);
         std::ranges::replace(c.layer_windows, kNullItem, 0);
       }},
      {"profile.dynamic_weights", &p.merged_weights, "which count where a folder's copies differ",
       one_of({"dw1", "dw_m"})},
      {"profile.name", "program of the authors whose arithmetic is followed", one_of(profiles),
       [&c] { return profile_name(c); }, [&c](const Value& value) { set_profile(c, std::get<std::string>(value)); }},
  };
}

struct KeysOfCopy::Copy {
  DcformerConfig config;
  std::vector<Setting> keys = key_table(config);
  struct Unused {
    std::mutex mutex;
    std::vector<std::unique_ptr<Copy>> copies;
  };
  static Unused& unused() {
    static Unused all;
    return all;
  }
};

KeysOfCopy::KeysOfCopy(const DcformerConfig& config) {
  Copy::Unused& unused = Copy::unused();
  if (const std::lock_guard lock(unused.mutex); !unused.copies.empty()) {
    copy_ = std::move(unused.copies.back());
    unused.copies.pop_back();
  }
  if (!copy_) copy_ = std::make_unique<Copy>();
  copy_->config = config;
}

KeysOfCopy::~KeysOfCopy() {
  Copy::Unused& unused = Copy::unused();
  const std::lock_guard lock(unused.mutex);
  unused.copies.push_back(std::move(copy_));
}

const std::vector<Setting>& KeysOfCopy::list() const { return copy_->keys; }

}  // namespace braid::models
