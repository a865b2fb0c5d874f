#include "braid/models/families/dcformer/config.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "braid/models/families/dcformer/config_keys.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/reader.h"
#include "tests/support/places.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(config)

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

// Runs f and requires an Error of this kind whose message holds every part.
template <class F>
void rejects(F&& f, ErrorKind kind, const std::vector<std::string>& parts) {
  BOOST_CHECK_EXCEPTION(f(), Error, [&](const Error& e) { return says(e, kind, parts); });
}

void rejects_keys(const Keys& keys, const std::vector<std::string>& parts) {
  rejects([&] { configure("dcformer-tiny", keys); }, ErrorKind::setting, parts);
}

void rejects_text(const std::string& text, const std::vector<std::string>& parts) {
  rejects([&] { read_config(text, "model/config.json"); }, ErrorKind::input, parts);
}

// The keys of the DCFormer-2.8B folder at a small size; `extra` is put in front of them.
std::string folder(const std::string& extra, const std::string& n_head = "4") {
  return "{" + extra + R"("model_type": "dcformer", "block_size": 128, "dim": 12, "n_head": )" + n_head +
         R"(, "n_layer": 3, "intermediate_size": 48, "vocab_size": 64, "norm_eps": 1e-06, "use_dcmha": true,
         "use_qk_norm": true, "rotary_pct": 1, "window_size": 8, "window_type": null, "query_wise": false,
         "q_chunk_size": 128, "is_training": false, "tie_word_embeddings": false, "torch_dtype": "float16",
         "transformers_version": "4.40.2", "architectures": ["DCFormer"], "bos_token_id": 1, "eos_token_id": 2})";
}

std::string even_folder(const std::string& extra) { return folder(extra, "2"); }

}  // namespace

BOOST_AUTO_TEST_CASE(derives_sizes_and_windows) {
  const DcformerConfig c = configure("", {{"vocab_size", "258"}, {"dim", "256"}, {"n_layer", "4"}, {"n_head", "8"}});
  BOOST_TEST(c.head_dim == 32);
  BOOST_TEST(c.intermediate_size == 768);  // 682 rounded up to 256
  BOOST_TEST(c.layer_windows == (std::vector<int64_t>{256, 0, 256, 0}), boost::test_tools::per_element());
  BOOST_TEST(c.rotary_dims() == 32);
  BOOST_TEST(c.group_heads() == 8);
  BOOST_TEST(c.generator_hidden() == 32);
  DcformerConfig again = c;
  resolve(again);
  BOOST_TEST((again == c));
}

BOOST_AUTO_TEST_CASE(names_window_patterns) {
  const auto windows = [](const char* type, const char* size) {
    return configure("dcformer-tiny", {{"n_layer", "9"}, {"window_type", type}, {"window_size", size}}).layer_windows;
  };
  const auto same = boost::test_tools::per_element();
  BOOST_TEST(windows("null", "5") == (std::vector<int64_t>{5, 0, 5, 0, 5, 0, 5, 0, 5}), same);
  BOOST_TEST(windows("LG", "5") == (std::vector<int64_t>{5, 0, 5, 0, 5, 0, 5, 0, 5}), same);
  BOOST_TEST(windows("LGLL", "5") == (std::vector<int64_t>{5, 0, 5, 5, 5, 0, 5, 5, 5}), same);
  BOOST_TEST(windows("LGL6", "5") == (std::vector<int64_t>{5, 0, 5, 5, 5, 5, 5, 5, 5}), same);
  BOOST_TEST(windows("L5G", "5") == (std::vector<int64_t>{5, 5, 5, 5, 5, 0, 5, 5, 5}), same);
  BOOST_TEST(windows("G", "5") == std::vector<int64_t>(9, 0), same);
  BOOST_TEST(windows("null", "null") == std::vector<int64_t>(9, 0), same);
}

