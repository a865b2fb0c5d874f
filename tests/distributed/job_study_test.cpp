// braid study under mpirun: its processes train each run together, one of them plans and reports.
#include "apps/cli/text.h"
#include "tests/distributed/job_support.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test::jobs;

BOOST_AUTO_TEST_SUITE(job_study)

namespace {

// Two variants of a few steps.
fs::path study_file(const fs::path& out, const std::string& base, const std::string& more = "") {
  const fs::path file = out.string() + ".toml";
  std::ofstream(file) << "[study]\nname = \"tiny\"\nout = \"" << out.string()
                      << "\"\nseeds = [1]\nsteps = [4]\n[base]\n"
                      << "data.path = \"" << world().data() << "\"\n"
                      << "model.n_layer = 1\nmodel.dim = 16\nmodel.n_head = 2\nmodel.block_size = 32\n"
                         "train.batch_size = 2\ntrain.dtype = \"f64\"\nschedule.warmup = 1\neval.interval = 4\n"
                         "eval.samples = 2\ncheckpoint.interval = 2\nguard.spike = 0\nrun.threads = 1\n"
                      << base
                      << "[variants.plain]\nmodel.compose = \"none\"\n[variants.full]\nmodel.compose = \"full\"\n"
                      << more;
  return file;
}

Outcome study(int ranks, const fs::path& file, const std::string& flags = "") {
  const std::string launcher = ranks > 1 ? mpirun(ranks) + "--quiet " : "";
  return run("timeout 120 " + launcher + test::braid_program() + " study " + file.string() + " " + flags);
}

// Validation losses by run.
std::map<std::string, double> losses(const fs::path& out) {
  std::map<std::string, double> values;
  const std::vector<std::string> lines = apps::split(read_file(out / "report/runs.csv"), '\n');
  const std::vector<std::string> names = apps::split(lines.at(0), ',');
  const auto column = std::ranges::find(names, "validation_loss") - names.begin();
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = apps::split(lines[i], ',');
    if (cells.size() == names.size()) values[cells[0]] = std::stod(cells[static_cast<size_t>(column)]);
  }
  return values;
}

}  // namespace

BOOST_AUTO_TEST_CASE(processes_train_each_run_together) {
  const fs::path one = world().fresh(), data = world().fresh(), tensor = world().fresh();
  BOOST_TEST(says(study(1, study_file(one, "")), 0, "wrote " + one.string() + "/report"));
  const std::map<std::string, double> expected = losses(one);
  BOOST_TEST(expected.size() == 2u);
  for (const auto& [out, base] : {std::pair{data, ""}, {tensor, "parallel.tensor = 2\n"}}) {
    const fs::path file = study_file(out, base);
    const Outcome o = study(2, file);
    BOOST_TEST(says(o, 0, " as 2 processes on 1 host"));
    for (const char* line : {"run 1 of 2: one-plain-4-s1\n", "run 2 of 2: one-full-4-s1\n", "# tiny\n", "/report\n"})
      BOOST_TEST(count(o.output, line) == 1, line << " in " << o.output);
    for (const auto& [name, loss] : losses(out)) BOOST_TEST(std::fabs(loss - expected.at(name)) <= 1e-11 * loss, name);
    BOOST_TEST(losses(out).size() == expected.size());

    // Finished runs are trained by nobody again, also not by another number of processes.
    for (const int ranks : {1, 2}) {
      const Outcome again = study(ranks, file);
      BOOST_TEST(says(again, 0, "/report\n"));
      BOOST_TEST(count(again.output, "run 1 of 2") == 0, again.output);
    }
  }
}

// A study that the processes of one job begin, those of another finish.
BOOST_AUTO_TEST_CASE(a_search_and_parts_under_mpirun) {
  const fs::path out = world().fresh();
  const fs::path file = study_file(out, "", "[search]\nrates = [\"1e-3\", \"1e-2\"]\n");
  BOOST_TEST(says(study(2, file, "--part 1/2"), 75, "2 of 4 runs of the learning-rate search are finished"));
  const Outcome rest = study(2, file);
  BOOST_TEST(says(rest, 0, "learning rate of full: "));
  BOOST_TEST(count(rest.output, "learning rate of full: ") == 1, rest.output);
  BOOST_TEST(losses(out).size() == 6u);
}

// One process plans and reports; the others start MPI with it, or it would wait for them.
BOOST_AUTO_TEST_CASE(plans_and_reports_are_printed_once) {
  const fs::path out = world().fresh(), file = study_file(out, "");
  const Outcome plan = study(2, file, "--dry-run");
  BOOST_TEST(says(plan, 0, "on 64 H100: "));
  BOOST_TEST(count(plan.output, "one-plain-4-s1") == 1, plan.output);
  BOOST_TEST(!fs::exists(out));
  const Outcome report = study(2, file, "--report");
  BOOST_TEST(says(report, 0, "0 runs, 2 not finished"));
  BOOST_TEST(count(report.output, "# tiny") == 1, report.output);
}

BOOST_AUTO_TEST_CASE(processes_that_do_not_fit_are_rejected_in_one_line) {
  const fs::path out = world().fresh();
  const auto rejected = [&](const Outcome& o, const std::string& words) {
    BOOST_TEST(says(o, 2, words));
    BOOST_TEST(count(o.output, "\n") == 1, o.output);
    BOOST_TEST(!fs::exists(out / "runs"));
  };
  const fs::path file = study_file(out, "parallel.tensor = 2\n");
  rejected(study(1, file), "start them with mpirun -np 2 braid study ...");
  rejected(study(2, study_file(out, "parallel.tensor = 3\n")), "expected a product of 2, found the rest x 1 x 3");
  BOOST_TEST(says(study(2, out.string() + "-none.toml"), 3, "-none.toml"));
  rejected(study(2, file, "--part 3/2"), "bad value for --part: expected I/N");
}

BOOST_AUTO_TEST_SUITE_END()
