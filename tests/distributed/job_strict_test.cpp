// run.strict under mpirun: any layout, and resumes on others, leave the bytes of one process, validation's too.
#include "braid/models/training/checkpoint/checkpoint.h"
#include "tests/apps/train/measured_columns.h"
#include "tests/distributed/job_support.h"

using namespace braid;
using namespace braid::test;
using namespace braid::test::jobs;

BOOST_AUTO_TEST_SUITE(job_strict)

namespace {
std::string strict(const fs::path& out, const std::string& more) {
  return train(out,
               "run.strict=true train.dtype=f32 schedule.name=constant checkpoint.interval=2 checkpoint.keep_every=4"
               " checkpoint.best=true eval.interval=2 sample.interval=2 " +
                   more);
}
std::string weights(const fs::path& out) {
  const fs::path last = out / models::step_name(10);
  return read_file(last / "model.safetensors") + read_file(last / "trainer/optimizer.safetensors");
}
void check_same(const fs::path& got, const fs::path& want, const std::string& what) {
  BOOST_TEST((weights(got) == weights(want)), what);
  for (const char* file : {"weights.csv", "best", "samples.txt", "reference.safetensors"})
    BOOST_TEST((read_file(got / file) == read_file(want / file)), what + ": " + file);
  BOOST_TEST(
      without_measured_columns(read_file(got / "log.csv")) == without_measured_columns(read_file(want / "log.csv")),
      what);
}
}  // namespace

BOOST_AUTO_TEST_CASE(ranks_leave_the_bytes_of_one_process) {
  const fs::path one = world().fresh();
  BOOST_TEST(says(run(strict(one, "")), 0, "trained 10 steps"));
  BOOST_TEST(weights(one).size() > 10000u);
  for (const int ranks : {2, 3, 4}) {
    const fs::path out = world().fresh();
    const std::string more = ranks == 2 ? "train.batch_size=2 train.accumulate=2" : "";
    BOOST_TEST(says(run(mpirun(ranks) + strict(out, more)), 0, "trained 10 steps"));
    check_same(out, one, std::to_string(ranks) + " ranks");
  }
  for (const char* layout : {"parallel.tensor=2", "parallel.context=2", "parallel.tensor=2 parallel.context=2",
                             "parallel.tensor=2 parallel.data=2"}) {
    const fs::path out = world().fresh();
    const int ranks = std::string(layout).find(' ') == std::string::npos ? 2 : 4;
    BOOST_TEST(says(run(mpirun(ranks) + strict(out, layout)), 0, "trained 10 steps"));
    check_same(out, one, layout);
  }
  const fs::path changed = world().fresh();
  BOOST_TEST(says(run(mpirun(4) + strict(changed, "train.steps=2 parallel.tensor=2")), 0, "trained 2 steps"));
  BOOST_TEST(says(run(mpirun(3) + strict(changed, "train.steps=4")), 0, "resuming from"));
  BOOST_TEST(says(run(mpirun(2) + strict(changed, "train.steps=6 parallel.context=2")), 0, "resuming from"));
  BOOST_TEST(says(run(strict(changed, "")), 0, "resuming from"));
  check_same(changed, one, "resumed");
  const std::string verify = braid_program() + " verify " + one.string() + " --steps 4..7";
  BOOST_TEST(says(run(mpirun(3) + verify), 0, "verified: "));
  BOOST_TEST(says(run(mpirun(4) + verify + " parallel.tensor=2 parallel.context=2"), 0, "verified: "));
  BOOST_TEST(says(run(mpirun(2) + verify + " optimizer.lr=0.1"), 5, "step 5 of "));
}

BOOST_AUTO_TEST_SUITE_END()
