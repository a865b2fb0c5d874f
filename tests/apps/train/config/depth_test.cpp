// model.depth: what it sets, what it leaves alone, and what it cannot be beside.
#include "apps/train/config/depth.h"

#include <boost/test/unit_test.hpp>

#include "apps/train/task/from_config.h"
#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(depth)

namespace {

struct Loaded {
  TrainConfig config;
  std::vector<std::string> notes;
  explicit Loaded(const std::vector<std::string>& settings)
      : notes(load_config(train_schema(config, model_settings()), "", settings)) {}
  int64_t model(const std::string& key) const { return std::get<int64_t>(config.model.values.at(key)); }
};

}  // namespace

// Depth 12 of plain attention: n = 12 x (4 x 768^2 + 3 x 768 x 2048) + norms.
BOOST_AUTO_TEST_CASE(it_gives_the_model_and_its_training) {
  const Loaded made({"model.depth=12", "model.compose=none"});
  BOOST_TEST(made.model("n_layer") == 12);
  BOOST_TEST(made.model("dim") == 768);
  BOOST_TEST(made.model("n_head") == 12);
  const double n = 12 * (4 * 768.0 * 768 + 3 * 768.0 * 2048 + 2 * 768 + 2 * 64) + 768;
  BOOST_TEST(std::fabs(made.config.optimizer.lr / (0.3118 * std::pow(120 * n * n, -0.125)) - 1) < 3e-3);
  BOOST_TEST(made.config.train.batch_size == 8);   // 16384 tokens
  BOOST_TEST(made.config.train.accumulate == 16);  // 128 sequences of 2048: 1.40 n^0.654 = 215 thousand tokens
  BOOST_TEST(made.config.train.steps == std::llround(20 * n / (128 * 2048)));
  BOOST_TEST(made.config.schedule.warmup == made.config.train.steps / 20);
  BOOST_TEST(made.notes.size() == 1U);
  BOOST_TEST(made.notes.at(0).find("model.depth=12: 85") == 0U, made.notes.at(0));
}

BOOST_AUTO_TEST_CASE(what_is_given_stays) {
  const Loaded made({"model.depth=4", "model.dim=384", "optimizer.lr=0.5", "train.batch_size=3", "train.steps=70"});
  BOOST_TEST(made.model("dim") == 384);
  BOOST_TEST(made.model("n_layer") == 4);
  BOOST_TEST(made.config.optimizer.lr == 0.5);
  BOOST_TEST(made.config.train.batch_size == 3);
  BOOST_TEST(made.config.train.steps == 70);
  BOOST_TEST(made.config.schedule.warmup == 3);
  for (const char* name : {"model.dim=", "optimizer.lr=", "train.batch_size=", "train.steps="})
    BOOST_TEST(made.notes.at(0).find(name) == std::string::npos, made.notes.at(0));
  // Under muP the rate is that of the base.
  const Loaded wide({"model.depth=12", "model.mup_base_width=384"}), plain({"model.depth=12"});
  BOOST_TEST(wide.config.optimizer.lr > plain.config.optimizer.lr);
  BOOST_TEST(Loaded({"model.depth=1"}).config.optimizer.lr == 0.00234);  // of 1e17 FLOPs
  BOOST_TEST(Loaded({}).notes.empty());
}

BOOST_AUTO_TEST_CASE(heads_are_64_to_128_wide) {
  for (int64_t depth = 1; depth <= 64; ++depth) {
    const int64_t heads = heads_of_depth(depth), width = 64 * depth;
    BOOST_TEST(width % (2 * heads) == 0, depth);  // rotary positions turn pairs
    BOOST_TEST((width / heads >= 64 && width / heads <= 128), depth << ": " << heads);
    if (depth <= 16) BOOST_TEST(width / heads == 64, depth);
  }
}

BOOST_AUTO_TEST_CASE(the_settings_that_are_printed_give_the_same_run) {
  const Scratch scratch;
  TrainConfig config, again;
  const Schema schema = train_schema(config, model_settings()), reloaded = train_schema(again, model_settings());
  load_config(schema, "", {"model.depth=6", "data.seq_len=512"});
  write(scratch / "resolved.toml", print_config(schema));
  load_config(reloaded, scratch / "resolved.toml", {});
  BOOST_TEST(differences(schema, reloaded).empty());
}

BOOST_AUTO_TEST_CASE(it_describes_a_new_model_of_text_alone) {
  BRAID_CHECK_FAILS(Loaded({"model.depth=4", "model.preset=dcformer-tiny"}), ErrorKind::setting,
                    "model.depth = 4 describes a new model: expected no model.preset beside it, found dcformer-tiny");
  BRAID_CHECK_FAILS(Loaded({"model.depth=4", "train.init_from=out/run"}), ErrorKind::setting,
                    "expected no train.init_from beside it");
  BRAID_CHECK_FAILS(Loaded({"model.depth=4", "model.model_type=vit"}), ErrorKind::setting, "dim");
  BRAID_CHECK_FAILS(Loaded({"model.depth=65"}), ErrorKind::setting, "an integer from 0 to 64");
}

BOOST_AUTO_TEST_SUITE_END()
