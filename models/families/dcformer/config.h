// One configuration type for every model of Braid; the named variants are data (presets.cpp), not code.
//
// Field names are the config.json keys of the published DCFormer and DCPythia folders. `profile` holds what those
// folders leave to the code that reads them (GELU kind, epsilons, window of W or W+1 keys, ...), so that results can be
// matched to the last digit with either the training or the inference code of the authors.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "braid/nn/layers/rope.h"
#include "braid/nn/transformer/block.h"

namespace braid::models {

enum class Gelu : uint8_t { erf, tanh };
enum class NormKind : uint8_t { rms, layer };
using nn::Activation;
using nn::FfnKind;
using nn::RopeScaling;
// cos/sin in full precision; computed in f32; computed in f32 and rounded to f16, bf16 or DcformerConfig::torch_dtype;
// automatic: exact in f64 arithmetic, else computed in f32.
enum class RopeTable : uint8_t { exact, f32, f16, torch_dtype, automatic, bf16 };
enum class InitKind : uint8_t { jax, pytorch };  // the two published initialisations
// How Compose starts: as published, or so that the model equals the one without Compose (nn/attention/composition.h).
enum class ComposeInit : uint8_t { published, identity };

struct Profile {
  Gelu gelu = Gelu::tanh;  // of the dynamic-weight generator; the GELU FFN is always erf
  double qk_norm_eps = 1e-5;
  double dw_norm_eps = 1e-6;     // of the norm over heads of the first low-rank factor
  bool window_plus_one = false;  // local layers attend to W+1 keys in a full pass and in prefill ("window_keys": "W+1")
  bool decode_window_plus_one = false;
  bool causal = true;
  RopeTable rope_table = RopeTable::exact;
  bool pre_compose = true, post_compose = true;
  bool query_side = true, key_side = true;
  bool static_proj = false, gates = true;
  int64_t num_groups = 1, rank = 2;  // rank 0: gates alone
  // Order of the C axis of dw1, qkw, dd; resolve() keeps those whose stage and side are on.
  std::vector<std::string> branches = {"pre_q", "pre_k", "post_q", "post_k"};
  bool merged_weights = false;  // a folder's copies dw_m, qkw_m are read where they differ from dw1, qkw, dd

  bool operator==(const Profile&) const = default;
};

struct DcformerConfig {
  std::string model_type = "dcformer";  // a row of model_types.h: the layout and the defaults of a family
  int64_t vocab_size = 0, dim = 0, n_layer = 0, n_head = 0;
  int64_t n_kv_head = 0;          // key/value heads, each of n_head / n_kv_head query heads; 0 = n_head
  int64_t head_dim = 0;           // 0 = dim / n_head
  int64_t intermediate_size = 0;  // 0 = 8 dim / 3 rounded up to 256 (SwiGLU), 4 dim (GELU)
  int64_t block_size = 2048;      // longest sequence
  double norm_eps = 1e-5, rope_base = 10000, rotary_pct = 1;
  RopeScaling rope_scaling;
  double rope_local_base = 0;  // of local layers, without rope_scaling; 0: they rotate as the others do
  NormKind norm = NormKind::rms;
  nn::NormPlace norm_place = nn::NormPlace::pre;
  bool norm_offset = false;  // gains of RMS norms, those of queries and keys too, are 1 + weight
  FfnKind ffn = FfnKind::swiglu;
  Activation hidden_act = Activation::automatic;  // of the FFN; resolve() leaves no automatic
  bool use_qk_norm = true, use_dcmha = true;
  bool qk_norm_all_heads = false;                 // over all heads of a token, not over each
  int64_t score_dim = 0;                          // scores are divided by its square root; 0 = head_dim
  double attention_softcap = 0;                   // c: scores s become c tanh(s / c); 0: none
  std::string compose_layers = "all";             // that have Compose: layer_pattern.h
  std::vector<std::string> attention = {};        // variants by name (nn/attention/variant.h), beside Compose
  std::string attention_layers = "all";           // that have them
  bool attention_bias = false, mlp_bias = false;  // of their projections; the published key of both: use_linear_bias
  bool qkv_bias = false;                          // of queries, keys and values alone
  bool tie_word_embeddings = false;               // the output projection is the token embedding
  double logit_softcap = 0;                       // c: logits are c tanh(x / c) of the output projection's x; 0: x
  bool scale_embeddings = false;                  // token embeddings times sqrt(dim)
  bool use_parallel_residual = false;
  std::string residual = "plain";             // connections over depth: plain, or by name (nn/transformer/depth.h)
  bool expand_last = false, round64 = false;  // of those of MUDD
  bool dynamic_mlp_dim = false;               // FFN widths grow from F / 2 in the first layer to 3 F / 2 in the last
  bool mgate = false;
  int64_t mgate_dim = 44;
  int64_t window_size = 256;           // of local layers; 0 = none ("null")
  std::string window_type;             // "" or "LG": even layers local; "LGLL", "LGL6", "L5G"; "G": all global
  std::vector<int64_t> layer_windows;  // per layer, 0 = global; filled from window_type by resolve() when empty
  int64_t bos_token_id = -1, eos_token_id = -1;
  std::string torch_dtype;         // "" or what the published code of the folder computes in: "float16"
  double initializer_std = 0.006;  // of embeddings and projections, InitKind::jax
  InitKind init = InitKind::jax;
  ComposeInit compose_init = ComposeInit::published;
  int64_t mup_base_width = 0;  // dim of the model that the learning rate was found for (training/mup.h); 0: no muP
  Profile profile;

