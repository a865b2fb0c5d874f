// braid train on packed documents.
#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(train_documents)

BOOST_AUTO_TEST_CASE(separate_documents_train_otherwise_and_resume_to_the_same_bytes) {
  const std::vector<std::string> separate = {"data.documents=separate", "model.block_size=512",
                                             "schedule.name=constant"};
  const auto with = [&](const char* more) {
    std::vector<std::string> all = separate;
    all.push_back(more);
    return all;
  };
  const fs::path whole = world().fresh(), stopped = world().fresh(), joined = world().fresh();
  const Outcome result = train(whole, with("run.threads=2"));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(train(stopped, with("train.steps=4 run.threads=1")).code == 0);
  const Outcome rest = train(stopped, with("train.recompute=true"));
  BOOST_TEST(rest.code == 0, rest.output);
  BOOST_TEST((weights(step(stopped, kSteps)) == weights(step(whole, kSteps))));
  BOOST_TEST(train(joined, {"model.block_size=512", "schedule.name=constant"}).code == 0);
  BOOST_TEST((weights(step(whole, kSteps)) != weights(step(joined, kSteps))));
  BOOST_TEST(slurp(whole / "config.resolved.toml").find("\ndocuments = \"separate\" ") != std::string::npos);
  check_failure(train(world().fresh(), {"data.documents=apart"}), 2, "data.documents");
}

BOOST_AUTO_TEST_SUITE_END()
