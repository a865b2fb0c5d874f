// Attention over an image against the maps of every query, computed from queries, keys and the weights of Compose.
#include "braid/models/inspect/image_attention.h"

#include <boost/test/unit_test.hpp>
#include <map>

#include "braid/autograd.h"
#include "braid/autograd/attention_maps.h"
#include "braid/models/inspect/layer_maps.h"
#include "tests/models/families/vit/support.h"
#include "tests/models/randomise.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(image_attention_suite)

using models::ImageAttention, models::Vit, models::VitConfig;

namespace {

Vit make(bool compose, bool class_token) {
  VitConfig c = small_vit(compose);
  c.num_channels = 1;
  c.pool_type = class_token ? "tok" : "gap";
  c.posemb = "learn";
  Vit model(c, {5, 0});
  model.to(DType::f64);
  randomise(model, {5, 1}, 0.5);
  return model;
}

const Tensor& image() {
  static const Tensor pixels = randn({1, 1, 4, 6}, {7, 7}, DType::f64);
  return pixels;
}

}  // namespace

BOOST_AUTO_TEST_CASE(weights_are_those_of_the_queries_before_and_after_compose) {
  for (const bool compose : {false, true}) {
    for (const bool token : {false, true}) {
      const Vit model = make(compose, token);
      const ImageAttention found = models::image_attention(model, image());
      BOOST_TEST(found.layers == 2);
      BOOST_TEST(found.heads == 2);
      BOOST_TEST(found.rows == 2);
      BOOST_TEST(found.columns == 3);
      BOOST_TEST(found.composed == compose);
      BOOST_TEST(found.class_token == token);
      NoGrad off;
      std::map<std::string, Tensor> seen;
      const nn::ActivationObserver observer{[&](const std::string& name, const Tensor& x) { seen[name] = x; },
                                            [](const std::string&) { return true; }};
      model.logits(image(), &observer);
      for (int64_t layer = 0; layer < 2; ++layer) {
        const std::string prefix = "layers." + std::to_string(layer) + ".";
        std::map<std::string, Tensor> of_layer;
        for (const auto& [name, x] : seen)
          if (name.starts_with(prefix)) of_layer[name.substr(prefix.size())] = x;
        const models::LayerMaps maps = models::layer_maps(of_layer);
        DcmhaOptions options;
        options.mask.causal = false;
        const AttentionMaps all =
            attention_maps(of_layer.at("q"), of_layer.at("k"), maps.pre_weights, maps.post_weights, options);
        for (const auto& [map, weights] : {std::pair{&all.probs, &found.before}, {&all.probs_composed, &found.after}}) {
          const Tensor rows = token ? map->sliced(2, 0, 1) : mean(*map, {2}, true);  // (1, N, 1, T)
          const std::vector<double> expected = rows.sliced(3, token, rows.dim(3)).contiguous().to_vector<double>();
          const auto begin = weights->begin() + static_cast<int64_t>(found.at(layer, 0, 0));
          BOOST_TEST(is_close(std::vector<double>(begin, begin + 12), expected, 1e-12));
        }
      }
      BOOST_TEST((found.before == found.after) == !compose);
      if (token) continue;
      for (size_t head = 0; head < 4; ++head) {
        double sum = 0;
        for (size_t patch = 0; patch < 6; ++patch) sum += found.before[head * 6 + patch];
        BOOST_TEST(std::fabs(sum - 1) < 1e-12);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