BOOST_AUTO_TEST_CASE(visible_keys_follow_the_profile) {
  DcformerConfig c = configure("dcformer-tiny", {{"profile.window_keys", "W+1"}, {"window_size", "8"}});
  BOOST_TEST(c.keys_of_layer(0, false) == 9);
  BOOST_TEST(c.keys_of_layer(0, true) == 8);
  BOOST_TEST(c.keys_of_layer(1, false) == 0);
  c.profile.causal = false;
  BOOST_TEST(c.keys_of_layer(0, false) == 0);
  rejects([&] { c.keys_of_layer(4, false); }, ErrorKind::misuse, {"layer 4 has no window", "resolve()"});
}

BOOST_AUTO_TEST_CASE(changed_sizes_take_derived_ones_along) {
  const DcformerConfig base = configure("dcformer-tiny", {});
  const DcformerConfig c = configure(base, {{"n_layer", "2"}, {"dim", "512"}});
  BOOST_TEST(c.head_dim == 64);
  BOOST_TEST(c.intermediate_size == 1536);
  BOOST_TEST(c.layer_windows.size() == 2u);
  // In any order, and what is given stays.
  const DcformerConfig d = configure(base, {{"head_dim", "16"}, {"intermediate_size", "100"}, {"dim", "512"}});
  BOOST_TEST(d.head_dim == 16);
  BOOST_TEST(d.intermediate_size == 100);
  BOOST_TEST(d.n_head == 8);
  const DcformerConfig e = configure(base, {{"rotary_pct", "0.5"}, {"model_type", "dcpythia"}});
  BOOST_TEST(e.rotary_pct == 0.5);
  BOOST_TEST((e.norm == NormKind::layer && e.ffn == FfnKind::gelu && e.use_parallel_residual));
  BOOST_TEST((e.hidden_act == Activation::gelu && e.attention_bias && e.mlp_bias));
  BOOST_TEST(e.intermediate_size == 1024);
}

BOOST_AUTO_TEST_CASE(keys_that_follow_others) {
  const DcformerConfig c = configure("transformer-tiny", {{"n_kv_head", "2"}, {"mlp_bias", "true"}});
  BOOST_TEST((c.n_kv_head == 2 && c.mlp_bias && !c.attention_bias && c.hidden_act == Activation::silu));
  // Grouping stays when the number of heads changes, its absence too.
  BOOST_TEST(configure(c, {{"n_head", "4"}}).n_kv_head == 2);
  BOOST_TEST(configure(configure("transformer-tiny", {}), {{"n_head", "4"}}).n_kv_head == 4);
  BOOST_TEST((configure(c, {{"ffn", "gelu"}}).hidden_act == Activation::gelu));
  BOOST_TEST((configure(configure(c, {{"hidden_act", "relu"}}), {{"ffn", "gelu"}}).hidden_act == Activation::relu));
  // One published key for both biases, in any order with its parts.
  const DcformerConfig both = configure(c, {{"attention_bias", "false"}, {"use_linear_bias", "true"}});
  BOOST_TEST((both.mlp_bias && !both.attention_bias));
}

BOOST_AUTO_TEST_CASE(every_key_reads_what_it_shows) {
  const DcformerConfig from = configure("dcpythia-tiny", {{"profile.rope_table", "f16"}});
  DcformerConfig to;
  for (const std::string& key : config_keys()) {
    set_key(to, key, get_key(from, key));
    BOOST_TEST(get_key(to, key) == get_key(from, key), key);
    BOOST_TEST(!key_help(key).empty());
  }
  BOOST_TEST((to == from));
}

BOOST_AUTO_TEST_CASE(sets_keys_from_text) {
  DcformerConfig c = unresolved_preset("dcformer-tiny");
  set_key(c, "profile.layer_windows", "[16, null, none,8]");
  BOOST_TEST(c.layer_windows == (std::vector<int64_t>{16, 0, 0, 8}), boost::test_tools::per_element());
  set_key(c, "profile.branches", "[\"post_q\", 'pre_q']");
  BOOST_TEST(c.profile.branches == (std::vector<std::string>{"post_q", "pre_q"}), boost::test_tools::per_element());
  set_key(c, "rope_base", "5e5");
  BOOST_TEST(c.rope_base == 500000);
  set_key(c, "bos_token_id", "0");
  set_key(c, "eos_token_id", "none");
  BOOST_TEST(c.bos_token_id == 0);
  BOOST_TEST(c.eos_token_id == -1);
  set_key(c, "profile.rope_table", "f16");
  BOOST_TEST((c.profile.rope_table == RopeTable::f16));
}

