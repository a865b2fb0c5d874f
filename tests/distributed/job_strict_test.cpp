// run.strict under mpirun: any layout, and resumes on others, leave the bytes of one process.
#include "braid/models/training/checkpoint/checkpoint.h"
#include "tests/distributed/job_support.h"

using namespace braid;
using namespace braid::test::jobs;

BOOST_AUTO_TEST_SUITE(job_strict)

namespace {
std::string strict(const fs::path& out, const std::string& more) {
  return train(
      out,
      "run.strict=true train.dtype=f32 schedule.name=constant checkpoint.interval=4 checkpoint.keep_every=4 " + more);
}
std::string weights(const fs::path& out) {
  const fs::path last = out / models::step_name(10);
  return read_file(last / "model.safetensors") + read_file(last / "trainer/optimizer.safetensors");
}
}  // namespace

BOOST_AUTO_TEST_CASE(ranks_leave_the_bytes_of_one_process) {
  const fs::path one = world().fresh();
  BOOST_TEST(says(run(strict(one, "")), 0, "trained 10 steps"));
  const std::string want = weights(one), hashes = read_file(one / "weights.csv");
  BOOST_TEST(want.size() > 10000u);
  for (const int ranks : {2, 3, 4}) {
    const fs::path out = world().fresh();
    const std::string more = ranks == 2 ? "train.batch_size=2 train.accumulate=2" : "";
    BOOST_TEST(says(run(mpirun(ranks) + strict(out, more)), 0, "trained 10 steps"));
    BOOST_TEST((weights(out) == want), ranks << " ranks");
    BOOST_TEST(read_file(out / "weights.csv") == hashes);
  }
  for (const char* layout : {"parallel.tensor=2", "parallel.context=2", "parallel.tensor=2 parallel.context=2",
                             "parallel.tensor=2 parallel.data=2"}) {
    const fs::path out = world().fresh();
    const int ranks = std::string(layout).find(' ') == std::string::npos ? 2 : 4;
    BOOST_TEST(says(run(mpirun(ranks) + strict(out, layout)), 0, "trained 10 steps"));
    BOOST_TEST((weights(out) == want), layout);
    BOOST_TEST(read_file(out / "weights.csv") == hashes, layout);
  }
  const fs::path changed = world().fresh();
  BOOST_TEST(says(run(mpirun(4) + strict(changed, "train.steps=3 parallel.tensor=2")), 0, "trained 3 steps"));
  BOOST_TEST(says(run(mpirun(3) + strict(changed, "train.steps=5")), 0, "resuming from"));
  BOOST_TEST(says(run(mpirun(2) + strict(changed, "train.steps=7 parallel.context=2")), 0, "resuming from"));
  BOOST_TEST(says(run(strict(changed, "")), 0, "resuming from"));
  BOOST_TEST((weights(changed) == want));
  const std::string verify = test::braid_program() + " verify " + one.string() + " --steps 4..7";
  BOOST_TEST(says(run(mpirun(3) + verify), 0, "verified: "));
  BOOST_TEST(says(run(mpirun(4) + verify + " parallel.tensor=2 parallel.context=2"), 0, "verified: "));
  BOOST_TEST(says(run(mpirun(2) + verify + " optimizer.lr=0.1"), 5, "step 5 of "));
}

BOOST_AUTO_TEST_SUITE_END()
