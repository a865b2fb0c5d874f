// The golden cases through the C++ interface: every value and every gradient, models and attentions, in f64 and f32, on
// every path of the attention.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>

#include "braid/autograd.h"
#include "braid/models/folders/pretrained.h"
#include "braid/tensor/io/reader.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/golden.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(golden)

namespace fs = std::filesystem;

namespace {

const char* const kModels[] = {"model_dcformer_lg", "model_dcformer_train", "model_dcpythia", "model_transformer"};

struct Precision {
  DType dtype;
  double tolerance;
};
const Precision kPrecisions[] = {{DType::f64, 1e-10}, {DType::f32, 2e-5}};

int64_t counted_targets(const Tensor& targets) {
  int64_t counted = 0;
  for (int64_t t : targets.to_vector<int64_t>()) counted += t >= 0;
  return counted;
}

void check_decoding(const models::Dcformer& model, const io::SafetensorsFile& want, double tolerance, int& seen) {
  if (!want.find("decode.prompt_ids")) return;
  NoGrad off;
  Tensor ids = want.load("decode.prompt_ids");
  const int64_t steps = want.find("decode.tokens")->shape[1];
  models::KvCache cache = model.make_cache(ids.dim(1) + steps);
  std::vector<Tensor> tokens, logits;
  for (int64_t s = 0; s < steps; ++s) {
    Tensor h = model.hidden(ids, &cache);
    logits.push_back(model.logits(contiguous(h.sliced(1, h.dim(1) - 1, h.dim(1)))));
    tokens.push_back(ids = argmax(logits.back()));
  }
  compare_golden(want, "decode.tokens", concat(tokens, 1), 0, seen);
  compare_golden(want, "decode.logits", concat(logits, 1), tolerance, seen);
}

}  // namespace

BOOST_AUTO_TEST_CASE(models_values_and_gradients) {
  for (const char* name : kModels) {
    io::SafetensorsFile want(kGolden + name + "/golden.safetensors");
    for (const Precision& p : kPrecisions) {
      BOOST_TEST_CONTEXT(name << " " << str(p.dtype)) {
        models::LoadedModel loaded = models::load_model(kGolden + name, {.dtype = p.dtype});
        nn::require_grad(*loaded.model);
        int seen = 0;
        const nn::ActivationObserver observer{
            [&](const std::string& what, const Tensor& x) { compare_golden(want, what, x, p.tolerance, seen); }};
        Tensor logits = dcformer(loaded).logits(dcformer(loaded).hidden(want.load("input_ids"), nullptr, &observer));
        Tensor loss = cross_entropy(logits, want.load("targets"));
        compare_golden(want, "logits", logits, p.tolerance, seen);
        compare_golden(want, "loss", loss.detach().reshaped({1}), p.tolerance, seen);
        backward(loss);
        for (const nn::NamedTensor& x : nn::parameters(*loaded.model)) {
          BOOST_REQUIRE(bool(grad(x.value)));
          compare_golden(want, "grad." + x.name, grad(x.value), p.tolerance, seen);
        }
        check_decoding(dcformer(loaded), want, p.tolerance, seen);
        BOOST_TEST(seen == golden_results(want));  // nothing of the file was left out
      }
    }
  }
}

// The loss without all logits, and blocks recomputed in backward.
BOOST_AUTO_TEST_CASE(training_gives_the_same_loss_and_gradients) {
  for (const char* name : kModels) {
    io::SafetensorsFile want(kGolden + name + "/golden.safetensors");
    for (bool checkpointed : {false, true}) {
      models::LoadedModel loaded = models::load_model(kGolden + name, {.dtype = DType::f64});
      loaded.model->set_recompute(checkpointed);
      nn::require_grad(*loaded.model);
      Tensor targets = want.load("targets");
      Tensor loss = scale(dcformer(loaded).loss_sum(want.load("input_ids"), targets),
                          1 / static_cast<double>(counted_targets(targets)));
      backward(loss);
      BOOST_TEST_CONTEXT(name << (checkpointed ? ", blocks recomputed" : "")) {
        BOOST_TEST(is_close(loss.detach().reshaped({1}), want.load("loss"), 1e-10));
        for (const nn::NamedTensor& p : nn::parameters(*loaded.model)) {
          BOOST_TEST_CONTEXT(p.name) {
            BOOST_REQUIRE(bool(grad(p.value)));
            BOOST_TEST(is_close(grad(p.value), want.load("grad." + p.name), 1e-10));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(attentions_values_and_gradients_on_every_path) {
  for (const char* name : kGoldenAttentions) {
    for (const Precision& p : kPrecisions) {
      for (AttentionImpl impl : {AttentionImpl::automatic, AttentionImpl::chunked, AttentionImpl::reference}) {
        check_golden_attention(name, p.dtype, p.tolerance, impl);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(no_case_is_left_out) {
  std::set<std::string> there, tested(std::begin(kModels), std::end(kModels));
  tested.insert(std::begin(kGoldenAttentions), std::end(kGoldenAttentions));
  for (const auto& entry : fs::directory_iterator(kGolden))
    if (fs::exists(entry.path() / "config.json")) there.insert(entry.path().filename().string());
  BOOST_TEST(there == tested, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
