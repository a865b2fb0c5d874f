#include "braid/nn/module.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/autograd/debug.h"
#include "braid/autograd/ops.h"
#include "braid/nn/layers/linear.h"
#include "braid/nn/optim/master_weights.h"
#include "braid/nn/optim/rules/adam.h"
#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(module)

namespace {
class Pair final : public nn::Module {
 public:
  Pair() : first_(2, 3, {.bias = true}, {1, 1}), second_(3, 2, {}, {1, 2}) {}
  Tensor operator()(const Tensor& x) const { return second_(tanh(first_(x))); }
  void visit(nn::Visitor& v) const override {
    v("first", first_);
    v("list.0", second_);
  }

 private:
  nn::Linear first_, second_;
};

// An output layer that shares the table of the embedding.
class Tied final : public nn::Module {
 public:
  Tied() : table_(nn::parameter(nn::Init::normal(1).make({4, 2}, {1, 3}))), output_(table_) {}
  Tensor operator()(const Tensor& ids) const { return linear(embedding(table_, ids), output_); }
  void visit(nn::Visitor& v) const override {
    v("table", table_);
    v("output", output_);
  }
  bool tied() const { return table_.id() == output_.id(); }

 private:
  Tensor table_, output_;
};

// One layer under two names.
class Reused final : public nn::Module {
 public:
  Tensor operator()(const Tensor& x) const { return layer_(layer_(x)); }
  void visit(nn::Visitor& v) const override {
    v("first", layer_);
    v("second", layer_);
  }

 private:
  nn::Linear layer_{2, 2, {}, {1, 5}};
};

// A layer that counts its calls and keeps their mean.
class Counted final : public nn::Module {
 public:
  explicit Counted(double mean = 0) : layer_(2, 2, {}, {1, 4}), mean_(full({2}, mean)), calls_(zeros({}, DType::i64)) {}
  void visit(nn::Visitor& v) const override {
    v("layer", layer_);
    v.buffer("running_mean", mean_);
    v.buffer("calls", calls_);
  }

 private:
  nn::Linear layer_;
  Tensor mean_, calls_;
};

std::vector<std::string> names(const nn::Module& m) {
  std::vector<std::string> list;
  for (const nn::NamedTensor& p : nn::parameters(m)) list.push_back(p.name);
  return list;
}
}  // namespace

BOOST_AUTO_TEST_CASE(names_come_from_visit_once) {
  Pair m;
  std::vector<std::string> want{"first.weight", "first.bias", "list.0.weight"};
  BOOST_TEST(names(m) == want, boost::test_tools::per_element());
  BOOST_TEST(nn::count(m) == 6 + 3 + 6);
}

BOOST_AUTO_TEST_CASE(parameters_collect_gradients_from_birth) {
  const Pair m;  // const: naming parameters changes nothing
  for (const nn::NamedTensor& p : nn::parameters(m)) BOOST_TEST(requires_grad(p.value));
  BOOST_TEST(nn::count(m) == 15);
  backward(sum(m(full({4, 2}, 0.5))));
  for (const nn::NamedTensor& p : nn::parameters(m)) BOOST_TEST_CONTEXT(p.name) BOOST_TEST(bool(grad(p.value)));
}

BOOST_AUTO_TEST_CASE(a_frozen_module_records_nothing) {
  Pair m;
  nn::freeze(m);
  BOOST_TEST(!requires_grad(m(full({4, 2}, 0.5))));
  nn::zero_grad(m);
  nn::to(m, DType::f64);
  BOOST_TEST(!requires_grad(nn::parameters(m)[0].value));
  nn::require_grad(m);
  BOOST_TEST(requires_grad(m(full({4, 2}, 0.5, DType::f64))));
}

