#include "braid/models/dcformer/cost.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "braid/autograd/autograd.h"
#include "braid/models/dcformer/model.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/error.h"
#include "braid/tensor/memory.h"
#include "braid/tensor/parallel.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using namespace braid::models;

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

struct CountRow {
  const char* preset;
  Keys keys;
  int64_t per_layer, dynamic, non_embedding, embedding, total;
};

// The 2.8B configuration as committed in the authors' JAX code: heads of 128 without QK-norm.
const Keys jax_2b8 = {{"head_dim", "128"}, {"use_qk_norm", "false"}, {"vocab_size", "50256"}};

const std::vector<CountRow> counts = {
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

int64_t bytes_in_use() { return memory_stats(kCpu).current; }

}  // namespace

BOOST_AUTO_TEST_SUITE(counting)

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
    for (const Keys& more : {Keys{}, Keys{{"profile.static_proj", "true"}, {"profile.num_groups", "2"}},
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
  DcformerConfig c = configure("dcformer-tiny", {{"window_size", "5"}});
  for (int64_t T : {1, 4, 5, 6, 17}) {
    double local = 0;
    for (int64_t i = 0; i < T; ++i) local += static_cast<double>(std::min<int64_t>(i + 1, 5));
    BOOST_TEST(mean_unmasked_keys(c, 0, T) == local / static_cast<double>(T), boost::test_tools::tolerance(1e-14));
    BOOST_TEST(mean_unmasked_keys(c, 1, T) == static_cast<double>(T + 1) / 2);
  }
  c.profile.causal = false;
  BOOST_TEST(mean_unmasked_keys(c, 0, 17) == 17);
  BOOST_CHECK_EXCEPTION(mean_unmasked_keys(c, 0, 0), Error, [](const Error& e) {
    return std::string(e.what()).find("expected at least 1, found 0") != std::string::npos;
  });
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

BOOST_AUTO_TEST_CASE(static_flops_with_windows) {
  for (const auto& [name, giga] :
       {std::pair{"dcformer-405m", "0.0155"}, {"dcformer-2.8b", "0.0829"}, {"dcpythia-6.9b", "0.0829"}}) {
    const DcformerConfig c = configure(name, {{"profile.static_proj", "true"}, {"profile.window_keys", "W"}});
    BOOST_TEST(digits4(flops_per_token(c, 2048).static_proj / 1e9) == giga);
  }
}

// The estimate against what a step really keeps between forward and backward, f32 and in mixed precision.
BOOST_AUTO_TEST_CASE(activations_are_what_a_step_keeps) {
  const Keys small = {{"dim", "64"}, {"n_layer", "3"}, {"n_head", "8"}, {"vocab_size", "50"}};
  for (const char* name : {"dcformer-tiny", "transformer-tiny", "dcpythia-tiny", "pythia-tiny"}) {
    for (const int64_t T : {48, 160}) {
      for (const bool recompute : {false, true}) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
          const DcformerConfig c = configure(name, small);
          Dcformer model(c, RandomKey{});
          nn::MasterWeights masters(model, dtype, [&](const std::string& p) { return !model.keeps_f32(p); });
          masters.attach_cast();
          model.set_recompute(recompute);
          Tensor ids = zeros({2, T}, DType::i64);
          const int64_t before = bytes_in_use();
          Tensor loss = model.loss_sum(ids, ids);
          // The loss also forms the gradient of its own weight in advance: counted as a gradient, not as an activation.
          const double measured = static_cast<double>(bytes_in_use() - before - c.vocab_size * c.dim * 4);
          const int64_t bytes = size_of(dtype);
          const TrainingMemory m =
              training_memory(c, {.batch = 2, .seq_len = T, .bytes_per_element = bytes, .recompute = recompute});
          // With recomputation the table also has the one block that backward rebuilds.
          const double ends = static_cast<double>(bytes * (3 + 1) + 4);
          const double block = recompute ? 2 * static_cast<double>(T) * 64 * ends : m.activations;
          BOOST_TEST_CONTEXT(name << " " << str(dtype) << " T=" << T << " recompute=" << recompute << ": " << measured
                                  << " of " << block) {
            BOOST_TEST(measured / block > 0.97);
            BOOST_TEST(measured / block < 1.03);
            BOOST_TEST(m.activations >= block);
            BOOST_TEST(static_cast<bool>(loss));
          }
        }
      }
    }
  }
}

