#include "braid/models/families/dcformer/cost.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "braid/models/cost/trace.h"
#include "braid/models/families/dcformer/family.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/tensor/error.h"
#include "braid/tensor/memory.h"

using namespace braid;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(counting)

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

struct CountRow {
  const char* preset;
  Keys keys;
  int64_t per_layer, dynamic, non_embedding, embedding, total;
};

// The 2.8B configuration as committed in the authors' JAX code: heads of 128 without QK-norm.
const Keys jax_2b8 = {{"head_dim", "128"}, {"use_qk_norm", "false"}, {"vocab_size", "50256"}};

// Published models of other families, which the same decoder computes.
const Keys llama_3_8b = {
    {"n_layer", "32"},       {"dim", "4096"}, {"n_head", "32"}, {"n_kv_head", "8"}, {"intermediate_size", "14336"},
    {"vocab_size", "128256"}};
const Keys llama_3_2_1b = {{"n_layer", "16"},
                           {"dim", "2048"},
                           {"n_head", "32"},
                           {"n_kv_head", "8"},
                           {"intermediate_size", "8192"},
                           {"vocab_size", "128256"},
                           {"tie_word_embeddings", "true"}};
const Keys smollm2_135m = {{"n_layer", "30"},
                           {"dim", "576"},
                           {"n_head", "9"},
                           {"n_kv_head", "3"},
                           {"intermediate_size", "1536"},
                           {"vocab_size", "49152"},
                           {"tie_word_embeddings", "true"}};
const Keys pythia_410m = {{"n_layer", "24"}, {"dim", "1024"}, {"n_head", "16"}, {"vocab_size", "50304"}};

const std::vector<CountRow> counts = {
    {"transformer-tiny", llama_3_8b, 218112000, 0, 6979588096, 1050673152, 8030261248},
    {"transformer-tiny", llama_3_2_1b, 60821504, 0, 973146112, 262668288, 1235814400},
    {"transformer-tiny", smollm2_135m, 3540096, 0, 106203456, 28311552, 134515008},
    {"pythia-tiny", pythia_410m, 12596224, 0, 302311424, 103022592, 405334016},
    {"pythia-6.9b", {{"vocab_size", "50432"}}, 201379840, 0, 6444163072, 413138944, 6857302016},
    {"olmo2-1b", {}, 67117056, 0, 1073874944, 411041792, 1484916736},
    {"gemma3-1b", {}, 26842112, 0, 697896064, 301989888, 999885952},
    {"transformer-405m", {}, 12847104, 0, 308331520, 102924288, 411255808},
    {"dcformer-405m", {}, 13191296, 344064, 316592128, 102924288, 419516416},
    {"transformer-2.8b", {}, 79303680, 0, 2537720320, 257310720, 2795031040},
    {"dcformer-2.8b", {}, 81007776, 1703936, 2592251392, 257315840, 2849567232},
    {"dcformer-2.8b", jax_2b8, 96736256, 1703936, 3095562752, 257310720, 3352873472},
    {"dcpythia-6.9b", {}, 204067072, 2686976, 6530154496, 411705344, 6941859840},
    {"pythia-6.9b", {}, 201379840, 0, 6444163072, 411705344, 6855868416},
    {"dcformer-8b", {}, 139190528, 2686976, 6681149440, 1245708288, 7926857728},
};

std::string digits4(double giga) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", giga);
  return text;
}

struct FlopRow {
  const char* preset;
  Keys keys;
  int64_t seq_len;
  const char *plain, *generation, *low_rank, *diagonal, *total, *over_same, *over_global;
};

// These tables count W unmasked keys.
const Keys w_keys = {{"profile.window_keys", "W"}};
const Keys global = {{"window_size", "null"}, {"window_type", "null"}};
const std::vector<FlopRow> flops = {
    {"dcformer-405m", {}, 2048, "0.7816", "0.0165", "0.0078", "0.0019", "0.8079", "+3.36", "-1.50"},
    {"dcformer-405m", global, 2048, "0.8202", "0.0165", "0.0126", "0.0031", "0.8525", "+3.93", "+3.93"},
    {"dcformer-2.8b", w_keys, 2048, "5.5396", "0.1091", "0.0207", "0.0052", "5.6746", "+2.44", "+0.11"},
    {"dcformer-2.8b", global, 2048, "5.6681", "0.1091", "0.0336", "0.0084", "5.8191", "+2.66", "+2.66"},
    {"dcpythia-6.9b", w_keys, 2048, "13.6281", "0.1720", "0.0207", "0.0052", "13.8260", "+1.45", "-0.06"},
    {"dcpythia-6.9b", global, 2048, "13.8337", "0.1720", "0.0336", "0.0084", "14.0477", "+1.55", "+1.55"},
    {"dcformer-8b", {}, 4096, "14.8983", "0.2579", "0.0343", "0.0086", "15.1991", "+2.02", "-4.77"},
};

