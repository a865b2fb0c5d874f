// Keys of OLMo2 and Gemma that the other families do not have.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "braid/models/families/dcformer/config_keys.h"
#include "tests/support/throws.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(huggingface_gemma)

using nlohmann::json;

// Defaults of transformers 4.57, both forms of Gemma 3's rotary keys, and null for a cap that is not there.
BOOST_AUTO_TEST_CASE(keys_of_olmo2_and_gemma) {
  const auto of = [](const json& keys) { return models::read_config(keys.dump(), "c"); };
  const models::DcformerConfig olmo2 = of({{"model_type", "olmo2"}});
  BOOST_TEST((olmo2.vocab_size == 50304 && olmo2.n_kv_head == 32 && olmo2.norm_eps == 1e-5));
  BOOST_TEST((olmo2.profile.qk_norm_eps == 1e-5 && olmo2.norm_place == nn::NormPlace::post));
  BOOST_TEST((olmo2.use_qk_norm && olmo2.qk_norm_all_heads && !olmo2.norm_offset && !olmo2.tie_word_embeddings));
  const models::DcformerConfig gemma2 = of({{"model_type", "gemma2"}});
  BOOST_TEST((gemma2.vocab_size == 256000 && gemma2.dim == 2304 && gemma2.head_dim == 256 && gemma2.score_dim == 0));
  BOOST_TEST((gemma2.attention_softcap == 50 && gemma2.logit_softcap == 30 && gemma2.tie_word_embeddings));
  BOOST_TEST((gemma2.norm_place == nn::NormPlace::both && gemma2.norm_offset && gemma2.scale_embeddings));
  BOOST_TEST((!gemma2.use_qk_norm && gemma2.rope_base == 10000 && gemma2.rope_local_base == 0));
  BOOST_TEST((gemma2.hidden_act == models::Activation::gelu_tanh && gemma2.layer_windows[0] == 4096));
  const models::DcformerConfig gemma3 = of({{"model_type", "gemma3_text"}, {"query_pre_attn_scalar", 168}});
  BOOST_TEST((gemma3.vocab_size == 262208 && gemma3.score_dim == 168 && gemma3.rope_base == 1e6));
  BOOST_TEST((gemma3.rope_local_base == 10000 && gemma3.attention_softcap == 0 && gemma3.logit_softcap == 0));
  BOOST_TEST((gemma3.use_qk_norm && !gemma3.qk_norm_all_heads && gemma3.block_size == 131072));

  const json full = {{"rope_type", "linear"}, {"rope_theta", 5e5}, {"factor", 8.0}},
             local = {{"rope_type", "default"}, {"rope_theta", 2e4}};
  const json now = {{"model_type", "gemma3_text"},
                    {"rope_parameters", {{"full_attention", full}, {"sliding_attention", local}}}};
  BOOST_TEST((of(now) == of({{"model_type", "gemma3_text"},
                             {"rope_theta", 5e5},
                             {"rope_local_base_freq", 2e4},
                             {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}})));
  const models::DcformerConfig longer = models::configure(of(now), {{"block_size", "99"}});
  BOOST_TEST((models::read_config(models::rewrite_config(now.dump(), "c", longer), "c") == longer));

  const json none = {
      {"model_type", "gemma2"}, {"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", nullptr}};
  BOOST_TEST((of(none).attention_softcap == 0 && of(none).logit_softcap == 0));
  const json written = json::parse(models::write_config(of(none)));
  BOOST_TEST((written["attn_logit_softcapping"].is_null() && written["final_logit_softcapping"].is_null()));
  BOOST_TEST((written["query_pre_attn_scalar"] == 256 && written["hidden_activation"] == "gelu_pytorch_tanh"));

  const auto fails = [](const json& keys, const std::string& words) {
    json object = {{"model_type", "gemma3_text"}};
    object.update(keys);
    BRAID_CHECK_FAILS(models::read_config(object.dump(), "c"), ErrorKind::input, words);
  };
  fails({{"use_bidirectional_attention", true}}, "bad value for use_bidirectional_attention");
  fails({{"attn_logit_softcapping", 50}}, "bad value for attn_logit_softcapping");
  fails({{"final_logit_softcapping", -1}}, "final_logit_softcapping");
  fails({{"query_pre_attn_scalar", 0}}, "query_pre_attn_scalar");
  fails({{"rope_parameters", {{"full_attention", full}, {"sliding_attention", full}}}}, "only full layers are scaled");
  fails({{"rope_parameters", {{"full_attention", full}, {"sliding_attention", 1}}}},
        "rope_parameters.sliding_attention");
  fails({{"rope_parameters", {{"full_attention", full}, {"chunked_attention", local}}}},
        "rope_parameters.chunked_attention");
  fails({{"rope_local_base_freq", 1e4}, {"rope_parameters", {{"full_attention", full}, {"sliding_attention", local}}}},
        "contradict each other");
}

BOOST_AUTO_TEST_SUITE_END()
