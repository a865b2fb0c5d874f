#include "braid/models/folders/init_from.h"

#include <boost/test/unit_test.hpp>
#include <map>

#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(init_from)

namespace {

struct Origin {
  TempFolder folder;
  models::Dcformer model;
  std::unique_ptr<const models::ModelSpec> spec;
  explicit Origin(const models::DcformerConfig& config, DType dtype = DType::f32) : model(config, {1, 0}) {
    model.to(dtype);
    models::save_model(model, nullptr, folder.path);
    spec = model.spec();
  }
  std::unique_ptr<models::Model> go_on(const models::SettingTexts& settings, DType dtype) const {
    return models::init_from(folder.path, *spec->with(settings), {5, 0}, dtype).model;
  }
};

double loss(const models::Model& model) {
  std::vector<int64_t> ids, targets;
  for (int64_t i = 0; i < 64; ++i) ids.push_back((i * i * 31 + 7 * i) % 250), targets.push_back((i * 17) % 250);
  NoGrad off;
  return model.loss_sum(models::text_batch(from_vector(ids, {2, 32}), from_vector(targets, {2, 32}))).item();
}

bool is_compose(const std::string& name) { return name.find(".dyn_w_proj.") != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_transformer_goes_on_as_a_dcformer_with_its_own_loss) {
  for (const char* preset : {"transformer-tiny", "pythia-tiny", "llama-tiny", "gpt-neox-tiny", "mistral-tiny",
                             "qwen2-tiny", "qwen3-tiny", "olmo2-tiny", "gemma2-tiny", "gemma3-tiny"}) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Origin origin(small_config(preset), dtype);
      const double before = loss(origin.model);
      for (const char* start : {"identity", "published"}) {
        const auto model = origin.go_on({{"use_dcmha", "true"}, {"compose_init", start}}, dtype);
        std::map<std::string, Tensor> own;
        for (const nn::NamedTensor& p : nn::parameters(origin.model)) own[p.name] = p.value;
        for (const nn::NamedTensor& p : nn::parameters(*model)) {
          BOOST_TEST(own.contains(p.name) == !is_compose(p.name), p.name);
          if (own.contains(p.name)) BOOST_TEST(is_close(p.value, own.at(p.name), 0), p.name);
        }
        const double now = loss(*model);
        if (start == std::string("published")) {
          BOOST_TEST(now != before);
          BOOST_TEST(is_close({now}, {before}, 1e-2));
        } else if (dtype == DType::f64) {
          BOOST_TEST(now == before);
        } else {
          BOOST_TEST(is_close({now}, {before}, 1e-6));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(added_parameters_are_those_of_compose) {
  const Origin origin(small_config("transformer-tiny"));
  const auto added = models::added_parameters(*origin.spec, *origin.spec->with({{"use_dcmha", "true"}}), "x");
  BOOST_TEST(added.size() == 2u * 3);
  for (const nn::NamedTensor& p : added) BOOST_TEST(is_compose(p.name), p.name);
  BOOST_TEST(models::added_parameters(*origin.spec, *origin.spec->with({{"profile.rank", "1"}}), "x").empty());
}

BOOST_AUTO_TEST_CASE(settings_that_mean_another_model_are_errors) {
  const Origin plain(small_config("transformer-tiny")), composed(small_config());
  const auto fails = [](const Origin& origin, const models::SettingTexts& settings, const std::string& words) {
    BRAID_CHECK_FAILS(origin.go_on(settings, DType::f32), ErrorKind::setting, words);
  };
  fails(plain, {{"n_layer", "3"}}, "expected model.n_layer = 2, found 3");
  fails(plain, {{"rope_base", "5000"}}, "expected model.rope_base = 10000, found 5000");
  fails(plain,
        {{"n_layer", "3"},
         {"rope_base", "5000"},
         {"norm_eps", "0.5"},
         {"logit_softcap", "5"},
         {"attention_softcap", "5"},
         {"scale_embeddings", "true"}},
        "; and 3 more; leave these settings out");
  fails(composed, {{"profile.gelu", "erf"}}, "expected model.profile.gelu = tanh, found erf");
  fails(composed, {{"use_dcmha", "false"}}, "layers.0.attention.dyn_w_proj.dd (32, 1, 16) would have no place");
}

BOOST_AUTO_TEST_CASE(a_longer_block_takes_the_same_weights) {
  const Origin origin(small_config());
  const auto model = origin.go_on({{"block_size", "64"}}, DType::f64);
  BOOST_TEST(model->spec()->max_sequence_length() == 64);
  BOOST_TEST((model->dtype() == DType::f64));
  BOOST_TEST(is_close({loss(*model)}, {loss(origin.model)}, 1e-5));
}

BOOST_AUTO_TEST_SUITE_END()
