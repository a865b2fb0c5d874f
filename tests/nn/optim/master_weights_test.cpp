#include "braid/nn/optim/master_weights.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/nn/linear.h"
#include "braid/nn/norm.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

namespace {
struct Two final : nn::Module {
  nn::Linear first{3, 3, {}, {1, 0}};
  nn::RmsNorm second{3, 1e-5};
  void visit(nn::Visitor& v) const override {
    v("first", first);
    v("second", second);
  }
  Tensor operator()(const Tensor& x) const { return first(first(x)); }
};
}  // namespace

BOOST_AUTO_TEST_SUITE(master_weights)

BOOST_AUTO_TEST_CASE(copies_follow_their_masters) {
  Two m;
  nn::MasterWeights masters(m, DType::bf16, [](const std::string& name) { return name != "second.weight"; });
  std::vector<nn::NamedTensor> own = nn::parameters(masters), used = nn::parameters(m);
  BOOST_TEST(own[0].name == "first.weight");
  BOOST_TEST(own[1].name == "second.weight");
  BOOST_TEST((own[0].value.dtype() == DType::f32));
  BOOST_TEST((used[0].value.dtype() == DType::bf16));
  BOOST_TEST(used[1].value.shares_storage(own[1].value));
  own[0].value.fill(1.0 + 0x1p-9);
  BOOST_TEST(nn::parameters(m)[0].value.to_vector<float>()[0] != 1.0f);
  masters.refresh();
  BOOST_TEST(nn::parameters(m)[0].value.to_vector<float>()[0] == 1.0f);
  BOOST_TEST(own[0].value.to_vector<float>()[0] == 1.0f + 0x1p-9f);
}

BOOST_AUTO_TEST_CASE(gradients_arrive_at_the_masters_of_every_pass) {
  Two m;
  nn::MasterWeights masters(m, DType::bf16, [](const std::string&) { return true; });
  Tensor x = full({2, 3}, 1, DType::bf16), master = nn::parameters(masters)[0].value;
  std::vector<Tensor> arrived;
  on_grad(master, [&](const Tensor& g) { arrived.push_back(g.clone()); });
  for (int pass = 0; pass < 2; ++pass) {
    masters.attach_cast();
    backward(sum(cast(m(x), DType::f32)));  // the layer is used twice in it
  }
  BOOST_TEST_REQUIRE(arrived.size() == 2u);
  BOOST_TEST((arrived[0].dtype() == DType::f32));
  BOOST_TEST(is_close(arrived[1], scale(arrived[0], 2), 0));
  BOOST_TEST(is_close(grad(master), arrived[1], 0));
  // Without a new history the second pass has none to walk.
  Tensor y = sum(cast(m(x), DType::f32));
  BOOST_TEST(throws_with([&] { backward(y); }, "history already used"));
  on_grad(master, nullptr);
}

BOOST_AUTO_TEST_CASE(of_the_same_type_nothing_is_copied) {
  Two m;
  nn::MasterWeights masters(m, DType::f32, [](const std::string&) { return true; });
  for (size_t i = 0; i < 2; ++i)
    BOOST_TEST(nn::parameters(m)[i].value.shares_storage(nn::parameters(masters)[i].value));
  masters.attach_cast();
  backward(sum(m(full({2, 3}, 1))));
  BOOST_TEST(static_cast<bool>(grad(nn::parameters(m)[0].value)));
}

BOOST_AUTO_TEST_SUITE_END()
