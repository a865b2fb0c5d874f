#include "apps/train/config/origin.h"

#include <array>
#include <boost/test/unit_test.hpp>

#include "braid/distributed/comm/thread_transport.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using apps::TrainConfig;

BOOST_AUTO_TEST_SUITE(training_origin)

// As when a run writes a checkpoint while the ranks look for its newest one: they do not agree.
BOOST_AUTO_TEST_CASE(one_rank_finds_the_origin_of_all) {
  const TempFolder temp;
  for (const char* name : {"a", "b"}) temp.write(std::string(name) + "/config.json", "{}");
  std::array<TrainConfig, 2> found;
  const auto find = [&] {
    dist::run_thread_ranks(2, [&](const dist::Communicator& world) {
      TrainConfig config;
      config.run.out = temp / "run";
      config.train.init_from = temp / (world.rank() == 0 ? "a" : "b");
      config.train.init_base = temp / (world.rank() == 0 ? "b" : "a");
      std::vector<std::string> notes;
      found[static_cast<size_t>(world.rank())] = apps::with_found_origin(config, world, notes);
    });
  };
  find();
  for (const TrainConfig& config : found) {
    BOOST_TEST(config.train.init_from == temp / "a");
    BOOST_TEST(config.train.init_base == temp / "b");
  }
  // A run that resumes needs neither.
  temp.write("run/step-00000003/config.json", "{}");
  std::filesystem::remove_all(temp.path / "a");
  find();
  BOOST_TEST(found[1].train.init_from == temp / "b");
}

BOOST_AUTO_TEST_SUITE_END()