BOOST_AUTO_TEST_CASE(rejects_unknown_keys_with_the_nearest_name) {
  rejects_keys({{"n_heads", "8"}}, {"unknown model key 'n_heads'", "did you mean 'n_head'?"});
  rejects_keys({{"gelu", "erf"}}, {"did you mean 'profile.gelu'?"});
  rejects_keys({{"profile.kind", "model"}}, {"unknown model key 'profile.kind'"});
}

BOOST_AUTO_TEST_CASE(rejects_values_of_another_type) {
  rejects_keys({{"dim", "wide"}}, {"model key dim", "an integer from 1 to 1048576", "found 'wide'"});
  rejects_keys({{"dim", "25.5"}}, {"found '25.5'"});
  rejects_keys({{"dim", "null"}}, {"found 'null'"});
  rejects_keys({{"dim", "9223372036854775808"}}, {"found '9223372036854775808'"});
  rejects_keys({{"mgate", "1"}}, {"mgate", "true or false"});
  rejects_keys({{"norm_eps", "nan"}}, {"norm_eps", "above 0 and at most 1", "found 'nan'"});
  rejects_keys({{"profile.gelu", "exact"}}, {"profile.gelu", "one of erf, tanh"});
  rejects_keys({{"profile.branches", "pre_q,pre_q"}}, {"profile.branches", "different names"});
  rejects_keys({{"profile.layer_windows", "8,x"}}, {"profile.layer_windows", "each null or an integer"});
}

BOOST_AUTO_TEST_CASE(rejects_windows_below_one) {
  rejects_keys({{"window_size", "0"}}, {"window_size", "from 1 to", "or null", "found '0'"});
  rejects_keys({{"window_size", "-4"}}, {"found '-4'"});
  rejects_keys({{"profile.layer_windows", "8,0,8,null"}}, {"profile.layer_windows"});
  rejects_keys({{"window_size", "null"}, {"window_type", "LGLL"}}, {"window_size", "window_type LGLL", "found null"});
  rejects_keys({{"profile.layer_windows", "8,8"}}, {"profile.layer_windows", "n_layer = 4", "found 2"});
  DcformerConfig c = configure("dcformer-tiny", {});
  c.layer_windows[0] = -1;
  rejects([&] { resolve(c); }, ErrorKind::setting, {"profile.layer_windows", "found -1,null,256,null"});
}

BOOST_AUTO_TEST_CASE(rejects_sizes_that_do_not_divide) {
  rejects_keys({{"n_head", "7"}}, {"n_head", "a divisor of dim = 256", "found 7", "or set head_dim"});
  rejects_keys({{"profile.num_groups", "3"}}, {"profile.num_groups", "a divisor of n_head = 8", "found 3"});
  rejects_keys({{"mgate", "true"}}, {"mgate_dim", "a divisor of intermediate_size = 768", "found 44"});
  rejects_keys({{"n_head", "256"}}, {"rotary_pct", "an even number", "found 1 = int(1 x 1)"});
  rejects_keys({{"rotary_pct", "0.1"}, {"head_dim", "50"}}, {"rotary_pct", "found 5 = int(50 x 0.1)"});
  rejects_keys({{"n_head", "16384"}, {"head_dim", "65536"}}, {"head_dim", "16384 x 65536"});
}

