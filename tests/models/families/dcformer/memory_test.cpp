// Memory of the published models, over ranks, and of caches.
#include <boost/test/unit_test.hpp>

#include "braid/models/cost/trace.h"
#include "braid/models/families/dcformer/cost.h"
#include "braid/models/families/dcformer/family.h"
#include "braid/models/families/dcformer/model.h"

using namespace braid;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(memory_estimates)

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

}  // namespace

BOOST_AUTO_TEST_CASE(memory_of_a_run) {
  const DcformerSpec spec(configure("dcformer-405m", {}));
  TrainingSetup setup{.samples = {4}, .seq_len = 2048};
  const TrainingMemory m = trace_step(spec, setup).memory;
  const double parameters = 419516416, tables = 2048 * 64 * 4;  // of the rotation
  BOOST_TEST(m.weights == 4 * parameters + tables);
  BOOST_TEST(m.max_gradients == 4 * parameters);
  BOOST_TEST(m.optimizer == 8 * parameters);
  setup.recompute = true;
  BOOST_TEST(trace_step(spec, setup).memory.max_activations < m.max_activations / 4);
  setup.recompute = false;
  setup.compute = DType::bf16;  // masters and copies, gradients of the copies, moments as in f32
  const TrainingMemory mixed = trace_step(spec, setup).memory;
  const double copies = 2 * (parameters - 102924288 / 2);  // of all but the table of the embedding, which stays f32
  BOOST_TEST(mixed.weights == 4 * parameters + copies + tables);
  BOOST_TEST(mixed.max_gradients == 4 * parameters - copies);
  BOOST_TEST(mixed.optimizer == m.optimizer);
  BOOST_TEST(mixed.max_activations < 0.55 * m.max_activations);
  setup.compute = DType::f64;
  BOOST_TEST(trace_step(spec, setup).memory.optimizer == 2 * m.optimizer);
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
