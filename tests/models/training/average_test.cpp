// The moving average of the weights: its formula, what computes with it, checkpoints and resumes.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(weight_average)

namespace {

using Values = std::map<std::string, std::vector<double>>;

struct Training {
  models::Dcformer model{small_config(), {1, 0}};
  models::Trainer trainer;
  explicit Training(double decay, std::optional<DType> compute = {}, std::vector<nn::ParameterGroup> groups = {})
      : trainer(model, {.groups = std::move(groups)}, 1.0, {}, compute) {
    trainer.average_weights(decay);
  }
  void steps(int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) trainer.step({small_batch(i)}, 1e-2);
  }
  void save(const std::filesystem::path& run, int64_t step) const {
    const models::text::ByteTokenizer tokenizer;
    models::CheckpointWriter(run, 2).save(trainer, &tokenizer, {step, 0, 0, 1, 16, "data"}, "");
  }
  Values trained() const {
    Values all;
    for (const nn::NamedTensor& p : trainer.parameters()) all[p.name] = p.value.to_vector<double>();
    return all;
  }
  Values state(const std::vector<models::LocalTensor>& list) const {
    Values all;
    for (const models::LocalTensor& t : list) all[t.name] = t.values.to_vector<double>();
    return all;
  }
  Values averages() const { return state(trainer.local_state().weights); }
  Values moments() const { return state(trainer.local_state().optimizer); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_its_formula) {
  Training t(0.3);
  Values expected = t.trained();
  for (int64_t update = 1; update <= 5; ++update) {
    t.steps(update, update + 1);
    const double d = std::min(0.3, (1.0 + double(update)) / (10.0 + double(update)));  // 2/11, 3/12, then 0.3
    const Values now = t.trained();
    for (auto& [name, values] : expected)
      for (size_t i = 0; i < values.size(); ++i) values[i] = d * values[i] + (1 - d) * now.at(name)[i];
    const Values found = t.averages();
    for (const auto& [name, values] : expected) BOOST_TEST(is_close(found.at(name), values, 1e-5), name);
  }
  const Values now = t.trained(), kept = t.moments();
  for (const auto& [name, values] : now) {
    BOOST_TEST((kept.at(name + ".unaveraged") == values), name);
    BOOST_TEST((t.averages().at(name) != values), name);
  }
  for (const double decay : {-1.0, 1.0, 1.5, std::nan("")})
    BRAID_CHECK_FAILS(t.trainer.average_weights(decay), ErrorKind::setting, "from 0 (none) to below 1, found ");
  BOOST_TEST((t.averages() != now));  // it is still there
  Training without(0);
  without.steps(1, 6);
  BOOST_TEST((without.trained() == now));  // training itself knows nothing of it
  BOOST_TEST((without.averages() == now));
}

BOOST_AUTO_TEST_CASE(the_model_computes_with_it_for_a_while) {
  for (const std::optional<DType> compute : {std::optional<DType>(), std::optional(DType::bf16)}) {
    Training t(0.9, compute);
    t.steps(0, 3);
    TempFolder run;
    t.save(run.path, 3);
    const models::LoadedModel loaded =
        models::load_model(run.path / models::step_name(3), {.dtype = compute.value_or(DType::f32)});
    const double expected = models::evaluate(*loaded.model, {small_batch(7)});
    const double before = models::evaluate(t.model, {small_batch(7)});
    const Values trained = t.trained(), averages = t.averages();
    double inside = 0;
    t.trainer.with_average([&] { inside = models::evaluate(t.model, {small_batch(7)}); });
    BOOST_TEST(inside == expected);
    BOOST_TEST(inside != before);
    BOOST_CHECK_THROW(t.trainer.with_average([] { fail("test", "a measurement that fails"); }), Error);
    BOOST_TEST((t.trained() == trained));
    BOOST_TEST((t.averages() == averages));
    BOOST_TEST(models::evaluate(t.model, {small_batch(7)}) == before);
    t.trainer.with_average([] {});
    BOOST_TEST(models::evaluate(t.model, {small_batch(7)}) == before);
  }
}

BOOST_AUTO_TEST_CASE(a_resumed_run_has_the_same_bits) {
  for (const std::optional<DType> compute : {std::optional<DType>(), std::optional(DType::bf16)}) {
    Training whole(0.9, compute), before(0.9, compute), after(0.9, compute);
    whole.steps(0, 4);
    before.steps(0, 2);
    TempFolder run;
    before.save(run.path, 2);
    after.steps(5, 6);  // another state
    models::load_checkpoint(run.path / models::step_name(2), after.trainer);
    BOOST_TEST((after.averages() == before.averages()));
    after.steps(2, 4);
    BOOST_TEST((after.trained() == whole.trained()));
    BOOST_TEST((after.averages() == whole.averages()));
    BOOST_TEST((after.moments() == whole.moments()));
  }
}

BOOST_AUTO_TEST_CASE(it_may_begin_and_end_at_a_resume) {
  Training whole(0), with(0.9), without(0), resumed(0.9), ended(0);
  whole.steps(0, 4), with.steps(0, 2), without.steps(0, 2);
  TempFolder averaged, plain;
  with.save(averaged.path, 2), without.save(plain.path, 2);
  models::load_checkpoint(averaged.path / models::step_name(2), ended.trainer);
  ended.steps(2, 4);
  BOOST_TEST((ended.trained() == whole.trained()));
  BOOST_TEST((ended.averages() == whole.trained()));
  models::load_checkpoint(plain.path / models::step_name(2), resumed.trainer);
  BOOST_TEST((resumed.averages() == without.trained()));
  resumed.steps(2, 4);
  BOOST_TEST((resumed.trained() == whole.trained()));
  BOOST_TEST((resumed.averages() != whole.trained()));
}

BOOST_AUTO_TEST_CASE(parameters_that_are_never_trained_have_none) {
  Training t(0.9, {}, {nn::parse_group("* frozen"), nn::parse_group("*.dyn_w_proj.* trained")});
  t.steps(0, 2);
  int64_t unaveraged = 0;
  for (const auto& [name, values] : t.moments()) {
    if (!name.ends_with(models::Trainer::kUnaveraged)) continue;
    ++unaveraged;
    BOOST_TEST(name.find(".dyn_w_proj.") != std::string::npos, name);
  }
  BOOST_TEST(unaveraged > 0);
  TempFolder run;
  t.save(run.path, 2);
  Training after(0.9, {}, {nn::parse_group("* frozen"), nn::parse_group("*.dyn_w_proj.* trained")});
  models::load_checkpoint(run.path / models::step_name(2), after.trainer);
  BOOST_TEST((after.trained() == t.trained()));
  BOOST_TEST((after.averages() == t.averages()));
}

BOOST_AUTO_TEST_SUITE_END()