BOOST_AUTO_TEST_CASE(rejects_contradictions) {
  rejects_keys({{"mgate", "true"}, {"mgate_dim", "4"}, {"ffn", "gelu"}}, {"mgate", "false with ffn=gelu"});
  rejects_keys({{"n_kv_head", "3"}}, {"n_kv_head", "a divisor of n_head = 8", "found 3"});
  rejects_keys({{"rope_scaling", "llama3"}}, {"rope_original_block_size", "found none"});
  rejects_keys({{"rope_scaling", "llama3"}, {"rope_original_block_size", "64"}, {"rope_low_freq_factor", "4"}},
               {"rope_low_freq_factor", "less than rope_high_freq_factor = 4", "found 4"});
  rejects_keys({{"hidden_act", "gelu_10"}}, {"hidden_act", "one of silu, gelu, gelu_tanh"});
  rejects_keys({{"eos_token_id", "258"}}, {"eos_token_id", "below vocab_size = 258"});
  rejects_keys({{"use_dcmha", "false"}, {"profile.static_proj", "true"}}, {"profile.static_proj", "use_dcmha"});
  rejects_keys({{"profile.branches", "pre_q,post_q"}}, {"profile.branches", "pre_k, which pre_compose reads"});
  rejects_keys({{"profile.branches", ""}}, {"profile.branches", "at least one branch"});
  configure("dcformer-tiny", {{"profile.branches", "pre_q,post_q"}, {"profile.key_side", "false"}});
  configure("dcformer-tiny", {{"profile.branches", "post_k,post_q"}, {"profile.pre_compose", "false"}});
}

BOOST_AUTO_TEST_CASE(branches_follow_the_switches) {
  using Names = std::vector<std::string>;
  const auto branches = [](const DcformerConfig& c) { return c.profile.branches; };
  const DcformerConfig query = configure("dcformer-tiny", {{"profile.key_side", "false"}});
  BOOST_TEST((branches(query) == Names{"pre_q", "post_q"}));
  BOOST_TEST((branches(configure("dcformer-tiny", {{"profile.branches", "post_k,pre_q,post_q,pre_k"},
                                                   {"profile.pre_compose", "false"}})) == Names{"post_k", "post_q"}));
  const DcformerConfig none = configure(query, {{"profile.query_side", "false"}});
  BOOST_TEST(branches(none).empty());
  BOOST_TEST((read_config(write_config(none), "config.json") == none));
  // Switched on again.
  BOOST_TEST((configure(none, {{"profile.query_side", "true"}, {"profile.key_side", "true"}}) ==
              configure("dcformer-tiny", {})));
  const DcformerConfig reordered =
      configure("dcformer-tiny", {{"profile.branches", "post_q,pre_q"}, {"profile.key_side", "false"}});
  BOOST_TEST(
      (branches(configure(reordered, {{"profile.key_side", "true"}})) == Names{"post_q", "pre_q", "pre_k", "post_k"}));
  // Without use_dcmha the list is left as it is, for models that switch it on.
  BOOST_TEST((branches(configure("transformer-tiny", {{"profile.key_side", "false"}})).size() == 4u));
}

BOOST_AUTO_TEST_CASE(needs_the_sizes) {
  rejects([] { configure("", {}); }, ErrorKind::setting,
          {"vocab_size", "from 1 to", "found none; set it, or name a preset"});
}

BOOST_AUTO_TEST_CASE(json_reads_back_equal) {
  for (const std::string& name : preset_names()) {
    const DcformerConfig c = configure(name, {});
    BOOST_TEST((read_config(write_config(c), "config.json") == c), name);
  }
  const DcformerConfig odd = configure("dcformer-tiny", {{"profile.layer_windows", "3,null,7,null"},
                                                         {"profile.rank", "3"},
                                                         {"profile.num_groups", "2"},
                                                         {"profile.branches", "post_q,pre_q"},
                                                         {"profile.key_side", "false"},
                                                         {"norm_eps", "1e-06"},
                                                         {"profile.causal", "false"},
                                                         {"rope_base", "12345.678"},
                                                         {"n_kv_head", "4"},
                                                         {"attention_bias", "true"},
                                                         {"hidden_act", "quick_gelu"},
                                                         {"rope_scaling", "llama3"},
                                                         {"rope_scaling_factor", "32"},
                                                         {"rope_low_freq_factor", "1.5"},
                                                         {"rope_original_block_size", "64"},
                                                         {"tie_word_embeddings", "true"},
                                                         {"compose_init", "identity"},
                                                         {"bos_token_id", "0"}});
  BOOST_TEST((read_config(write_config(odd), "config.json") == odd));
  const std::string tiny = write_config(configure("transformer-tiny", {}));  // with n_local_heads
  const DcformerConfig other = configure(read_config(tiny, "config.json"), {{"n_head", "4"}});
  BOOST_TEST((read_config(rewrite_config(tiny, "config.json", other), "config.json") == other));
}

