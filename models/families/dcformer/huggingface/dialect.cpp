#include "braid/models/families/dcformer/huggingface/dialect.h"

#include <algorithm>

#include "braid/models/families/dcformer/model_types.h"

namespace braid::models {

namespace {

using How = TensorRow::How;

// Before the row of attention, since the first match counts.
const std::vector<TensorRow> qk_norms = {{"attention.q_norm.scale", {"self_attn.q_norm.weight"}},
                                         {"attention.k_norm.scale", {"self_attn.k_norm.weight"}}};

constexpr const char* kBiases = "attention_bias and mlp_bias of config.json name the biases";

// LLaMA ("llama", "Llama"), whose layout its successors share under their names.
Dialect llama(const std::string& model_type, const std::string& name) {
  Dialect d;
  d.model_type = model_type;
  d.architectures = {name + "ForCausalLM"};
  d.keys = {{"vocab_size", "vocab_size", "32000"},
            {"hidden_size", "dim", "4096"},
            {"intermediate_size", "intermediate_size", "11008"},
            {"num_hidden_layers", "n_layer", "32"},
            {"num_attention_heads", "n_head", "32"},
            {"num_key_value_heads", "n_kv_head", "null"},
            {"head_dim", "head_dim", "null"},
            {"max_position_embeddings", "block_size", "2048"},
            {"hidden_act", "hidden_act", "silu"},
            {"rms_norm_eps", "norm_eps", "1e-6"},
            {"attention_bias", "attention_bias", "false"},
            {"mlp_bias", "mlp_bias", "false"},
            {"tie_word_embeddings", "tie_word_embeddings", "false"},
            {"initializer_range", "initializer_std", "0.02"},
            {"bos_token_id", "bos_token_id", "null"},
            {"eos_token_id", "eos_token_id", "null"}};
  d.theta_key = "rope_theta";
  d.partial_absent = "1";
  d.weights = {.architecture = d.architectures[0],
               .base = name + "Model",
               .prefix = "model.",
               .last = "lm_head",
               .layers = "model.layers.",
               .model = {{"tok_embeddings", {"model.embed_tokens"}}, {"norm", {"model.norm"}}, {"output", {"lm_head"}}},
               .layer = {{"attention.wqkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, How::parts},
                         {"attention.wo", {"self_attn.o_proj"}},
                         {"attention", {"self_attn"}},
                         {"feed_forward.w1", {"mlp.gate_proj"}},
                         {"feed_forward.w3", {"mlp.up_proj"}},
                         {"feed_forward.w2", {"mlp.down_proj"}},
                         {"feed_forward", {"mlp"}},
                         {"attention_norm", {"input_layernorm"}},
                         {"ffn_norm", {"post_attention_layernorm"}}},
               .ignored = {".rotary_emb.inv_freq"},
               .surplus = {{"_proj.bias", kBiases}}};
  return d;
}

// With these local layers, without some keys and with other values of missing ones.
Dialect llama_like(const std::string& model_type, const std::string& name, LocalLayers local,
                   const std::vector<std::string>& without, const KeyTexts& absent) {
  Dialect d = llama(model_type, name);
  d.local = local;
  std::erase_if(d.keys, [&](const KeyName& row) { return std::ranges::count(without, row.key) > 0; });
  for (const auto& [key, value] : absent) std::ranges::find(d.keys, key, &KeyName::key)->absent = value;
  d.weights.surplus = {{"_proj.bias", "models of type " + model_type + " do not have it"}};
  return d;
}

Dialect mistral() {
  return llama_like("mistral", "Mistral", LocalLayers::all, {"attention_bias", "mlp_bias"},
                    {{"intermediate_size", "14336"},
                     {"num_key_value_heads", "8"},
                     {"max_position_embeddings", "131072"},
                     {"bos_token_id", "1"},
                     {"eos_token_id", "2"}});
}

KeyTexts qwen_absent() {
  return {{"vocab_size", "151936"},
          {"intermediate_size", "22016"},
          {"num_key_value_heads", "32"},
          {"max_position_embeddings", "32768"}};
}

// q, k and v have biases (model_types.cpp), and no key says so.
Dialect qwen2() {
  return llama_like("qwen2", "Qwen2", LocalLayers::each, {"attention_bias", "mlp_bias"}, qwen_absent());
}

Dialect qwen3() {
  KeyTexts absent = qwen_absent();
  absent.emplace_back("head_dim", "128");
  Dialect d = llama_like("qwen3", "Qwen3", LocalLayers::each, {"mlp_bias"}, absent);
  d.keys.push_back({"rms_norm_eps", "profile.qk_norm_eps", "1e-6"});
  d.weights.layer.insert(d.weights.layer.begin(), qk_norms.begin(), qk_norms.end());
  return d;
}

// The names of norms before (or else behind) attention and FFN, in front of those of LLaMA.
void add_norms(Dialect& d, bool before) {
  std::vector<TensorRow> rows = qk_norms;
  rows.push_back({"attention_post_norm", {"post_attention_layernorm"}});
  rows.push_back({"ffn_post_norm", {"post_feedforward_layernorm"}});
  if (before) rows.push_back({"ffn_norm", {"pre_feedforward_layernorm"}});
  d.weights.layer.insert(d.weights.layer.begin(), rows.begin(), rows.end());
}

Dialect olmo2() {
  Dialect d = llama_like("olmo2", "Olmo2", LocalLayers::none, {"mlp_bias"},
                         {{"vocab_size", "50304"}, {"rms_norm_eps", "1e-5"}, {"eos_token_id", "50279"}});
  d.keys.push_back({"rms_norm_eps", "profile.qk_norm_eps", "1e-5"});
  add_norms(d, false);
  return d;
}

// What Gemma 2 and 3 share.
Dialect gemma(const std::string& model_type, const std::string& name, const KeyTexts& absent, const char* softcap) {
  KeyTexts all = {{"hidden_size", "2304"},         {"intermediate_size", "9216"}, {"num_hidden_layers", "26"},
                  {"num_attention_heads", "8"},    {"num_key_value_heads", "4"},  {"head_dim", "256"},
                  {"tie_word_embeddings", "true"}, {"bos_token_id", "2"},         {"eos_token_id", "1"}};
  all.insert(all.end(), absent.begin(), absent.end());
  Dialect d = llama_like(model_type, name, LocalLayers::pattern, {"mlp_bias", "hidden_act"}, all);
  d.keys.push_back({"hidden_activation", "hidden_act", "gelu_tanh"});
  d.keys.push_back({"query_pre_attn_scalar", "score_dim", "256"});
  d.keys.push_back({"final_logit_softcapping", "logit_softcap", softcap, "0"});
  d.unset = {"use_bidirectional_attention"};
  add_norms(d, true);
  return d;
}

Dialect gemma3() {
  Dialect d = gemma("gemma3_text", "Gemma3", {{"vocab_size", "262208"}, {"max_position_embeddings", "131072"}}, "0");
  d.keys.push_back({"rms_norm_eps", "profile.qk_norm_eps", "1e-6"});
  d.keys.push_back({"rope_local_base_freq", "rope_local_base", "10000"});
  d.weights.base = "Gemma3TextModel";
  d.theta_absent = 1e6;
  d.local_pattern = 6, d.pattern_key = true;
  d.unset.emplace_back("attn_logit_softcapping");  // transformers ignores it
  return d;
}

Dialect gemma2() {
  Dialect d = gemma("gemma2", "Gemma2", {{"vocab_size", "256000"}, {"max_position_embeddings", "8192"}}, "30");
  d.keys.push_back({"attn_logit_softcapping", "attention_softcap", "50", "0"});
  d.local_pattern = 2;
  return d;
}

Dialect gpt_neox() {
  Dialect d;
  d.model_type = "gpt_neox";
  d.architectures = {"GPTNeoXForCausalLM"};
  d.keys = {{"vocab_size", "vocab_size", "50432"},
            {"hidden_size", "dim", "6144"},
            {"intermediate_size", "intermediate_size", "24576"},
            {"num_hidden_layers", "n_layer", "44"},
            {"num_attention_heads", "n_head", "64"},
            {"max_position_embeddings", "block_size", "2048"},
            {"hidden_act", "hidden_act", "gelu"},
            {"layer_norm_eps", "norm_eps", "1e-5"},
            {"use_parallel_residual", "use_parallel_residual", "true"},
            {"attention_bias", "attention_bias", "true"},
            {"tie_word_embeddings", "tie_word_embeddings", "false"},
            {"initializer_range", "initializer_std", "0.02"},
            {"bos_token_id", "bos_token_id", "null"},
            {"eos_token_id", "eos_token_id", "null"}};
  d.theta_key = "rotary_emb_base";
  d.partial_key = "rotary_pct";
  d.partial_absent = "0.25";
  d.weights = {.architecture = "GPTNeoXForCausalLM",
               .base = "GPTNeoXModel",
               .prefix = "gpt_neox.",
               .last = "embed_out",
               .layers = "gpt_neox.layers.",
               .model = {{"tok_embeddings", {"gpt_neox.embed_in"}},
                         {"norm", {"gpt_neox.final_layer_norm"}},
                         {"output", {"embed_out"}}},
               .layer = {{"attention.wqkv", {"attention.query_key_value"}, How::by_head},
                         {"attention.wo", {"attention.dense"}},
                         {"attention", {"attention"}},
                         {"feed_forward.w1", {"mlp.dense_h_to_4h"}},
                         {"feed_forward.w2", {"mlp.dense_4h_to_h"}},
                         {"feed_forward", {"mlp"}},
                         {"attention_norm", {"input_layernorm"}},
                         {"ffn_norm", {"post_attention_layernorm"}}},
               .ignored = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"},
               .surplus = {{".dense.bias", kBiases}}};
  d.one_kv_per_q = true;
  return d;
}

const std::vector<Dialect>& dialects() {
  static const std::vector<Dialect> table = {
      llama("llama", "Llama"), mistral(), qwen2(), qwen3(), olmo2(), gemma2(), gemma3(), gpt_neox()};
  return table;
}

}  // namespace

const Dialect* find_dialect(const std::string& model_type) {
  for (const Dialect& d : dialects())
    if (d.model_type == model_type) return &d;
  return nullptr;
}

FolderTable dialect_folder(const Dialect& d, const DcformerConfig& c) {
  FolderTable table = d.weights;
  if (c.tie_word_embeddings) table.tied_to = "tok_embeddings.weight";
  table.heads = c.query_heads();
  table.kv_heads = c.n_kv_head;
  table.head_size = c.head_dim;
  return table;
}

}  // namespace braid::models
