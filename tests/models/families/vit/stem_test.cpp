// Convolutions before the patches: against conv2d, the derivative of a whole model, settings, folders, FLOPs.
#include "braid/models/families/vit/stem.h"

#include <boost/test/unit_test.hpp>

#include "braid/models/cost/size.h"
#include "braid/models/cost/trace.h"
#include "braid/models/families/vit/model.h"
#include "braid/models/registry.h"
#include "tests/models/families/vit/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(vit_stem)

using models::Vit, models::VitConfig, models::VitStem;

namespace {

// Images of 5 x 6 pixels: 3 x 3 after the first convolution, 2 x 2 after the second, of which each is a patch.
VitConfig small_with_stem() {
  VitConfig c = small_vit();
  c.image_size = {5, 6};
  c.patch_size = {4};
  c.stem_channels = {3, 5};
  return c;
}

}  // namespace

BOOST_AUTO_TEST_CASE(is_conv2d_then_norm_then_gelu) {
  VitStem stem({5, 6}, {2, 3, 5}, 1e-6, kVitKey);
  nn::to(stem, DType::f64);
  randomise(stem, kVitKey, 0.4);
  stem.make_windows(kCpu);
  std::map<std::string, Tensor> weights;
  for (const nn::NamedTensor& p : nn::parameters(stem)) weights[p.name] = p.value.detach();
  BOOST_TEST(weights.size() == 6);
  const Tensor x = randn({3, 2, 5, 6}, {7, 9}, DType::f64);
  Tensor expected = x;
  for (const char* at : {"0.", "1."}) {
    const std::string name = at;
    const Tensor y =
        conv2d(expected, weights.at(name + "convolution.weight"), {}, {.stride = {2, 2}, .padding = {1, 1}});
    const Tensor last = permute(y, {0, 2, 3, 1});  // the channels
    expected =
        permute(gelu_tanh(layer_norm(last, weights.at(name + "norm.weight"), weights.at(name + "norm.bias"), 1e-6)),
                {0, 3, 1, 2});
  }
  const Tensor y = stem(x);
  BOOST_TEST(y.shape() == (Shape{3, 5, 2, 2}));
  BOOST_TEST(is_close(y, expected, 1e-13));
}

BOOST_AUTO_TEST_CASE(without_channels_nothing_changes) {
  const Tensor x = randn({2, 1, 4, 4}, {7, 9});
  BOOST_TEST(is_close(VitStem()(x), x, 0));
  const VitConfig c = small_vit();
  BOOST_TEST((c.stem_patch().rows == 2 && c.grid().rows == 2 && c.grid().columns == 3));
}

BOOST_AUTO_TEST_CASE(derivative_of_the_model) {
  const VitConfig c = small_with_stem();
  BOOST_TEST(c.tokens() == 4);
  const GradcheckResult result = gradcheck_vit(c);
  BOOST_TEST(result.error < 1e-7, result.where);
}

BOOST_AUTO_TEST_CASE(folders) { check_vit_folder(small_with_stem()); }

BOOST_AUTO_TEST_CASE(settings_are_checked) {
  const auto rejects = [](const models::SettingTexts& given, const char* words) {
    BOOST_TEST(throws_with([&] { models::configure_model("vit-28", given); }, words));
  };
  rejects({{"stem_channels", "8"}, {"patch_size", "7"}}, "a multiple of 2");
  rejects({{"stem_channels", "8,8"}, {"patch_size", "8"}}, "4 times a divisor of the 7 x 7 pixels");
  rejects({{"stem_channels", "0"}, {"patch_size", "2"}}, "stem_channels");
  rejects({{"stem_channels", "1,1,1,1,1,1,1,1,1,1,1"}}, "at most 10");
  const auto spec = models::configure_model("vit-28", {{"stem_channels", "8,16,32"}, {"patch_size", "8"}});
  const auto plain = models::configure_model("vit-28", {{"stem_channels", "[]"}, {"patch_size", "7"}});
  const int64_t D = 128, stem = 9 * (8 + 8 * 16 + 16 * 32) + 2 * (8 + 16 + 32);
  BOOST_TEST(models::model_size(*spec).parameters - models::model_size(*plain).parameters == stem + D * (32 - 49));
  const double flops = 2 * 9 * (196.0 * 8 + 49 * 8 * 16 + 16 * 16 * 32);
  BOOST_TEST(models::forward_flops(*spec, 1).total() - models::forward_flops(*plain, 1).total() ==
             flops + 2 * 16 * 128 * (32.0 - 49));
}

BOOST_AUTO_TEST_SUITE_END()
