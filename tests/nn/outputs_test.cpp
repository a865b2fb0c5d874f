// Outputs of modules by the names of the modules.
#include "braid/nn/outputs.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <thread>

#include "braid/autograd.h"
#include "braid/nn/attention/attention.h"
#include "braid/nn/layers/embedding.h"
#include "braid/nn/layers/linear.h"
#include "braid/nn/layers/norm.h"
#include "braid/nn/layers/sequential.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(outputs)

namespace {
// A model of a user: two layers and a module that reports itself.
class Small final : public nn::Module {
 public:
  Small()
      : table_(5, 4, nn::Init::normal(1), {1, 1}),
        norm_(nn::Norm::Kind::rms, 4, 1e-5),
        net_(layer(2), gelu, layer(3)) {}
  Tensor operator()(const Tensor& ids) const { return nn::output(*this, net_(norm_(table_(ids)))); }
  void visit(nn::Visitor& v) const override {
    v("table", table_);
    v("norm", norm_);
    v("net", net_);
  }

 private:
  static nn::Linear layer(uint64_t seed) { return {4, 4, {.bias = true}, {1, seed}}; }
  nn::Embedding table_;
  nn::Norm norm_;
  nn::Sequential net_;
};

Tensor ids() { return from_vector(std::vector<double>{0, 3, 4}, {3}).to(DType::i64); }
}  // namespace

BOOST_AUTO_TEST_CASE(every_module_is_reported_once_under_its_name) {
  const Small model;
  std::vector<std::string> names;
  std::map<std::string, Tensor> seen;
  Tensor y;
  {
    const nn::ObserveOutputs watch(model, [&](const std::string& name, const Tensor& output) {
      names.push_back(name);
      seen[name] = output;
    });
    y = model(ids());
    nn::Linear(4, 4, {}, {1, 9})(y);  // not a part of the model
  }
  const std::vector<std::string> expected{"table", "norm", "net.0", "net.2", ""};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  BOOST_TEST(is_close(seen[""], y, 0));
  model(ids());
  BOOST_TEST(names.size() == 5u);  // nobody watches any more
  // The outputs have histories: gradients of results inside the model.
  const Tensor dy = grad(sum(y), {seen["net.2"]})[0];
  BOOST_TEST(is_close(dy, ones({3, 4}), 0));
}

BOOST_AUTO_TEST_CASE(layers_of_a_transformer_report) {
  const auto names_of = [](const nn::Module& m, const std::function<void()>& pass) {
    std::string names;
    const nn::ObserveOutputs watch(m, [&](const std::string& name, const Tensor&) { names += "[" + name + "]"; });
    pass();
    return names;
  };
  const Tensor x = randn({1, 3, 8}, {1, 1});
  const nn::Attention attention({.width = 8, .heads = 2, .compose = false}, {1, 2});
  BOOST_TEST(names_of(attention, [&] { attention(x); }) == "[wqkv][wo][]");
  const nn::LayerNorm norm(8, 1e-5);
  BOOST_TEST(names_of(norm, [&] { norm(x), norm(x, x); }) == "[][]");
}

BOOST_AUTO_TEST_CASE(passes_of_other_threads_are_not_reported) {
  const Small model;
  int calls = 0;
  const nn::ObserveOutputs watch(model, [&](const std::string&, const Tensor&) { ++calls; });
  std::thread([&] { model(ids()); }).join();
  BOOST_TEST(calls == 0);
  BRAID_CHECK_FAILS(nn::ObserveOutputs(model, nullptr), ErrorKind::misuse, "[observe_outputs] needs a function");
  model(ids());
  BOOST_TEST(calls == 5);  // the failed one left this in place
}

BOOST_AUTO_TEST_SUITE_END()