BOOST_AUTO_TEST_CASE(tied_parameters_are_one_parameter) {
  Tied m;
  BOOST_TEST(names(m) == std::vector<std::string>{"table"}, boost::test_tools::per_element());
  BOOST_TEST(nn::count(m) == 8);
  nn::to(m, DType::f64);
  BOOST_TEST(m.tied());
  nn::MasterWeights masters(m, DType::f32, [](const std::string&) { return true; });
  BOOST_TEST(m.tied());
  masters.attach_cast();
  BOOST_TEST(m.tied());
  backward(sum(m(arange(4))));
  nn::AdamW optimizer(nn::parameters(masters), {.lr = 0.5, .weight_decay = 0});
  const double before = nn::parameters(masters)[0].value.to_vector<double>()[0];
  optimizer.step();
  const double moved = nn::parameters(masters)[0].value.to_vector<double>()[0] - before;
  BOOST_TEST(std::fabs(std::fabs(moved) - 0.5) < 1e-6);  // the first step of AdamW is lr: it was taken twice
}

// Its parameter was made again under the second name, which MasterWeights had no entry for.
BOOST_AUTO_TEST_CASE(a_module_under_two_names_is_replaced_once) {
  Reused m;
  int made = 0;
  nn::replace_parameters(m, [&](const std::string& name, const Tensor& old) {
    BOOST_TEST(name == "first.weight");
    ++made;
    return nn::parameter(scale(old.detach(), 2));
  });
  BOOST_TEST(made == 1);
  nn::MasterWeights masters(m, DType::bf16, [](const std::string&) { return true; });
  masters.attach_cast();
  backward(sum(cast(m(full({1, 2}, 1, DType::bf16)), DType::f32)));
  BOOST_TEST(names(masters) == std::vector<std::string>{"first.weight"}, boost::test_tools::per_element());
  BOOST_TEST(bool(grad(nn::parameters(masters)[0].value)));
}

BOOST_AUTO_TEST_CASE(parameters_that_share_memory_by_accident_are_an_error) {
  Tensor a = full({4}, 1), b = a.sliced(0, 3, 4), c = a.sliced(0, 0, 3);
  for (Tensor* x : {&a, &b, &c}) require_grad(*x);
  BOOST_TEST(throws_with([&] { nn::AdamW({{"a", a}, {"b", b}}, {}); }, "a and b share memory"));
  nn::AdamW({{"b", b}, {"c", c}}, {});  // neighbours in one buffer
}

BOOST_AUTO_TEST_CASE(a_module_goes_through_a_file) {
  TempFolder folder;
  const std::string path = folder / "pair.safetensors";
  const Pair saved;
  nn::save(saved, path);
  Pair loaded;
  for (nn::NamedTensor& p : nn::parameters(loaded)) p.value.fill(0);
  nn::load(loaded, path);
  for (size_t i = 0; i < 3; ++i) {
    const Tensor x = nn::parameters(loaded)[i].value;
    BOOST_TEST(is_close(x, nn::parameters(saved)[i].value, 0));
    BOOST_TEST(requires_grad(x));
  }
  Tied other;
  BOOST_TEST(throws_with([&] { nn::load(other, path); }, "pair.safetensors do not fit the model: table is missing"));
}

BOOST_AUTO_TEST_CASE(buffers_are_saved_loaded_and_converted_but_never_trained) {
  TempFolder folder;
  const std::string path = folder / "counted.safetensors";
  const Counted saved(5);
  BOOST_TEST(names(saved) == std::vector<std::string>{"layer.weight"}, boost::test_tools::per_element());
  BOOST_TEST(nn::count(saved) == 4);
  nn::save(saved, path);
  Counted loaded;
  nn::load(loaded, path);
  const std::vector<nn::NamedTensor> buffers = nn::buffers(loaded);
  BOOST_REQUIRE(buffers.size() == 2u);
  BOOST_TEST(buffers[0].name == "running_mean");
  BOOST_TEST(is_close(buffers[0].value.to_vector<double>(), {5, 5}, 0));
  nn::require_grad(loaded);
  BOOST_TEST(!requires_grad(nn::buffers(loaded)[0].value));
  nn::to(loaded, DType::f64);
  BOOST_TEST(str(nn::buffers(loaded)[0].value.dtype()) == "f64");
  BOOST_TEST(str(nn::buffers(loaded)[1].value.dtype()) == "i64");  // only floats are converted
  BOOST_TEST(is_close(nn::buffers(loaded)[0].value.to_vector<double>(), {5, 5}, 0));
  const std::vector<nn::NamedTensor> without{{"layer.weight", zeros({2, 2})}, {"calls", zeros({}, DType::i64)}};
  BOOST_TEST(throws_with([&] { nn::load(loaded, without, "x"); }, "running_mean is missing (expected (2))"));
  BOOST_TEST(
      throws_with([&] { nn::check_no_buffers(saved, "checkpoints"); }, "a buffer, running_mean, which checkpoints"));
}

