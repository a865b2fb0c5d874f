#include "braid/nn/optim/master_weights.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/hooks.h"
#include "braid/autograd/ops.h"
#include "braid/nn/layers/linear.h"
#include "braid/nn/layers/norm.h"
#include "braid/nn/optim/registry.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(master_weights)

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
  HookHandle hook = on_grad(master, [&](const Tensor& g) { arrived.push_back(g.clone()); });
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
  hook.remove();
}

// A penalty on the gradient in x, v = W' W' 1: with W = 1/2 each element of d|v|^2/dW is 13.5, exact in bf16.
BOOST_AUTO_TEST_CASE(second_derivatives_reach_the_masters) {
  Two m;
  nn::MasterWeights masters(m, DType::bf16, [](const std::string&) { return true; });
  Tensor x = full({1, 3}, 1, DType::bf16), master = nn::parameters(masters)[0].value;
  master.fill(0.5);
  masters.refresh();
  masters.attach_cast();
  require_grad(x);
  const Tensor v = grad(sum(cast(m(x), DType::f32)), {x}, {.create_graph = true})[0];
  backward(sum(square(cast(v, DType::f32))));
  BOOST_TEST(is_close(grad(master).to_vector<double>(), std::vector<double>(9, 13.5), 0));
}

// Gradients of one pass stay in bf16 and the optimizer writes the copies: the bits of f32 gradients and refresh().
BOOST_AUTO_TEST_CASE(the_optimizer_reads_bf16_gradients_and_writes_the_copies) {
  class Descent final : public nn::Optimizer {  // composed of ops
   public:
    explicit Descent(std::vector<nn::NamedTensor> p) : Optimizer(std::move(p), {}, {}) {}

   private:
    void update(const std::vector<Item>& items, const Tensor&) override {
      const NoGrad off;
      for (const Item& item : items) {
        Tensor p = item.parameter;
        p.copy_(p.clone() - scale(item.gradient.to(DType::f32), 0.5));
      }
    }
  };
  for (bool fused : {true, false}) {
    std::vector<std::vector<nn::NamedTensor>> results;
    for (bool copies : {false, true}) {
      Two m;
      nn::MasterWeights masters(m, DType::bf16, [](const std::string& name) { return name != "second.weight"; });
      const std::vector<nn::NamedTensor> own = nn::parameters(masters);
      std::unique_ptr<nn::Optimizer> optimizer = nn::make_optimizer(own, {});
      if (!fused) optimizer = std::make_unique<Descent>(own);
      if (copies) optimizer->set_copies(masters.copies_of(own));
      for (int step = 0; step < 3; ++step) {
        nn::zero_grad(masters);
        masters.attach_cast(copies);
        backward(sum(m.second(cast(m(randn({2, 3}, {1, 1}, DType::bf16)), DType::f32))));
        BOOST_TEST((grad(own[0].value).dtype() == (copies ? DType::bf16 : DType::f32)));
        BOOST_TEST((grad(own[1].value).dtype() == DType::f32));
        optimizer->step(0.01);
        copies ? masters.refresh_others() : masters.refresh();
      }
      results.push_back(own);
      for (const nn::NamedTensor& p : nn::parameters(m)) results.back().push_back(p);
    }
    for (size_t i = 0; i < results[0].size(); ++i)
      BOOST_TEST(is_close(results[1][i].value, results[0][i].value, 0), results[0][i].name);
  }
}

BOOST_AUTO_TEST_CASE(copies_must_fit) {
  Two m;
  nn::require_grad(m);
  const std::vector<nn::NamedTensor> own = nn::parameters(m);
  const auto optimizer = nn::make_optimizer(own, {});
  BOOST_TEST(throws_with([&] { optimizer->set_copies({}); }, "0 copies do not fit 2 parameters"));
  BOOST_TEST(throws_with(
      [&] {
        optimizer->set_copies({zeros({3, 2}, DType::bf16), {}});
      },
      "the copy of first.weight is bf16 (3, 2) on cpu, expected bf16 or f16 (3, 3) on cpu"));
  set_grad(own[0].value, zeros({3, 3}, DType::bf16));
  set_grad(own[1].value, zeros({3}));
  BOOST_TEST(throws_with([&] { optimizer->step(); }, "first.weight is bf16 (3, 3) on cpu, expected f32 (3, 3)"));
}

// Consecutive matrices of one shape have copies that one product can read.
BOOST_AUTO_TEST_CASE(copies_of_one_shape_lie_one_behind_the_other) {
  struct Three final : nn::Module {
    nn::Linear a{4, 3, {}, {1, 0}}, b{4, 3, {}, {1, 1}}, c{3, 4, {}, {1, 2}};
    void visit(nn::Visitor& v) const override {
      v("a", a);
      v("b", b);
      v("c", c);
    }
  };
  Three m;
  nn::MasterWeights masters(m, DType::bf16, [](const std::string&) { return true; });
  const auto at = [](const nn::Linear& l) { return static_cast<const bfloat16*>(l.weight().raw()); };
  BOOST_TEST((at(m.b) == at(m.a) + 12));
  BOOST_TEST(!m.c.weight().shares_storage(m.a.weight()));
  for (const nn::NamedTensor& p : nn::parameters(masters))
    for (const nn::NamedTensor& q : nn::parameters(m))
      if (p.name == q.name) BOOST_TEST(is_close(q.value, p.value.detach().to(DType::bf16), 0), p.name);
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
