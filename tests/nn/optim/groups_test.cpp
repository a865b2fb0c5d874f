#include "braid/nn/optim/groups.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/nn/optim/registry.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::nn;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(groups)

namespace {

std::vector<ParameterGroup> groups_of(const std::vector<std::string>& texts) {
  std::vector<ParameterGroup> groups;
  for (const std::string& text : texts) groups.push_back(parse_group(text));
  return groups;
}

struct Two {
  NamedTensor a{"block.a", from_values({1, -2}, {1, 2}, DType::f64)}, b{"b", from_values({3}, {1, 1}, DType::f64)};
  std::unique_ptr<Optimizer> optimizer;
  explicit Two(OptimizerOptions options, const std::vector<std::string>& groups) {
    require_grad(a.value), require_grad(b.value);
    options.groups = groups_of(groups);
    optimizer = make_optimizer({a, b}, options);
  }
  void step(const Rates& lr, bool with_b = true) {
    set_grad(a.value, from_values({0.5, 0.25}, {1, 2}, DType::f64));
    if (with_b) set_grad(b.value, from_values({-1}, {1, 1}, DType::f64));
    optimizer->step(lr);
    optimizer->zero_grad();
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(later_groups_count) {
  const auto groups = groups_of(
      {"* frozen_until=200 lr=2", "*.dyn_w_proj.*  trained weight_decay=0", "norm* frozen", "*.dd update=elements"});
  const ParameterRule other = rule_of(groups, "w"), compose = rule_of(groups, "layers.0.dyn_w_proj.dd");
  BOOST_TEST(other.frozen_until == 200);
  BOOST_TEST(other.lr == 2);
  BOOST_TEST(!other.weight_decay.has_value());
  BOOST_TEST(compose.frozen_until == 0);
  BOOST_TEST(compose.lr == 2);
  BOOST_TEST((compose.elementwise && !other.elementwise));
  BOOST_TEST(!rule_of(groups_of({"* update=elements", "w* update=matrix"}), "w").elementwise);
  BOOST_TEST(*compose.weight_decay == 0);
  BOOST_TEST(rule_of(groups, "norm.weight").frozen_until == kNeverTrained);
  BOOST_TEST(rule_of({}, "w").lr == 1);
}

BOOST_AUTO_TEST_CASE(bad_groups_are_named) {
  const auto fails = [](const std::string& text, const std::string& why) {
    BRAID_CHECK_FAILS(parse_group(text), ErrorKind::setting, "optimizer.groups: '" + text + "'", why,
                      "expected PATTERN [lr=FACTOR]");
  };
  fails("", "has no pattern");
  fails("*", "sets nothing");
  fails("lr=3", "instead of a pattern");
  fails("* lr=-1", "'lr=-1', not a number from 0");
  fails("* lr=nan", "not a number");
  fails("* lr=1 lr=2", "the unexpected 'lr=2'");
  fails("* tail=steep", "'tail=steep', not tail=linear, tail=1-sqrt or tail=cosine");
  fails("* tail=cosine tail=linear", "the unexpected 'tail=linear'");
  fails("* update=rows", "'update=rows', not update=matrix or update=elements");
  fails("* frozen_until=-1", "not a number of steps");
  fails("* frozen trained", "twice");
  fails("* forzen", "the unexpected 'forzen'");
  const std::vector<NamedTensor> two = {{"a", {}}, {"b", {}}};
  BRAID_CHECK_FAILS(check_groups(groups_of({"* frozen_until=3"}), two), ErrorKind::setting,
                    "every parameter is frozen in the first step");
  BRAID_CHECK_FAILS(check_groups(groups_of({"x frozen"}), two), ErrorKind::setting, "no name matches 'x'");
}

BOOST_AUTO_TEST_CASE(a_group_is_an_optimizer_of_its_own) {
  for (const char* rule : {"adamw", "adam", "sgd"}) {
    const OptimizerOptions options{.name = rule, .weight_decay = 0.25, .momentum = 0.5};
    OptimizerOptions other = options;
    other.weight_decay = 0.5;
    Two mixed(options, {"b lr=3 weight_decay=0.5"}), plain(options, {}), faster(other, {});
    for (int i = 0; i < 3; ++i) mixed.step(0.125), plain.step(0.125), faster.step(0.375);
    BOOST_TEST(is_close(mixed.a.value, plain.a.value, 0), rule);
    BOOST_TEST(is_close(mixed.b.value, faster.b.value, 0), rule);
  }
}

// A group with a tail takes the rates of a schedule with that tail, times its factor; the others those of the schedule.
BOOST_AUTO_TEST_CASE(a_group_has_the_tail_that_it_names) {
  const Schedule plain{.kind = Schedule::Kind::wsd, .peak = 0.125, .steps = 6, .decay_steps = 5};
  Schedule cosine = plain;
  cosine.tail = Schedule::Tail::cosine;
  Two mixed({}, {"b tail=cosine lr=2"}), linear({}, {}), fast({}, {});
  for (int64_t i = 0; i < 6; ++i) {
    mixed.step(learning_rates(plain, i));
    linear.step(learning_rate(plain, i));
    fast.step(2 * learning_rate(cosine, i));
  }
  BOOST_TEST(learning_rate(plain, 2) != learning_rate(cosine, 2));
  BOOST_TEST(is_close(mixed.a.value, linear.a.value, 0));
  BOOST_TEST(is_close(mixed.b.value, fast.b.value, 0));
  BOOST_TEST((rule_of(groups_of({"* tail=cosine", "b tail=1-sqrt"}), "b").tail == Schedule::Tail::square_root));
}

// The update after the thaw is the first one of Adam's moments: bias corrections count from there.
BOOST_AUTO_TEST_CASE(frozen_parameters_keep_every_bit_until_their_first_update) {
  for (const char* rule : {"adamw", "adam", "sgd"}) {
    const OptimizerOptions options{.name = rule, .weight_decay = 0.5, .momentum = 0.5};
    Two late(options, {"b frozen_until=2"}), fresh(options, {}), all(options, {});
    late.step(0.125, false), late.step(0.125);  // with a gradient or without
    BOOST_TEST(is_close(late.b.value.to_vector<double>(), {3}, 0), rule);
    for (const NamedTensor& t : late.optimizer->state())
      if (t.name.starts_with("b.")) BOOST_TEST(t.value.item() == 0, rule << " " << t.name);
    late.step(0.125), fresh.step(0.125);
    for (int i = 0; i < 3; ++i) all.step(0.125);
    BOOST_TEST(is_close(late.b.value, fresh.b.value, 0), rule);
    BOOST_TEST(is_close(late.a.value, all.a.value, 0), rule);
  }
}

BOOST_AUTO_TEST_SUITE_END()