BOOST_AUTO_TEST_CASE(a_moved_module_still_names_its_own_parameters) {
  Pair a;
  Pair b = std::move(a);
  backward(sum(b(full({4, 2}, 0.5))));
  for (const nn::NamedTensor& p : nn::parameters(b)) BOOST_TEST_CONTEXT(p.name) BOOST_TEST(bool(grad(p.value)));
}

BOOST_AUTO_TEST_CASE(conversion_keeps_parameters_leaves) {
  Pair m;
  nn::to(m, DType::f64);
  for (const nn::NamedTensor& p : nn::parameters(m)) {
    BOOST_TEST((p.value.dtype() == DType::f64));
    BOOST_TEST(requires_grad(p.value));
  }
}

BOOST_AUTO_TEST_CASE(load_reports_every_problem_and_changes_nothing) {
  Pair m;
  std::vector<double> before = nn::parameters(m)[0].value.to_vector<double>();
  Tensor nan = full({3, 2}, 0);
  nan.sliced(0, 1, 2).fill(std::numeric_limits<double>::quiet_NaN());
  std::vector<nn::NamedTensor> source{
      {"first.weight", nan}, {"list.0.weight", full({2, 4}, 1)}, {"extra", full({1}, 1)}};
  auto attempt = [&] { nn::load(m, source, "model.safetensors"); };
  BOOST_TEST(throws_with(attempt, "first.weight (3, 2) contains NaN or Inf"));
  BOOST_TEST(throws_with(attempt, "first.bias is missing (expected (3))"));
  BOOST_TEST(throws_with(attempt, "list.0.weight has shape (2, 4), expected (2, 3)"));
  BOOST_TEST(throws_with(attempt, "extra (1) is not a parameter of this model"));
  BOOST_TEST(throws_with(attempt, "in model.safetensors"));
  BOOST_TEST(is_close(nn::parameters(m)[0].value.to_vector<double>(), before, 0));
}

// The lines of BRAID_DEBUG=ops began with an affine and a sum per weight of the file.
BOOST_AUTO_TEST_CASE(inspecting_weights_is_no_op) {
  std::FILE* lines = std::tmpfile();
  set_debug({.ops = true}, lines);
  for (DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    BOOST_TEST(nn::all_finite(full({3, 5}, 60000, t)));
    BOOST_TEST(nn::all_finite(full({3, 5}, 2, t).transposed()));
    BOOST_TEST(nn::all_finite(zeros({0, 5}, t)));
    for (double bad : {INFINITY, -INFINITY, NAN})
      BOOST_TEST(!nn::all_finite(from_values({1, 2, bad, 4, 5, 6}, {2, 3}, t).transposed()));
  }
  BOOST_TEST(nn::all_finite(arange(3)));
  set_debug({});
  BOOST_TEST(std::ftell(lines) == 0);
  std::fclose(lines);
}

// They were Inf in the module.
BOOST_AUTO_TEST_CASE(load_rejects_numbers_beyond_the_type_of_the_module) {
  Reused m;
  nn::to(m, DType::f16);
  const auto attempt = [&](double value) { nn::load(m, {{"first.weight", full({2, 2}, value)}}, "test"); };
  BOOST_TEST(throws_with([&] { attempt(70000); }, "first.weight (2, 2) contains numbers beyond f16"));
  attempt(60000);
  BOOST_TEST(nn::parameters(m)[0].value.to_vector<double>()[3] == 60000);
}

BOOST_AUTO_TEST_CASE(load_fills_in_any_order_and_type) {
  Pair m;
  nn::load(
      m,
      {{"list.0.weight", full({2, 3}, 3, DType::f64)}, {"first.bias", full({3}, 2)}, {"first.weight", full({3, 2}, 1)}},
      "test");
  BOOST_TEST(nn::parameters(m)[2].value.to_vector<double>()[5] == 3.0);
}

BOOST_AUTO_TEST_SUITE_END()