// The second micro-batch is the worst moment: gradients exist already while activations are kept.
BOOST_AUTO_TEST_CASE(the_peak_of_a_step_is_the_estimate) {
  const int threads_before = threads();
  set_threads(2);  // their workspace is not in the estimate; it shows in the smallest cases
  for (const char* name : {"dcformer-tiny", "transformer-tiny", "dcpythia-tiny"}) {
    for (const int64_t T : test::less_under_tsan<std::vector<int64_t>>({64, 320}, {64})) {
      for (const bool recompute : {false, true}) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
          const DcformerConfig c = configure(name, {{"n_layer", "3"}});
          Dcformer model(c, RandomKey{});
          nn::MasterWeights masters(model, dtype, [&](const std::string& p) { return !model.keeps_f32(p); });
          model.set_recompute(recompute);
          Tensor ids = zeros({2, T}, DType::i64);
          const int64_t before = bytes_in_use();
          masters.attach_cast();
          backward(model.loss_sum(ids, ids));
          reset_peak_memory(kCpu);
          masters.attach_cast();
          backward(model.loss_sum(ids, ids));
          const double peak = static_cast<double>(memory_stats(kCpu).peak - before);
          const TrainingMemory m = training_memory(
              c, {.batch = 2, .seq_len = T, .bytes_per_element = size_of(dtype), .recompute = recompute});
          const double ratio = peak / (m.gradients + m.activations + m.working);
          BOOST_TEST_CONTEXT(name << " " << str(dtype) << " T=" << T << " recompute=" << recompute << ": " << ratio) {
            BOOST_TEST(ratio > (dtype == DType::f32 ? 0.9 : 0.85));
            BOOST_TEST(ratio < (dtype == DType::f32 ? 1.1 : 1.15));
          }
        }
      }
    }
  }
  set_threads(threads_before);
}

// A step of the trainer, measured by use: weights, gradients and optimizer are what the estimate says; of the
// activations some are free again at the worst moment, with recomputation most of a block.
BOOST_AUTO_TEST_CASE(a_step_is_measured_by_use) {
  double activations[2][2];
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool recompute : {false, true}) {
      const DcformerConfig c = configure("dcformer-tiny", {{"n_layer", "4"}});
      const MemoryByUse start = memory_by_use(kCpu);
      auto model = [&] {
        MemoryScope scope(MemoryUse::weights);
        return Dcformer(c, RandomKey{});
      }();
      model.set_recompute(recompute);
      Trainer trainer(model, {}, 1.0, {}, dtype);
      Batch b = text_batch(zeros({2, 320}, DType::i64), zeros({2, 320}, DType::i64));
      reset_peak_memory(kCpu);
      trainer.step({b, b}, 1e-3);
      const MemoryByUse got = memory_by_use(kCpu);
      auto taken = [&](MemoryUse use) {
        return static_cast<double>(got.at_peak_of(use) - start.current[static_cast<size_t>(use)]);
      };
      const TrainingMemory m =
          training_memory(c, {.batch = 2, .seq_len = 320, .bytes_per_element = size_of(dtype), .recompute = recompute});
      BOOST_TEST_CONTEXT(str(dtype) << " recompute=" << recompute) {
        BOOST_TEST(std::fabs(taken(MemoryUse::weights) / m.weights - 1) < 0.01);  // the rotary tables are in it
        BOOST_TEST(taken(MemoryUse::optimizer) == m.optimizer);
        BOOST_TEST(std::fabs(taken(MemoryUse::gradients) / m.gradients - 1) < 0.05);
        BOOST_TEST(taken(MemoryUse::activations) < m.activations);
        BOOST_TEST(taken(MemoryUse::activations) > (recompute ? 0.4 : 0.8) * m.activations);
        BOOST_TEST(taken(MemoryUse::workspace) > 0);
      }
      activations[dtype == DType::bf16][recompute] = taken(MemoryUse::activations);
    }
  }
  for (int mixed : {0, 1}) BOOST_TEST(activations[mixed][1] < 0.4 * activations[mixed][0]);
  for (int recompute : {0, 1}) BOOST_TEST(activations[1][recompute] < 0.6 * activations[0][recompute]);
}

