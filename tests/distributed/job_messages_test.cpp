// The output of braid train under mpirun: one message for a mistake, plain lines, and which process runs where.
#include "braid/distributed/comm/mpi_session.h"
#include "tests/distributed/job_support.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test::jobs;

BOOST_AUTO_TEST_SUITE(job_messages)

// All ranks find the mistake by themselves: rank 0 prints it, all end in order with the same code.
BOOST_AUTO_TEST_CASE(a_wrong_setting_is_said_once_and_without_an_abort) {
  const std::string quiet = mpirun(2) + "--quiet ";  // without the report of mpirun itself on exit codes
  for (const auto& [settings, code, words] :
       {std::tuple{"schedule.warmup=100", 2, "schedule.warmup is longer than the run"},
        {"data.path=/none", 3, "dataset.json"},
        {"--bogus", 2, "unknown flag '--bogus'"}}) {
    const Outcome o = run(quiet + train(world().fresh(), settings));
    BOOST_TEST(says(o, code, words));
    BOOST_TEST(count(o.output, "\n") == 1, o.output);
    BOOST_TEST(o.output.starts_with("error: "), o.output);
  }
}

BOOST_AUTO_TEST_CASE(output_of_a_job_is_plain_lines_that_begin_with_its_processes) {
  const fs::path out = world().fresh();
  const Outcome o = run(mpirun(2) + train(out, "parallel.tensor=2 train.steps=4 log.interval=2"));
  BOOST_TEST(says(o, 0, "trained 4 steps"));
  BOOST_TEST(count(o.output, "\033") == 0, o.output);
  BOOST_TEST(count(o.output, "step 2/4") == 1, o.output);
  BOOST_TEST(says(o, 0, " as 2 processes on 1 host:"));
  BOOST_TEST(says(o, 0, "  " + dist::host_name() + ": ranks 0-1, cpu, threads 1"));
  BOOST_TEST(read_file(out / "log.jsonl").find("\"ranks\":\"0-1\",\"devices\":\"cpu\"") != std::string::npos);
  const Outcome bar = run(mpirun(2) + train(world().fresh(), "parallel.tensor=2 train.steps=4 log.style=bar"));
  BOOST_TEST(says(bar, 0, "\033[K"));
}

BOOST_AUTO_TEST_CASE(a_changed_number_of_processes_is_listed_on_resume) {
  const fs::path out = world().fresh();
  BOOST_TEST(says(run(mpirun(2) + train(out, "train.steps=3 schedule.name=constant")), 0, "trained 3 steps"));
  const Outcome o = run(train(out, "train.steps=4 schedule.name=constant"));
  BOOST_TEST(says(o, 0, "  train.steps: 3 -> 4\n  processes: 2 -> 1\n"));
}

// prepare and convert in two processes would write the same folder.
BOOST_AUTO_TEST_CASE(a_command_of_one_process_runs_once) {
  const std::string quiet = mpirun(2) + "--quiet " + test::braid_program();
  const fs::path data = world().fresh();
  Outcome o = run(quiet + " prepare " + (world().folder / "in") + " -o " + data.string());
  BOOST_TEST(says(o, 0, "wrote " + data.string()));
  BOOST_TEST(count(o.output, "wrote") == 1, o.output);
  o = run(quiet + " info dcformer-tiny");
  BOOST_TEST(count(o.output, "Configuration") == 1, o.output);
  o = run(quiet + " convert /none -o " + data.string());
  BOOST_TEST(o.code == 3);
  BOOST_TEST(count(o.output, "error: ") == 1, o.output);
}

BOOST_AUTO_TEST_CASE(a_lost_launch_is_a_warning) {
  const Outcome o = run("env SLURM_PROCID=1 SLURM_NTASKS=2 " + train(world().fresh(), "train.steps=3"));
  BOOST_TEST(says(o, 0, "warning: SLURM_NTASKS=2, but this process is alone"));
  const Outcome step =
      run("env SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 " + train(world().fresh(), "train.steps=3"));
  BOOST_TEST(
      says(step, 0, "every process of the job would do all of the work by itself. Start the processes with srun"));
}

BOOST_AUTO_TEST_SUITE_END()
