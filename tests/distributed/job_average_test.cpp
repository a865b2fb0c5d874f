// train.ema under mpirun: the averages and validation of one process, stopped and resumed to the same bits, and the
// averages in what is exported.
#include <cmath>
#include <csignal>
#include <map>
#include <thread>

#include "apps/train/log/log.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/models/training/checkpoint/manifest.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/distributed/job_support.h"
#include "tests/support/compare.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test::jobs;

BOOST_AUTO_TEST_SUITE(job_average)

namespace {

constexpr double kDecay = 0.3;
const std::string kEma = "train.ema=0.3 ", kEvery = "checkpoint.keep_every=1 ";

using Values = std::map<std::string, std::vector<double>>;

Values values_in(const fs::path& file) {
  Values all;
  const io::SafetensorsFile tensors(file.string());
  for (const io::TensorInfo& info : tensors.tensors()) all[info.name] = tensors.load(info.name).to_vector<double>();
  return all;
}
fs::path at(const fs::path& run, int64_t step) { return run / models::step_name(step); }
Values weights(const fs::path& run, int64_t step) { return values_in(at(run, step) / "model.safetensors"); }

void check_close(const Values& found, const Values& expected, double tolerance) {
  BOOST_TEST(found.size() == expected.size());
  for (const auto& [name, values] : expected) BOOST_TEST(test::is_close(found.at(name), values, tolerance), name);
}

void check_same_bytes(const fs::path& found, const fs::path& expected, int64_t step) {
  for (const char* file : {"model.safetensors", "trainer/optimizer.safetensors"})
    BOOST_TEST((read_file(at(found, step) / file) == read_file(at(expected, step) / file)), file);
}

void check_log(const fs::path& found, const fs::path& expected) {
  const std::vector<apps::LogRow> got = apps::read_log(found), want = apps::read_log(expected);
  BOOST_REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    BOOST_TEST(std::fabs(got[i]["loss"] - want[i]["loss"]) <= 1e-11 * want[i]["loss"]);
    BOOST_TEST(std::isnan(got[i]["val_loss"]) == std::isnan(want[i]["val_loss"]));
    if (!std::isnan(want[i]["val_loss"]))
      BOOST_TEST(std::fabs(got[i]["val_loss"] - want[i]["val_loss"]) <= 1e-11 * want[i]["val_loss"]);
  }
}

// Ten steps of one process that average, and ten that do not.
const fs::path& alone(bool averaged) {
  static std::map<bool, fs::path> runs;
  if (!runs.contains(averaged)) {
    runs[averaged] = world().fresh();
    BOOST_REQUIRE(says(run(train(runs[averaged], kEvery + (averaged ? kEma : ""))), 0, "trained 10 steps"));
  }
  return runs[averaged];
}

// a <- d a + (1 - d) w from the first average and the weights of the run that does not average.
Values averages_by_formula() {
  Values average = weights(alone(true), 1);
  for (int64_t step = 2; step <= 10; ++step) {
    const double t = static_cast<double>(step), d = std::fmin(kDecay, (1 + t) / (10 + t));
    for (const auto& [name, trained] : weights(alone(false), step)) {
      std::vector<double>& a = average.at(name);
      for (size_t i = 0; i < a.size(); ++i) a[i] = d * a[i] + (1 - d) * trained[i];
    }
  }
  return average;
}

}  // namespace

BOOST_AUTO_TEST_CASE(averages_and_validation_are_those_of_one_process) {
  const Values expected = averages_by_formula(), trained = weights(alone(false), 10);
  check_close(weights(alone(true), 10), expected, 1e-12);
  BOOST_TEST(apps::read_log(alone(true)).back()["val_loss"] != apps::read_log(alone(false)).back()["val_loss"]);
  for (const auto& [ranks, mesh] : std::vector<std::pair<int, std::string>>{
           {2, ""}, {2, "parallel.tensor=2"}, {4, ""}, {4, "parallel.context=2 parallel.tensor=2"}}) {
    BOOST_TEST_CONTEXT(ranks << " processes " << mesh) {
      const fs::path many = world().fresh();
      BOOST_TEST(says(run(mpirun(ranks) + train(many, kEma + mesh)), 0, "trained 10 steps"));
      check_log(many, alone(true));
      check_close(weights(many, 10), expected, 1e-10);
      Values unaveraged;
      for (const auto& [name, values] : values_in(at(many, 10) / "trainer/optimizer.safetensors"))
        if (name.ends_with(models::Trainer::kUnaveraged))
          unaveraged[name.substr(0, name.size() - std::string(models::Trainer::kUnaveraged).size())] = values;
      check_close(unaveraged, trained, 1e-10);

      // Exports hold the average.
      const fs::path exported = many.string() + "-exported";
      BOOST_TEST(says(run(test::braid_program() + " convert " + many.string() + " -o " + exported.string()), 0, ""));
      check_close(values_in(exported / "model.safetensors"), weights(many, 10), 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_stopped_job_resumes_to_the_same_bits) {
  for (const auto& [ranks, mesh] :
       std::vector<std::pair<int, std::string>>{{2, ""}, {2, "parallel.tensor=2"}, {4, "parallel.tensor=2"}}) {
    BOOST_TEST_CONTEXT(ranks << " processes " << mesh) {
      const fs::path stopped = world().fresh(), whole = world().fresh();
      const std::string usual = kEma + mesh + " schedule.name=constant train.dtype=bf16 ";
      {
        Shell job(mpirun(ranks) + train(stopped, usual + "train.steps=100000 checkpoint.interval=3"),
                  stopped.string() + ".txt");
        for (int i = 0; i < 2400 && models::named_step(stopped / models::kLatestFile).value_or(0) < 6; ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
        ::kill(job.pid(), SIGUSR1);
        const int code = job.wait();
        BOOST_TEST(says({code, job.output()}, 75, "stopped by"));
      }
      std::vector<std::string> notes;
      const int64_t last = models::newest_checkpoint(stopped, notes).step;
      BOOST_REQUIRE(last >= 6);
      const std::string end = usual + "train.steps=" + std::to_string(last + 4);
      BOOST_TEST(says(run(mpirun(ranks) + train(stopped, end)), 0, "resuming from"));
      BOOST_TEST(says(run(mpirun(ranks) + train(whole, end)), 0, "trained"));
      check_same_bytes(stopped, whole, last + 4);
      BOOST_TEST(apps::read_log(stopped).back()["val_loss"] == apps::read_log(whole).back()["val_loss"]);
    }
  }
}

BOOST_AUTO_TEST_CASE(another_number_of_processes_resumes) {
  const fs::path out = world().fresh();
  const std::string short_run = kEma + "checkpoint.interval=4 ";
  BOOST_TEST(says(run(mpirun(2) + train(out, short_run + "parallel.tensor=2")), 0, "trained 10 steps"));
  for (const auto& [ranks, mesh] : std::vector<std::pair<int, std::string>>{{4, ""}, {1, ""}}) {
    fs::remove_all(at(out, 10));
    const std::string launcher = ranks > 1 ? mpirun(ranks) : "";
    BOOST_TEST(says(run(launcher + train(out, short_run + mesh)), 0, "resuming from"));
    check_log(out, alone(true));
    check_close(weights(out, 10), weights(alone(true), 10), 1e-10);
  }
}

BOOST_AUTO_TEST_SUITE_END()
