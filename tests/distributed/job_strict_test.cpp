// run.strict under mpirun: any layout, and resumes on others, leave the bytes of one process, validation's too.
#include "braid/models/training/checkpoint/checkpoint.h"
#include "tests/apps/train/measured_columns.h"
#include "tests/distributed/job_support.h"
#include "tests/support/idx_images.h"

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
  BOOST_TEST(says(run(mpirun(2) + verify + " optimizer.lr=0.1"), 2, "unexpected setting"));
}

// Data ranks alone share these models. A run of three, resumed by two, is that of one process.
BOOST_AUTO_TEST_CASE(images_pairs_and_preferences_too) {
  const fs::path start = world().fresh(), in = world().folder.path / "strict-images";
  BOOST_TEST(says(run(train(start, "")), 0, "trained"));
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += "{\"prompt\": \"" + std::to_string(i * 37) + " \", \"chosen\": \"" + std::to_string(i % 9) +
             "\", \"rejected\": \"" + std::to_string(i * i) + "\"}\n";
  world().folder.write("strict.jsonl", lines);
  const std::string data = world().folder / "strict-data-";
  const std::string images = "--images " + write_idx_images(in, "train", 30) + " --val " +
                             write_idx_images(in, "t10k", 11) + " -o " + data + "images";
  BOOST_TEST(says(run(braid_program() + " prepare " + images), 0, ""));
  BOOST_TEST(says(run(braid_program() + " prepare " + (world().folder / "strict.jsonl") +
                      " --preferences --val-fraction 0.2 -o " + data + "preferences"),
                  0, ""));
  const std::string small = " model.hidden_size=32 model.intermediate_size=64 ";
  const std::string tasks[] = {
      "data.path=" + data + "preferences train.init_from=" + start.string() + " data.seq_len=16 sample.interval=2",
      "data.path=pairs:dates model.preset=dc-seq2seq-tiny model.dropout=0.1 sample.interval=2" + small,
      "data.path=" + data + "images model.preset=dc-vit-28 augment.mixup=0.2 augment.flip=true" + small};
  for (const std::string& task : tasks) {
    const auto line = [&](const fs::path& out, const std::string& more) {
      return braid_program() + " train run.out=" + out.string() + " " + task +
             " run.strict=true run.threads=1 train.steps=10 train.batch_size=6 eval.interval=2 eval.samples=7"
             " checkpoint.interval=2 checkpoint.keep_every=4 log.interval=1 guard.spike=0 schedule.name=constant"
             " schedule.warmup=2 checkpoint.best=true " +
             more;
    };
    const fs::path one = world().fresh(), out = world().fresh();
    BOOST_TEST(says(run(line(one, "")), 0, "trained 10 steps"));
    BOOST_TEST(says(run(mpirun(3) + line(out, "train.steps=4 train.batch_size=3 train.accumulate=2")), 0, "trained"));
    BOOST_TEST(says(run(mpirun(2) + line(out, "")), 0, "resuming from"));
    check_same(out, one, task);
    BOOST_TEST(says(run(mpirun(2) + braid_program() + " verify " + one.string() + " --steps 4..6"), 0, "verified: "));
  }
}

BOOST_AUTO_TEST_SUITE_END()