std::string percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.2f", 100 * (part / whole - 1));
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(parameters_of_the_published_models) {
  for (const CountRow& row : counts) {
    const ParameterCounts c = count_parameters(configure(row.preset, row.keys));
    BOOST_TEST_CONTEXT(row.preset) {
      BOOST_TEST(c.per_layer == row.per_layer);
      BOOST_TEST(c.dynamic == row.dynamic);
      BOOST_TEST(c.non_embedding == row.non_embedding);
      BOOST_TEST(c.embedding == row.embedding);
      BOOST_TEST(c.total == row.total);
      BOOST_TEST(c.per_layer == c.attention + c.qk_norm + c.dynamic + c.static_proj + c.feed_forward + c.norms);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_largest_model_is_described_without_memory) {
  const DcformerConfig c = configure("dcformer-8b", {});
  reset_peak_memory(kCpu);
  const int64_t before = memory_stats(kCpu).peak;
  const auto start = std::chrono::steady_clock::now();
  Dcformer model = shape_only_model(c);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  BOOST_TEST(nn::count(model) == 7926857728);
  BOOST_TEST(memory_stats(kCpu).peak == before);
  BOOST_TEST(memory_by_use(kMeta).current[static_cast<size_t>(MemoryUse::other)] == 0);
  BOOST_TEST(time.count() < 0.25);  // some milliseconds; the bound leaves room for sanitizers and busy machines
  BOOST_CHECK_THROW(nn::parameters(model)[0].value.to_vector<float>(), Error);
}

BOOST_AUTO_TEST_CASE(parts_of_a_layer) {
  const DcformerConfig c = configure("dcformer-405m", {{"profile.static_proj", "true"}});
  const ParameterCounts parts = count_parameters(c);
  BOOST_TEST(parts.attention == 4 * 1024 * 1024);
  BOOST_TEST(parts.qk_norm == 2 * 64);
  BOOST_TEST(parts.dynamic == 20 * 16 * 1024 + 64 * 16 * 16);
  BOOST_TEST(parts.static_proj == 512);
  BOOST_TEST(parts.feed_forward == 3 * 1024 * 2816);
  BOOST_TEST(parts.norms == 2 * 1024);
  BOOST_TEST(parts.final_norm == 1024);
  BOOST_TEST(parts.total == 419516416 + 12288);
}

BOOST_AUTO_TEST_CASE(groups_shrink_the_generator) {
  const DcformerConfig c =
      configure("dcformer-405m",
                {{"profile.num_groups", "4"}, {"profile.branches", "pre_q,post_q"}, {"profile.key_side", "false"}});
  const std::vector<nn::NamedTensor> shapes = shape_only_parameters(c);
  const auto shape = [&](const std::string& name) {
    for (const auto& [n, x] : shapes)
      if (n == "layers.3.attention.dyn_w_proj." + name) return x.shape();
    return Shape{};
  };
  BOOST_TEST((shape("dw1") == Shape{1024, 4, 2, 16}));
  BOOST_TEST((shape("qkw") == Shape{4, 2, 16, 4, 4}));
  BOOST_TEST((shape("dd") == Shape{1024, 4, 8}));
}

BOOST_AUTO_TEST_CASE(shapes_are_those_of_the_model) {
  const Keys small = {{"dim", "32"}, {"n_layer", "2"}, {"n_head", "4"}, {"vocab_size", "11"}, {"block_size", "8"}};
  for (const char* name : {"dcformer-tiny", "transformer-tiny", "dcpythia-tiny", "pythia-tiny"}) {
    for (const Keys& more : {Keys{}, Keys{{"n_kv_head", "2"}, {"tie_word_embeddings", "true"}},
                             Keys{{"profile.static_proj", "true"}, {"profile.num_groups", "2"}},
                             Keys{{"mgate", "true"}, {"mgate_dim", "4"}}, Keys{{"head_dim", "16"}}}) {
      Keys keys = small;
      keys.insert(keys.end(), more.begin(), more.end());
      const bool plain = !preset(name).use_dcmha, gelu = preset(name).ffn == FfnKind::gelu;
      if (!more.empty() && ((plain && more[0].first == "profile.static_proj") || (gelu && more[0].first == "mgate")))
        continue;
      const DcformerConfig c = configure(name, keys);
      Dcformer model(c, RandomKey{});
      const auto parameters = nn::parameters(model);
      const auto shapes = shape_only_parameters(c);
      BOOST_TEST_REQUIRE(parameters.size() == shapes.size(), name);
      for (size_t i = 0; i < shapes.size(); ++i) {
        BOOST_TEST(parameters[i].name == shapes[i].name);
        BOOST_TEST((parameters[i].value.shape() == shapes[i].value.shape()), shapes[i].name);
      }
      BOOST_TEST(nn::count(model) == count_parameters(c).total);
    }
  }
}

BOOST_AUTO_TEST_CASE(visible_keys_are_counted_one_by_one) {
  const DcformerConfig tiny = configure("dcformer-tiny", {});
  const double pair = 4.0 * static_cast<double>(tiny.n_head * tiny.head_dim);
  const auto keys = [&](const Keys& settings, int64_t T) {  // of a query, summed over layers
    return flops_per_token(configure("dcformer-tiny", settings), T).attention / pair;
  };
  for (const int64_t T : {1, 4, 5, 6, 17}) {
    double local = 0;
    for (int64_t i = 0; i < T; ++i) local += static_cast<double>(std::min<int64_t>(i + 1, 5));
    const double all = static_cast<double>(T * (T + 1)) / 2;
    BOOST_TEST(keys({{"n_layer", "2"}, {"window_size", "5"}}, T) == (local + all) / static_cast<double>(T),
               boost::test_tools::tolerance(1e-14));
  }
  BOOST_TEST(keys({{"n_layer", "2"}, {"profile.causal", "false"}}, 17) == 2 * 17);
}

// The products of a trace are those of the weights.
BOOST_AUTO_TEST_CASE(parts_add_up_to_the_trace) {
  for (const char* name : {"dcformer-405m", "dcpythia-6.9b", "transformer-2.8b"}) {
    const DcformerConfig c = configure(name, {});
    BOOST_TEST(flops_per_token(c, 64).logits == 2.0 * static_cast<double>(c.dim * c.vocab_size), name);
    BOOST_TEST(flops_per_token(c, 64).forward() == forward_flops(DcformerSpec(c), 64).total() / 64,
               boost::test_tools::tolerance(1e-14));
  }
}

BOOST_AUTO_TEST_CASE(flops_of_the_published_models) {
  for (const FlopRow& row : flops) {
    const DcformerConfig config = configure(row.preset, row.keys);
    const Flops f = flops_per_token(config, row.seq_len);
    const double all_global = flops_per_token(configure(config, global), row.seq_len).plain();
    BOOST_TEST_CONTEXT(row.preset) {
      BOOST_TEST(digits4(f.plain() / 1e9) == row.plain);
      BOOST_TEST(digits4(f.generation / 1e9) == row.generation);
      BOOST_TEST(digits4(f.low_rank / 1e9) == row.low_rank);
      BOOST_TEST(digits4(f.diagonal / 1e9) == row.diagonal);
      BOOST_TEST(digits4(f.forward() / 1e9) == row.total);
      BOOST_TEST(percent(f.forward(), f.plain()) == row.over_same);
      BOOST_TEST(percent(f.forward(), all_global) == row.over_global);
      BOOST_TEST(f.training() == 3 * f.forward());
    }
  }
}

BOOST_AUTO_TEST_CASE(flops_of_one_layer) {
  struct Row {
    const char* preset;
    const char *projections, *ffn, *generation;  // M
    double attention, dynamic, fixed;            // per unmasked pair
  };
  for (const Row& row : {Row{"dcformer-405m", "8.3886", "17.3015", "0.6881", 4096, 640, 1024},
                         Row{"dcformer-2.8b", "52.4288", "106.1683", "3.4079", 10240, 1280, 4096},
                         Row{"dcpythia-6.9b", "134.2177", "268.4355", "5.3740", 16384, 1280, 4096}}) {
    DcformerConfig c = configure(row.preset, {{"profile.static_proj", "true"}, {"window_size", "null"}});
    const double L = static_cast<double>(c.n_layer), pairs = L * 1024.5;
    const Flops f = flops_per_token(c, 2048);
    BOOST_TEST(digits4(f.projections / L / 1e6) == row.projections);
    BOOST_TEST(digits4(f.feed_forward / L / 1e6) == row.ffn);
    BOOST_TEST(digits4(f.generation / L / 1e6) == row.generation);
    BOOST_TEST(f.attention / pairs == row.attention);
    BOOST_TEST((f.low_rank + f.diagonal) / pairs == row.dynamic);
    BOOST_TEST(f.static_proj / pairs == row.fixed);
    // One side or one stage alone: half of it.
    c.profile.key_side = false;
    BOOST_TEST(flops_per_token(c, 2048).low_rank == f.low_rank / 2);
    c.profile.pre_compose = false;
    BOOST_TEST(flops_per_token(c, 2048).diagonal == f.diagonal / 4);
    BOOST_TEST(flops_per_token(c, 2048).static_proj == f.static_proj / 2);
  }
}

// q, o: N d columns; k, v: Nkv d.
BOOST_AUTO_TEST_CASE(flops_of_grouped_heads) {
  const Flops f = flops_per_token(configure("transformer-tiny", llama_3_2_1b), 512);
  BOOST_TEST(f.projections == 16.0 * 2 * 2048 * (2048 + 2 * 512 + 2048));
  BOOST_TEST(f.attention == 16 * 4 * 2048 * (513 / 2.0));
  BOOST_TEST(f.logits == 2.0 * 2048 * 128256);
}

BOOST_AUTO_TEST_CASE(static_flops_with_windows) {
  for (const auto& [name, giga] :
       {std::pair{"dcformer-405m", "0.0155"}, {"dcformer-2.8b", "0.0829"}, {"dcpythia-6.9b", "0.0829"}}) {
    const DcformerConfig c = configure(name, {{"profile.static_proj", "true"}, {"profile.window_keys", "W"}});
    BOOST_TEST(digits4(flops_per_token(c, 2048).static_proj / 1e9) == giga);
  }
}

BOOST_AUTO_TEST_SUITE_END()