  int64_t rotary_dims() const;                              // int(head_dim * rotary_pct), even
  int64_t keys_of_layer(int64_t layer, bool decode) const;  // unmasked keys of a local layer, 0 = no limit
  double mup_ratio() const { return mup_base_width == 0 ? 1 : double(dim) / double(mup_base_width); }  // m
  DcformerConfig mup_base() const;     // the model of width mup_base_width, with heads of the same width; resolved
  bool composes(int64_t layer) const;  // DCMHA in this layer
  bool rotates_locally(int64_t layer) const;  // by rope_local_base
  int64_t ffn_width(int64_t layer) const;     // hidden units of the FFN
  bool caches_queries(int64_t layer) const;   // a variant reads those of earlier tokens
  bool composed_attention() const;            // a variant that no fused kernel serves
  bool pages() const;                         // keys may lie in blocks (paged.cpp), on the CPU
  int64_t query_heads() const;                // Nq: n_head, or more with a variant that makes one head of several
  int64_t group_heads() const { return query_heads() / profile.num_groups; }     // M
  int64_t generator_hidden() const { return 2 * profile.rank * group_heads(); }  // K
  // C, of a resolved configuration: the branches that have parameters.
  int64_t dynamic_branches() const { return use_dcmha ? static_cast<int64_t>(profile.branches.size()) : 0; }

  bool operator==(const DcformerConfig&) const = default;
};

// Fills derived fields (head_dim, intermediate_size, layer_windows), drops the branches that are switched off, and
// checks every range and divisibility. Error(setting) names the key. Resolving a resolved configuration changes
// nothing.
void resolve(DcformerConfig& config);

// config.json of a published or saved folder, resolved. A missing key has the value that the published code gives it
// (profile T1, or H-inf for folders of the later code). Keys that cannot matter here (transformers_version, ...) are
// ignored; keys that matter but are not supported (query_wise) and unknown keys are rejected. Error(input) names file,
// key and what was expected.
DcformerConfig read_config(const std::string& config_json_text, const std::string& file_name);
// config.json text; read_config(write_config(c)) == c for a resolved c.
std::string write_config(const DcformerConfig& config);
// The text of another config.json (read from `file_name`) with the fewest keys changed or added that make it describe
// `config`; the text itself when it does already.
std::string rewrite_config(const std::string& text, const std::string& file_name, const DcformerConfig& config);

// config.json of a folder that holds one attention and its inputs instead of a model ("model_type": "attention"): the
// model has one layer of width n_head x head_dim. Query row t is at position t + q_offset, key row s at s.
struct AttentionCase {
  DcformerConfig config;
  int64_t batch = 0, q_len = 0, kv_len = 0, q_offset = 0;
};
AttentionCase read_attention_case(const std::string& config_json_text, const std::string& file_name);
bool is_attention_case(const std::string& config_json_text, const std::string& file_name);

// Named profiles: the arithmetic of the reference implementations beyond their config.json. J (JAX training), T1
// (inference code of DCFormer-2.8B and DCPythia-6.9B), H-train, H-inf (the later training and inference code). Setting
// the key profile.name sets all values of that profile; it reads as the profile whose values are all set, else
// "custom".
std::vector<std::string> profile_names();
std::string profile_name(const DcformerConfig& config);

// Named presets: dcformer-{tiny,small,405m,834m,1.4b,2.8b,8b}, transformer-{...}, dcpythia-{tiny,6.9b},
// pythia-{tiny,6.9b}.
std::vector<std::string> preset_names();
// Resolved; configure() also sets keys. Throws Error(setting) with the nearest name.
DcformerConfig preset(const std::string& name);
// The preset (or, with an empty name, the defaults) with these keys set, resolved. The order of the keys does not
// matter.
DcformerConfig configure(const std::string& preset_name, const std::vector<std::pair<std::string, std::string>>& keys);
// The same for a configuration that was read from a file: sizes derived from a changed dim, n_head, n_layer or window
// are derived again, and branches of a stage or side that is switched on again are added, unless they are among the
// keys.
DcformerConfig configure(DcformerConfig base, const std::vector<std::pair<std::string, std::string>>& keys);

// Sets one key (config.json name, or "profile.x") from text, as `braid train model.dim=512` does. Lists are written
// 256,null,256 or [256, null, 256]; null (or none) means no window, no special token, a derived size. Setting
// model_type also sets the keys of that family (model_types.h), profile.name those of that profile. Error(setting)
// names key and nearest name.
void set_key(DcformerConfig& config, const std::string& key, const std::string& value);
std::string get_key(const DcformerConfig& config, const std::string& key);  // the text that set_key() takes
std::vector<std::string> config_keys();                                     // every key of set_key()
std::string key_help(const std::string& key);                               // one line

}  // namespace braid::models