BOOST_AUTO_TEST_CASE(memory_of_a_run) {
  const DcformerConfig c = configure("dcformer-405m", {});
  TrainingSetup setup{.batch = 4, .seq_len = 2048};
  const TrainingMemory m = training_memory(c, setup);
  const double parameters = 419516416;
  BOOST_TEST(m.weights == 4 * parameters);
  BOOST_TEST(m.gradients == 4 * parameters);
  BOOST_TEST(m.optimizer == 8 * parameters);
  BOOST_TEST(m.total() == m.weights + m.gradients + m.optimizer + m.activations + m.working);
  const auto working = [&](int64_t workspace) {  // with this workspace of scores on the device
    TrainingSetup gpu = setup;
    gpu.attention_workspace = workspace;
    return training_memory(c, gpu).working;
  };
  const double scores = 3.0 * 4 * 2048 * 2048 * 16 * 4;
  BOOST_TEST(working(int64_t{2} << 30) - working(int64_t{1} << 30) == 1 << 30);
  BOOST_TEST(working(int64_t{1} << 40) - working(int64_t{1} << 30) == scores - (1 << 30));
  setup.bytes_per_element = 2;  // masters and copies; gradients and moments as in f32
  const TrainingMemory mixed = training_memory(c, setup);
  BOOST_TEST(mixed.weights == 4 * parameters + 2 * (parameters - 102924288 / 2));
  BOOST_TEST(mixed.gradients == m.gradients);
  BOOST_TEST(mixed.optimizer == m.optimizer);
  BOOST_TEST(mixed.activations < 0.52 * m.activations);
  setup.bytes_per_element = 8;
  BOOST_TEST(training_memory(c, setup).total() == 2 * m.total());
  setup.recompute = true;
  BOOST_TEST(training_memory(c, setup).activations < m.activations / 4);
  setup.optimizer_moments = 0;
  BOOST_TEST(training_memory(c, setup).optimizer == 0);
  BOOST_CHECK_EXCEPTION(training_memory(c, {.batch = 0, .seq_len = 1}), Error,
                        [](const Error& e) { return e.kind() == ErrorKind::setting; });
}

BOOST_AUTO_TEST_CASE(cache_holds_factors_and_rings) {
  const DcformerConfig c = configure("dcformer-405m", {});
  const double elements = 2 * 16 * 64 + 10 * 16;  // keys, values, factors of the key side
  BOOST_TEST(cache_bytes(c, 1, 1).per_token == 24 * elements * 4);
  BOOST_TEST(cache_bytes(c, 3, 2048, 2).full == 3 * 12 * (2048 + 256) * elements * 2);
  BOOST_TEST(cache_bytes(c, 1, 100).full == 24 * 100 * elements * 4);
  const DcformerConfig plain = configure("transformer-405m", {});
  BOOST_TEST(cache_bytes(plain, 1, 2048).full == 24.0 * 2048 * 2 * 1024 * 4);
  const DcformerConfig query = configure("dcformer-405m", {{"profile.key_side", "false"}});
  BOOST_TEST(cache_bytes(query, 1, 1).per_token == 24.0 * 2 * 1024 * 4);
}

BOOST_AUTO_TEST_CASE(cache_of_a_real_model) {
  const DcformerConfig c = configure("dcformer-tiny", {{"dim", "64"}, {"window_size", "8"}});
  Dcformer model(c, RandomKey{});
  KvCache cache = model.make_cache(32);
  NoGrad off;
  model.hidden(zeros({2, 8}, DType::i64), &cache);
  // Exactly the window is full; buffers may hold up to twice as much.
  const double kept = cache_bytes(c, 2, 8).full;
  BOOST_TEST(static_cast<double>(cache.bytes()) >= kept);
  BOOST_TEST(static_cast<double>(cache.bytes()) <= 2 * kept);
}

BOOST_AUTO_TEST_SUITE_END()
