// Rates, decay and freezing by parameter in a training run.
#include <boost/test/unit_test.hpp>
#include <map>

#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(parameter_groups)

namespace {

std::vector<nn::ParameterGroup> groups(const std::vector<std::string>& texts) {
  std::vector<nn::ParameterGroup> list;
  for (const std::string& text : texts) list.push_back(nn::parse_group(text));
  return list;
}

using Values = std::map<std::string, std::vector<double>>;

struct Training {
  models::Dcformer model{small_config(), {1, 0}};
  models::Trainer trainer;
  Training(const std::vector<std::string>& texts, std::optional<DType> compute = {}, const std::string& rule = "adamw")
      : trainer(model, {.name = rule, .groups = groups(texts)}, 1.0, {}, compute) {}
  Values values() const {
    Values all;
    for (const nn::NamedTensor& p : trainer.parameters()) all[p.name] = p.value.to_vector<double>();
    return all;
  }
  std::vector<double> everything() const {
    std::vector<double> all;
    for (const auto& list : {trainer.local_state().weights, trainer.local_state().optimizer})
      for (const models::LocalTensor& t : list)
        for (double v : t.values.to_vector<double>()) all.push_back(v);
    return all;
  }
};

bool is_compose(const std::string& name) { return name.find(".dyn_w_proj.") != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(frozen_parameters_have_no_state_no_gradient_and_keep_every_bit) {
  for (const std::optional<DType> compute : {std::optional<DType>(), std::optional(DType::bf16)}) {
    for (const char* rule : {"adamw", "sgd"}) {
      Training t({"* frozen", "*.dyn_w_proj.* trained"}, compute, rule);
      const Values before = t.values();
      t.trainer.forward_backward({small_batch(0)});
      for (const models::LocalTensor& g : t.trainer.local_gradients()) BOOST_TEST(is_compose(g.name), g.name);
      t.trainer.apply(1e-2);
      t.trainer.step({small_batch(1)}, 1e-2);
      for (const auto& [name, now] : t.values())
        BOOST_TEST((now == before.at(name)) == !is_compose(name), rule << " " << name);
      for (const nn::NamedTensor& s : t.trainer.optimizer().state())
        BOOST_TEST((s.name == "steps" || is_compose(s.name)), s.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_gradient_norm_is_that_of_the_trained_ones) {
  Training all({}), some({"* frozen", "output.* trained"});
  double squares = 0;
  all.trainer.forward_backward({small_batch(0)});
  for (const models::LocalTensor& g : all.trainer.local_gradients())
    if (g.name.starts_with("output."))
      for (double v : g.values.to_vector<double>()) squares += v * v;
  BOOST_TEST(is_close({some.trainer.forward_backward({small_batch(0)}).grad_norm}, {std::sqrt(squares)}, 1e-6));
}

// First the new weights, then all: the second part continues from where the first one ended.
BOOST_AUTO_TEST_CASE(parameters_thaw_at_their_step_and_resume_exactly) {
  const std::vector<std::string> texts = {"* frozen_until=2", "*.dyn_w_proj.* trained lr=10"};
  Training whole(texts);
  const Values first = whole.values();
  for (int64_t i = 0; i < 2; ++i) whole.trainer.step({small_batch(i)}, 1e-3);
  for (const auto& [name, now] : whole.values()) BOOST_TEST((now == first.at(name)) == !is_compose(name), name);
  for (int64_t i = 2; i < 4; ++i) whole.trainer.step({small_batch(i)}, 1e-3);
  for (const auto& [name, now] : whole.values()) BOOST_TEST(now != first.at(name), name);
  for (const int64_t stop : {1, 2, 3}) {
    TempFolder run;
    models::text::ByteTokenizer tokenizer;
    Training before(texts), after(texts);
    for (int64_t i = 0; i < stop; ++i) before.trainer.step({small_batch(i)}, 1e-3);
    models::CheckpointWriter(run.path, 2).save(before.trainer, &tokenizer, {stop, 0, 0, 1, 16, "data"}, "");
    after.trainer.step({small_batch(9)}, 1e-1);  // another state, thawed or not
    models::load_checkpoint(run.path / models::step_name(stop), after.trainer);
    for (int64_t i = stop; i < 4; ++i) after.trainer.step({small_batch(i)}, 1e-3);
    BOOST_TEST((after.everything() == whole.everything()), "stopped after " << stop);
  }
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_other_trained_parameters_is_rejected) {
  TempFolder run;
  models::text::ByteTokenizer tokenizer;
  Training before({"tok_embeddings.* frozen"}), after({});
  before.trainer.step({small_batch(0)}, 1e-3);
  models::CheckpointWriter(run.path, 2).save(before.trainer, &tokenizer, {1, 0, 0, 1, 16, "data"}, "");
  BRAID_CHECK_FAILS(models::load_checkpoint(run.path / models::step_name(1), after.trainer), ErrorKind::setting,
                    "never trained parameters (optimizer.groups");
}

BOOST_AUTO_TEST_CASE(bad_patterns_are_found_before_training) {
  BRAID_CHECK_FAILS(Training({"*.dyn_w_pro.* lr=2"}), ErrorKind::setting, "no name matches", ".dyn_w_proj.");
  BRAID_CHECK_FAILS(Training({"* frozen"}), ErrorKind::setting, "every parameter is frozen");
}

BOOST_AUTO_TEST_CASE(recomputed_blocks_with_frozen_embeddings_change_no_bit) {
  const auto norm = [](bool recompute) {
    Training t({"* frozen", "layers.1.attention.wo.* trained"});
    t.model.set_recompute(recompute);
    return t.trainer.step({small_batch(0)}, 1e-3).grad_norm;
  };
  BOOST_TEST(norm(true) == norm(false));
}

BOOST_AUTO_TEST_SUITE_END()