BOOST_AUTO_TEST_CASE(published_folders_have_the_published_profile) {
  const DcformerConfig c = read_config(even_folder(""), "config.json");
  BOOST_TEST(c.head_dim == 6);
  BOOST_TEST(c.norm_eps == 1e-6);
  BOOST_TEST(c.rope_base == 10000);  // absent: the value of the published class
  BOOST_TEST((c.profile.gelu == Gelu::erf && c.profile.rope_table == RopeTable::f16));
  BOOST_TEST(c.profile.qk_norm_eps == 1e-6);
  BOOST_TEST((c.profile.window_plus_one && !c.profile.decode_window_plus_one));
  BOOST_TEST(c.bos_token_id == 1);
  // The later code: W keys, another base.
  const DcformerConfig later =
      read_config(even_folder(R"("prefill_pad": true, "mgate": true, "mgate_dim": 6, )"), "config.json");
  BOOST_TEST((!later.profile.window_plus_one && later.profile.rope_table == RopeTable::torch_dtype));
  BOOST_TEST(later.rope_base == 500000);
  BOOST_TEST((later.mgate && later.mgate_dim == 6));
}

BOOST_AUTO_TEST_CASE(the_profile_object_overrides) {
  const DcformerConfig c = read_config(even_folder(R"("profile": {"kind": "model", "gelu": "tanh", "window_keys": "W",
      "layer_windows": [null, 5, 6], "branches": ["pre_q", "post_q"], "key_side": false}, )"),
                                       "config.json");
  BOOST_TEST((c.profile.gelu == Gelu::tanh && !c.profile.window_plus_one && !c.profile.key_side));
  BOOST_TEST(c.layer_windows == (std::vector<int64_t>{0, 5, 6}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(pythia_folders_have_their_family) {
  const DcformerConfig c = read_config(R"({"model_type": "dcpythia", "dim": 64, "n_head": 4, "n_layer": 2,
      "vocab_size": 67, "use_qk_norm": true, "window_size": 8})",
                                       "config.json");
  BOOST_TEST((c.norm == NormKind::layer && c.ffn == FfnKind::gelu));
  BOOST_TEST((c.attention_bias && c.mlp_bias && c.use_parallel_residual));
  BOOST_TEST(c.rotary_dims() == 4);
  BOOST_TEST(c.intermediate_size == 256);
}

BOOST_AUTO_TEST_CASE(rank_of_one_and_three_heads_must_be_given) {
  rejects_text(folder("", "1"), {"n_head in model/config.json", "found 1", "undefined for one head", "profile.rank"});
  rejects_text(folder("", "3"), {"n_head in model/config.json", "found 3", "set profile.rank"});
  BOOST_TEST(read_config(folder(R"("profile": {"rank": 3}, )", "3"), "config.json").profile.rank == 3);
  BOOST_TEST(read_config(folder(R"("profile": {"rank": 2}, )", "1"), "config.json").generator_hidden() == 4);
}

BOOST_AUTO_TEST_CASE(rejects_what_it_would_have_to_obey) {
  rejects_text(R"({"model_type": "dcformer", "vocab_size": 8, "dim": 8, "n_layer": 1, "n_head": 2,
      "query_wise": true})",
               {"query_wise", "profile.key_side=false"});
  rejects_text(even_folder(R"("n_local_heads": 1, )"), {"n_local_heads", "n_head = 2", "found 1", "grouped"});
  BOOST_TEST(read_config(even_folder(R"("n_local_heads": -1, )"), "config.json").n_head == 2);
}

