// The golden models through the C++ interface: loss and every gradient.
#include <boost/test/unit_test.hpp>

#include "autograd/autograd.h"
#include "models/checkpoint.h"
#include "tensor/io/safetensors.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(golden)

BOOST_AUTO_TEST_CASE(loss_and_gradients) {
  for (const char* name : {"model_dcformer_lg", "model_dcformer_train", "model_dcpythia", "model_transformer"}) {
    std::string folder = std::string(BRAID_SOURCE_DIR "/tests/golden/") + name;
    io::SafetensorsFile want(folder + "/golden.safetensors");
    for (bool checkpointed : {false, true}) {
      models::LoadedModel loaded = models::load_model(folder);
      loaded.model.to(DType::f64);
      loaded.model.checkpoint_activations(checkpointed);
      nn::require_grad(loaded.model);
      Tensor targets = want.load("targets");
      int64_t counted = 0;
      for (int64_t t : targets.to_vector<int64_t>()) counted += t >= 0;
      Tensor loss = scale(loaded.model.loss_sum(want.load("input_ids"), targets), 1 / static_cast<double>(counted));
      backward(loss);
      BOOST_TEST_CONTEXT(name << (checkpointed ? ", blocks recomputed" : "")) {
        BOOST_TEST(is_close(loss.alias().reshaped({1}), want.load("loss"), 1e-10));
        for (const nn::NamedTensor& p : nn::parameters(loaded.model)) {
          BOOST_TEST_CONTEXT(p.name) {
            BOOST_REQUIRE(bool(grad(p.value)));
            BOOST_TEST(is_close(grad(p.value), want.load("grad." + p.name), 1e-10));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(prefill_in_pieces_and_decoding_give_the_full_pass) {
  // Profile with equal windows in both, lengths below, at and beyond W = 8 and 2 W.
  models::ModelConfig config = small_config();
  config.vocab_size = 40;
  config.block_size = 64;
  config.initializer_std = 0.3;
  models::Dcformer model(config, {5, 0});
  for (nn::NamedTensor& p : nn::parameters(model)) {  // dynamic weights that matter
    if (p.name.find("qkw") != std::string::npos || p.name.find(".dd") != std::string::npos)
      backend(kCpu).normal(0, 0.3, {9, 9}, p.value);
  }
  model.to(DType::f64);
  NoGrad off;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 2 * 40; ++i) ids.push_back((i * 7 + i * i) % 40);
  Tensor all = from_vector(ids, {2, 40});
  Tensor want = model.logits(model.hidden(all));
  for (std::vector<int64_t> pieces :
       {std::vector<int64_t>{40}, {1, 39}, {7, 1, 1, 8, 9, 1, 13}, {20, 1, 1, 1, 1, 1, 1, 1, 1, 12}}) {
    models::KvCache cache = model.make_cache(40);
    std::vector<Tensor> got;
    int64_t at = 0;
    for (int64_t n : pieces) {
      got.push_back(model.logits(model.hidden(all.sliced(1, at, at + n).clone(), &cache)));
      at += n;
    }
    BOOST_TEST(at == 40);
    BOOST_TEST(is_close(concat(got, 1), want, 1e-11));
  }
}

BOOST_AUTO_TEST_SUITE_END()
