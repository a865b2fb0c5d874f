// Estimates of memory against what training steps and caches take.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd.h"
#include "braid/models/families/dcformer/cost.h"
#include "braid/models/families/dcformer/family.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/error.h"
#include "braid/tensor/memory.h"
#include "braid/tensor/parallel.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(memory_estimates)

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

struct Variant {
  const char* preset;
  Keys keys;
};
const Variant variants[] = {
    {"dcformer-tiny", {}},
    {"transformer-tiny", {}},
    {"dcpythia-tiny", {}},
    {"pythia-tiny", {}},
    {"transformer-tiny", {{"n_kv_head", "2"}, {"tie_word_embeddings", "true"}, {"use_linear_bias", "true"}}},
    {"dcformer-tiny", {{"n_kv_head", "1"}, {"hidden_act", "quick_gelu"}}},
};

int64_t bytes_in_use() { return memory_stats(kCpu).current; }

}  // namespace

// The estimate against what a step really keeps between forward and backward, f32 and in mixed precision.
BOOST_AUTO_TEST_CASE(activations_are_what_a_step_keeps) {
  for (const Variant& v : variants) {
    Keys keys = {{"dim", "64"}, {"n_layer", "3"}, {"n_head", "8"}, {"vocab_size", "50"}};
    keys.insert(keys.end(), v.keys.begin(), v.keys.end());
    for (const int64_t T : {48, 160}) {
      for (const bool recompute : {false, true}) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
          const DcformerConfig c = configure(v.preset, keys);
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
          BOOST_TEST_CONTEXT(v.preset << " " << str(dtype) << " T=" << T << " recompute=" << recompute << ": "
                                      << measured << " of " << block) {
            BOOST_TEST(measured / block > 0.985);
            BOOST_TEST(measured / block < 1.015);
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
  set_threads(1);  // a thread's workspace is not in the estimate, and longer vectors need more
  for (const Variant& v : variants) {
    if (v.preset == std::string("pythia-tiny")) continue;  // dcpythia-tiny has more
    Keys keys = {{"n_layer", "3"}};
    keys.insert(keys.end(), v.keys.begin(), v.keys.end());
    for (const int64_t T : test::less_under_tsan<std::vector<int64_t>>({64, 320}, {64})) {
      for (const bool recompute : {false, true}) {
        if (recompute && !v.keys.empty()) continue;  // nothing of these is recomputed in another way
        for (const DType dtype : {DType::f32, DType::bf16}) {
          const DcformerConfig c = configure(v.preset, keys);
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
          BOOST_TEST_CONTEXT(v.preset << " " << str(dtype) << " T=" << T << " recompute=" << recompute << ": "
                                      << ratio) {
            BOOST_TEST(ratio > (dtype == DType::f32 ? 0.95 : 0.92));
            BOOST_TEST(ratio < (dtype == DType::f32 ? 1.06 : 1.1));
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
  BOOST_TEST(training_memory(c, setup).activations < 2 * m.activations / 4);  // as wide
  TrainingSetup all{.batch = 4, .seq_len = 2048, .attention_workspace = 1};   // on a GPU, which keeps cheap results too
  const double kept = training_memory(c, all).activations;
  BOOST_TEST(kept > m.activations);
  all.bytes_per_element = 8, all.recompute = true;
  BOOST_TEST(training_memory(c, all).activations < kept / 4);
  setup.optimizer_moments = 0;
  BOOST_TEST(training_memory(c, setup).optimizer == 0);
  BOOST_CHECK_EXCEPTION(training_memory(c, {.batch = 0, .seq_len = 1}), Error,
                        [](const Error& e) { return e.kind() == ErrorKind::setting; });
}

// Three key/value heads of six query heads on two ranks: each rank reads two, and attends with one for each of its
// three.
BOOST_AUTO_TEST_CASE(key_value_heads_that_ranks_share_unevenly_are_counted_as_they_are_repeated) {
  const auto on_two = [](const char* kv_heads) {
    const DcformerSpec spec(configure("transformer-tiny", {{"dim", "48"}, {"n_head", "6"}, {"n_kv_head", kv_heads}}));
    const TrainingSetup one{.batch = 2, .seq_len = 64}, two{.batch = 2, .seq_len = 64, .mesh = {1, 1, 2}};
    return (spec.training_memory(two).activations - spec.training_memory(one).activations / 2) /
           static_cast<double>(spec.size().layers) / (4 * 2 * 64);  // elements of a position of a layer
  };
  BOOST_TEST(on_two("2") == 2 * 48);                    // the inputs of column-parallel layers
  BOOST_TEST(on_two("3") == 2 * 48 + (2 + 3) * 2 * 8);  // k and v of 2 heads, and of 3 repeated ones
}

BOOST_AUTO_TEST_CASE(cache_holds_factors_and_rings) {
  const DcformerConfig c = configure("dcformer-405m", {});
  const double elements = 2 * 16 * 64 + 10 * 16;  // keys, values, factors of the key side
  BOOST_TEST(cache_bytes(c, 1, 1).per_token == 24 * elements * 4);
  BOOST_TEST(cache_bytes(c, 3, 2048, 2).full == 3 * 12 * (2048 + 256) * elements * 2);
  BOOST_TEST(cache_bytes(c, 1, 100).full == 24 * 100 * elements * 4);
  const DcformerConfig plain = configure("transformer-405m", {});
  BOOST_TEST(cache_bytes(plain, 1, 2048).full == 24.0 * 2048 * 2 * 1024 * 4);
  const Keys llama = {{"n_layer", "32"}, {"dim", "4096"}, {"n_head", "32"}, {"n_kv_head", "8"}};
  BOOST_TEST(cache_bytes(configure("transformer-tiny", llama), 1, 1, 2).per_token == 32 * 2 * 8 * 128 * 2);
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
