// optimizer.name=muon: which parameters it takes as matrices, resuming, and mistakes.
#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_muon)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(tables_and_vectors_are_updated_by_elements) {
  const Outcome plan = train(world().fresh(), {"optimizer.name=muon", "--dry-run"});
  BOOST_TEST(plan.code == 0, plan.output);
  const auto line = [&](const std::string& label) {
    for (const std::string& text : split(plan.output, '\n'))
      if (text.find(label) != std::string::npos) return text;
    return std::string();
  };
  const std::string matrices = line("trained, as matrices"), rest = line("trained, by elements");
  for (const char* name :
       {"layers.*.attention.wqkv.weight", "layers.*.attention.wo.weight", "layers.*.feed_forward.w1"})
    BOOST_TEST(matrices.find(name) != std::string::npos, matrices);
  for (const char* name : {"tok_embeddings.weight", "layers.*.attention.q_norm.scale"})
    BOOST_TEST(rest.find(name) != std::string::npos, rest);
  BOOST_TEST(train(world().fresh(), {"--dry-run"}).output.find("as matrices") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_stopped_run_goes_on_to_the_same_bytes) {
  const std::vector<std::string> muon = {"optimizer.name=muon", "schedule.name=constant", "muon.heads=1",
                                         "muon.normalise=both", "'optimizer.groups=*.w2.* update=elements'"};
  const fs::path straight = world().fresh(), halves = world().fresh();
  BOOST_TEST(train(straight, muon).code == 0);
  std::vector<std::string> half = muon;
  half.push_back("train.steps=4");
  BOOST_TEST(train(halves, half).code == 0);
  BOOST_TEST(train(halves, muon).code == 0);
  BOOST_TEST((weights(step(halves, kSteps)) == weights(step(straight, kSteps))));
  check_failure(train(halves, {"optimizer.name=muon"}), 2, "matrices and never trained parameters (optimizer.groups");
  check_failure(train(halves, {"optimizer.name=adamw"}), 2,
                "is of another kind (optimizer.name: \"muon\" -> \"adamw\")");
}

BOOST_AUTO_TEST_CASE(wrong_settings_end_with_2) {
  const fs::path out = world().fresh();
  const auto wrong = [&](const std::string& setting, const char* words) {
    check_failure(train(out, {setting}), 2, words);
  };
  wrong("muon.momentum=1", "bad value for muon.momentum in the command line: expected a number from 0 to below 1");
  wrong("muon.scale=big", "bad value for muon.scale");
  wrong("muon.heads=-1", "bad value for muon.heads");
  wrong("muon.steps=0", "bad value for muon.steps");
  wrong("muon.normalise=all", "bad value for muon.normalise");
  wrong("muon.dtype=f16", "bad value for muon.dtype in the command line: expected one of f32, bf16");
  wrong("muon.nesterov=2", "bad value for muon.nesterov");
  wrong("'optimizer.groups=*.w1.* update=rows'", "'update=rows', not update=matrix or update=elements");
  wrong("'optimizer.groups=*.w1.* update=matrix'",
        "update=matrix' needs a rule that updates whole matrices, found adamw");
}

BOOST_AUTO_TEST_SUITE_END()
