// A mixture under mpirun: the order and the losses of one process, killed and resumed inside a phase to the same bytes,
// and resumed on another layout.
#include <cmath>
#include <csignal>
#include <thread>

#include "apps/train/log/log.h"
#include "apps/train/run/run_status.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "tests/distributed/job_support.h"

using namespace braid;
using namespace braid::test::jobs;

BOOST_AUTO_TEST_SUITE(job_mixture)

namespace {

// The folder of all tests and one of letters: 3 to 1, from step 12 on (sequence 48) 1 to 4; a phase ends with step 24.
const std::string& mixture() {
  static const std::string text = [] {
    std::mt19937 random(6);
    for (int i = 0; i < 20; ++i) {
      std::string letters;
      for (int j = 0; j < 300; ++j) letters += static_cast<char>('a' + random() % 26);
      world().folder.write("letters-in/" + std::to_string(i) + ".txt", letters);
    }
    const std::string letters = world().folder / "letters";
    const Outcome made = run(test::braid_program() + std::string(" prepare ") + (world().folder / "letters-in") +
                             " --val-fraction 0.2 -o " + letters);
    if (made.code != 0) throw std::runtime_error(made.output);
    return "data.path= 'data.sources=[\"" + world().data() + " weight=3 weight=1@1536 weight=1@3072\", \"" + letters +
           " weight=1 weight=4@1536 weight=4@3072\"]' train.steps=24 train.dtype=f64 ";
  }();
  return text;
}

fs::path at(const fs::path& run, int64_t step) { return run / models::step_name(step); }

void check_same_bytes(const fs::path& found, const fs::path& expected, int64_t step) {
  for (const char* file : {"model.safetensors", "trainer/optimizer.safetensors"}) {
    BOOST_TEST(read_file(at(found, step) / file).size() > 1000u);
    BOOST_TEST((read_file(at(found, step) / file) == read_file(at(expected, step) / file)), file);
  }
}

bool close(double found, double expected) {
  return std::isnan(found) ? std::isnan(expected) : std::fabs(found - expected) <= 1e-10 * expected;
}

void check_log(const fs::path& found, const fs::path& expected) {
  const std::vector<apps::LogRow> got = apps::read_log(found), want = apps::read_log(expected);
  BOOST_REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    BOOST_TEST(close(got[i]["loss"], want[i]["loss"]));
    BOOST_REQUIRE(want[i].sources.size() == 4);
    for (const auto& [column, value] : want[i].sources)
      BOOST_TEST(close(got[i].of_source(column), value), column << " at step " << want[i].step);
  }
}

const fs::path& alone() {
  static const fs::path out = [] {
    const fs::path path = world().fresh();
    BOOST_REQUIRE(says(run(train(path, mixture())), 0, "trained 24 steps"));
    return path;
  }();
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_layout_reads_the_same_samples) {
  for (const char* layout :
       {"parallel.data=4", "parallel.data=2 parallel.tensor=2", "parallel.context=2 parallel.tensor=2"}) {
    const fs::path out = world().fresh();
    const Outcome o = run(mpirun(4) + train(out, mixture() + layout));
    BOOST_TEST(says(o, 0, "source letters: "), layout);
    // 48 sequences 3 to 1, 48 sequences 1 to 4.
    BOOST_TEST(says(o, 0, "source letters: 51 sequences, 53.12 %"), layout);
    check_log(out, alone());
  }
}

BOOST_AUTO_TEST_CASE(a_killed_job_resumes_inside_a_phase_to_the_same_bytes) {
  for (const int ranks : {1, 4}) {
    const std::string job = (ranks > 1 ? mpirun(ranks) : "");
    const fs::path straight = world().fresh(), out = world().fresh();
    const std::string flags = mixture() + "schedule.name=constant checkpoint.interval=8 train.steps=";
    Shell killed(job + train(out, flags + "1000000"), out.string() + ".txt");
    for (int wait = 0; wait < 3000 && !fs::exists(at(out, 16)); ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    BOOST_REQUIRE(fs::exists(at(out, 16)));
    ::kill(static_cast<pid_t>(apps::read_status(out)->pid), SIGKILL);  // rank 0
    BOOST_TEST(killed.wait() != 0);
    const int64_t last = models::step_folders(out).back().step;
    const std::string steps = std::to_string(last + 4);
    const Outcome resumed = run(job + train(out, flags + steps));
    BOOST_TEST(says(resumed, 0, "resuming from " + at(out, last).string()));
    BOOST_TEST(says(run(job + train(straight, flags + steps)), 0, "trained " + steps + " steps"));
    check_same_bytes(out, straight, last + 4);
  }
}

BOOST_AUTO_TEST_CASE(a_run_continues_on_another_layout) {
  const fs::path out = world().fresh();
  BOOST_TEST(says(run(train(out, mixture() + "train.steps=15 schedule.name=constant")), 0, "trained 15 steps"));
  BOOST_TEST(says(run(mpirun(4) + train(out, mixture() + "schedule.name=constant parallel.data=2 parallel.tensor=2")),
                  0, "resuming from "));
  const fs::path straight = world().fresh();
  BOOST_TEST(says(run(train(straight, mixture() + "schedule.name=constant")), 0, "trained 24 steps"));
  check_log(out, straight);
}

BOOST_AUTO_TEST_SUITE_END()