BOOST_AUTO_TEST_CASE(rejects_bad_files) {
  rejects_text(even_folder(R"("n_heads": 4, )"),
               {"unknown key 'n_heads' in model/config.json", "did you mean 'n_head'?"});
  rejects_text(even_folder(R"("profile": {"gelo": "erf"}, )"), {"unknown key 'profile.gelo'", "'profile.gelu'"});
  rejects_text(even_folder(R"("profile": 3, )"), {"profile in model/config.json", "an object", "found 3"});
  rejects_text(even_folder(R"("profile.gelu": "erf", )"), {"unknown key 'profile.gelu'"});
  rejects_text(even_folder(R"("head_dim": "6", )"), {"head_dim in model/config.json", "found \"6\""});
  rejects_text(even_folder(R"("head_dim": 6.0, )"), {"head_dim", "found 6.0"});
  rejects_text(even_folder(R"("mgate": 1, )"), {"mgate", "true or false", "found 1"});
  rejects_text(even_folder(R"("rope_base": null, )"), {"rope_base", "found null"});
  rejects_text(even_folder(R"("rope_base": [1], )"), {"rope_base", "found [1]"});
  rejects_text(even_folder(R"("profile": {"layer_windows": [8, 0, 8]}, )"), {"profile.layer_windows", "found [8,0,8]"});
  rejects_text(even_folder(R"("profile": {"layer_windows": [8, 8]}, )"), {"model/config.json", "n_layer = 3"});
  rejects_text(even_folder(R"("head_dim": 18446744073709551615, )"), {"head_dim", "found 18446744073709551615"});
  rejects_text(folder("", "5"), {"bad model in model/config.json", "a divisor of dim = 12"});
  rejects_text("[]", {"model/config.json", "a JSON object", "found []"});
  rejects_text("{\"dim\": ", {"model/config.json"});
  rejects_text("{}", {"missing key in model/config.json", "'model_type'"});
  rejects_text(R"({"model_type": "mamba"})", {"model_type", "one of dcformer, ", "found \"mamba\""});
  rejects_text(R"({"model_type": "dcformer"})", {"missing key", "'vocab_size'"});
}

BOOST_AUTO_TEST_CASE(attention_cases) {
  const std::string text = R"({"model_type": "attention", "n_head": 8, "head_dim": 8, "window_size": 7,
      "profile": {"kind": "attention", "batch": 2, "q_len": 19, "kv_len": 20, "q_offset": 1, "window_keys": "W+1",
                  "static_proj": true, "num_groups": 2, "rank": 2}})";
  BOOST_TEST(is_attention_case(text, "config.json"));
  BOOST_TEST(!is_attention_case(even_folder(""), "config.json"));
  const AttentionCase a = read_attention_case(text, "config.json");
  BOOST_TEST((a.batch == 2 && a.q_len == 19 && a.kv_len == 20 && a.q_offset == 1));
  BOOST_TEST((a.config.dim == 64 && a.config.profile.num_groups == 2 && a.config.profile.static_proj));
  BOOST_TEST(a.config.keys_of_layer(0, false) == 8);
  rejects_text(text, {"model_type in model/config.json", "inputs of one attention"});
  rejects(
      [] {
        read_attention_case(R"({"model_type": "attention", "n_head": 2, "head_dim": 2,
      "profile": {"batch": 0}})",
                            "a.json");
      },
      ErrorKind::input, {"profile.batch in a.json", "at least 1", "found 0"});
  rejects([] { read_attention_case(R"({"model_type": "attention", "n_head": 2, "head_dim": 2})", "a.json"); },
          ErrorKind::input, {"profile in a.json", "an object", "null"});
}

BOOST_AUTO_TEST_CASE(golden_folders) {
  const std::filesystem::path golden = std::filesystem::path(test::source_dir()) / "tests/golden";
  int models = 0, attentions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden)) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    const std::string file = (entry.path() / "config.json").string(), text = io::read_text_file(file, 1 << 20);
    if (is_attention_case(text, file)) {
      BOOST_TEST(read_attention_case(text, file).batch == 2, file);
      ++attentions;
    } else {
      const DcformerConfig c = read_config(text, file);
      BOOST_TEST((read_config(write_config(c), file) == c), file);
      BOOST_TEST((c.profile.rope_table == RopeTable::exact), file);
      ++models;
    }
  }
  BOOST_TEST(models == 4);
  BOOST_TEST(attentions == 5);
}

BOOST_AUTO_TEST_SUITE_END()
