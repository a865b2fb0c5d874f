#include "apps/train/task/evaluation.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "tests/apps/support.h"
#include "tests/models/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_evaluation)

namespace {
TrainConfig sample_config(double timeout) {
  TrainConfig config;
  config.sample.prompt = "ab";
  config.sample.tokens = 12;
  config.parallel.timeout = timeout;
  return config;
}

std::string sample(const TrainConfig& config, const dist::ProcessMesh& mesh) {
  const models::text::ByteTokenizer tokenizer;
  const models::Dcformer model(small_config(), {1, 0}, mesh);
  const std::vector<std::optional<models::text::Dataset>> no_validation;
  return Evaluation(config, model, mesh, tokenizer, no_validation).sample().value_or("stopped");
}
}  // namespace

// They meet at every token here.
BOOST_AUTO_TEST_CASE(ranks_that_meet_during_a_sample_leave_it_as_it_is) {
  const std::string alone = sample(sample_config(0), {});
  BOOST_TEST(alone.starts_with("ab"));
  for (const auto& [context, tensor] : {std::pair{1, 1}, {1, 2}, {2, 1}}) {
    dist::run_thread_ranks(2 * context * tensor, [&, c = context, t = tensor](const dist::Communicator& world) {
      const dist::ProcessMesh mesh = dist::make_mesh(world, 2, c, t);
      const std::string text = sample(sample_config(1e-6), mesh), expected = mesh.data.rank() == 0 ? alone : "";
      check(text == expected, "test", [&] { return "expected '" + expected + "', found '" + text + "'"; });
    });
  }
}

// As a process that was frozen before another computes a sample.
BOOST_AUTO_TEST_CASE(a_rank_that_does_not_come_to_a_sample_is_named) {
  const TrainConfig config = sample_config(1);
  const auto one_comes_late = [&] {
    dist::run_thread_ranks(2, [&](const dist::Communicator& world) {
      const dist::ProcessMesh mesh = dist::make_mesh(world, 2, 1, 1);
      world.set_timeout(config.parallel.timeout);
      if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
      sample(config, mesh);
    });
  };
  BRAID_CHECK_FAILS(one_comes_late(), ErrorKind::process, "rank 1 did not answer within 1 s");
}

BOOST_AUTO_TEST_SUITE_END()
