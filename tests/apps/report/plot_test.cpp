// The plot command, run as the real program.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>

#include "apps/train/log.h"
#include "braid/tensor/detail/utf8.h"
#include "tests/apps/support.h"

using namespace braid::apps;
using braid::test::run;
using braid::test::Scratch;
using braid::test::slurp;
using braid::test::write;

BOOST_AUTO_TEST_SUITE(plot)

static void make_run(const std::filesystem::path& folder, int64_t steps, double offset) {
  std::filesystem::create_directories(folder);
  RunLog log(folder, 0);
  for (int64_t step = 1; step <= steps; ++step) {
    LogRow row{.step = step, .loss = offset + 4.0 / double(step), .lr = 1e-3, .grad_norm = 1, .tok_per_s = 5000};
    row.elapsed_s = double(step);
    if (step % 10 == 0) row.val_loss = row.loss + 0.125, row.task_acc = 0.5;
    log.append(row);
  }
}

static size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

BOOST_AUTO_TEST_CASE(one_run_gets_its_picture_and_numbers) {
  const Scratch scratch;
  make_run(scratch / "demo", 40, 1);
  const auto result = run("plot " + (scratch / "demo").string());
  BOOST_TEST(result.code == 0);
  BOOST_TEST(result.output.find("demo") != std::string::npos);
  const std::string svg = slurp(scratch / "demo/plots/run.svg");
  for (const char* part : {"<svg xmlns=", "Loss (nats per token)", "Learning rate", "Gradient norm", "tokens/s",
                           "Task accuracy", "prefers-color-scheme: dark", ">step<", "Made by: braid plot "})
    BOOST_TEST(svg.find(part) != std::string::npos, part);
  BOOST_TEST(svg.find("1.2250") != std::string::npos);  // final validation: 1 + 4/40 + 0.125
  BOOST_TEST(svg.find("nan") == std::string::npos);
  const std::string csv = slurp(scratch / "demo/plots/run.csv");
  BOOST_TEST(csv.starts_with("run,loss_average,step,loss,"));
  BOOST_TEST(count(csv, "\n") == 41u);
  BOOST_TEST(csv.find("\"demo\",") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(values_that_are_all_zero_get_an_axis_of_ordinary_numbers) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "zero");
  RunLog(scratch / "zero", 0).append({.step = 1, .loss = 2, .task_acc = 0, .lr = 1e-3});
  BOOST_TEST(run("plot " + (scratch / "zero").string()).code == 0);
  const std::string svg = slurp(scratch / "zero/plots/run.svg");
  BOOST_TEST(svg.find("Task accuracy (%)") != std::string::npos);
  BOOST_TEST(svg.find("e-1") == std::string::npos);  // as in 2e-11
}

BOOST_AUTO_TEST_CASE(several_runs_are_overlaid) {
  const Scratch scratch;
  make_run(scratch / "a", 30, 1);
  make_run(scratch / "b", 50, 2);
  const std::string out = (scratch / "both.svg").string();
  const auto result = run("plot " + (scratch / "a").string() + " " + (scratch / "b/log.csv").string() + " -o " + out +
                          " --x time --log-y --name 'x < y' --name second");
  BOOST_TEST(result.code == 0);
  const std::string svg = slurp(out);
  BOOST_TEST(svg.find("x &lt; y") != std::string::npos);
  BOOST_TEST(svg.find(">second<") != std::string::npos);
  BOOST_TEST(svg.find("time (s)") != std::string::npos);
  BOOST_TEST(svg.find("log scale") != std::string::npos);
  BOOST_TEST(count(svg, "\"line c0\"") >= 5u);  // legend and panels
  BOOST_TEST(count(svg, "\"line c0\"") == count(svg, "\"line c1\""));
  BOOST_TEST(slurp(scratch / "both.csv").find("\"second\",") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(its_own_numbers_are_the_same_runs_again) {
  const Scratch scratch;
  make_run(scratch / "a", 30, 1);
  make_run(scratch / "b", 20, 2);
  const std::string here = scratch.path().string();
  const std::string words =
      run("plot " + here + "/a " + here + "/b --name 'x, \"y\"' --name z -o " + here + "/p.svg").output;
  const auto again = run("plot " + here + "/p.csv -o " + here + "/q.svg");
  BOOST_TEST(again.output.substr(0, again.output.find("wrote")) == words.substr(0, words.find("wrote")));
  BOOST_TEST(slurp(scratch / "p.csv") == slurp(scratch / "q.csv"));
  BOOST_TEST(run("plot " + here + "/p.csv " + here + "/a -o " + here + "/r.svg").output.find("p.csv/z ") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(long_runs_stay_small) {
  const Scratch scratch;
  make_run(scratch / "long", 20000, 1);
  BOOST_TEST(run("plot " + (scratch / "long").string()).code == 0);
  BOOST_TEST(std::filesystem::file_size(scratch / "long/plots/run.svg") < 300000u);
}

BOOST_AUTO_TEST_CASE(losses_one_unit_apart_are_drawn_as_equal) {
  const Scratch scratch;
  for (const char* rows : {"1,5\n2,5.000000000000001\n", "1,1e17\n2,1.0000000000000002e17\n", "1,1e300\n2,-1e300\n"}) {
    write(scratch / "log.csv", std::string("step,loss\n") + rows);
    for (const char* flag : {"", " --log-y"})
      BOOST_TEST(run("plot " + scratch.path().string() + flag, "ulimit -v 8000000; ulimit -t 20;").code == 0);
  }
}

BOOST_AUTO_TEST_CASE(runs_without_a_step_are_left_out) {
  const Scratch scratch;
  make_run(scratch / "out/a", 200, 1);
  std::filesystem::create_directories(scratch / "out/b");
  RunLog(scratch / "out/b", 0);
  std::filesystem::create_directories(scratch / "out/data");
  const std::string out = scratch.path().string();
  auto result = run("plot " + out + "/out/* -o " + out + "/all.svg");
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(result.output.find("out/b has no step yet: left out") != std::string::npos, result.output);
  BOOST_TEST(result.output.find("out/data has no log.csv: left out") != std::string::npos, result.output);
  // The last value as it is in the log, and the smoothed one by that name.
  BOOST_TEST(result.output.find("loss  smoothed loss  validation") != std::string::npos, result.output);
  BOOST_TEST(result.output.find("1.0200") != std::string::npos, result.output);
  result = run("plot " + out + "/out/b " + out + "/out/data -o " + out + "/none.svg");
  BOOST_TEST(result.code == 3);
  BOOST_TEST(result.output.find("error: nothing to plot: ") != std::string::npos, result.output);
  BOOST_TEST(run("plot " + out + "/out/b -o " + out + "/none.svg").code == 3);
  BOOST_TEST(run("plot " + out + "/out/a " + out + "/out/missing -o " + out + "/none.svg").code == 3);
}

BOOST_AUTO_TEST_CASE(any_name_of_a_folder_gives_valid_text) {
  const Scratch scratch;
  make_run(scratch / "bad\xff\x01run", 3, 1);
  BOOST_TEST(run("plot '" + (scratch / "bad\xff\x01run").string() + "' -o " + (scratch / "x.svg").string()).code == 0);
  for (const char* name : {"x.svg", "x.csv"}) {
    const std::string text = slurp(scratch / name);
    BOOST_TEST(braid::detail::valid_utf8(text), name);
    BOOST_TEST(text.find('\x01') == std::string::npos, name);
  }
}

BOOST_AUTO_TEST_CASE(a_pipe_named_log_is_rejected_at_once) {
  const Scratch scratch;
  BOOST_REQUIRE(::mkfifo((scratch / "log.csv").c_str(), 0600) == 0);
  const auto result = run("plot " + scratch.path().string(), "timeout 20");
  BOOST_TEST(result.code == 3, result.output);
  BOOST_TEST(result.output.find("found a device or pipe") != std::string::npos, result.output);
}

BOOST_AUTO_TEST_CASE(bad_input_gets_a_sentence_and_writes_nothing) {
  const Scratch scratch;
  const auto failure = [&](const std::string& arguments, int code, const std::string& words) {
    const auto result = run("plot " + arguments);
    BOOST_TEST(result.code == code, result.output);
    BOOST_TEST(result.output.starts_with("error: "), result.output);
    BOOST_TEST(count(result.output, "\n") == 1u, result.output);
    BOOST_TEST(result.output.find(words) != std::string::npos, result.output);
  };
  const std::string here = scratch.path().string();
  write(scratch / "nan.csv", "step,loss\n1,nan\n");
  write(scratch / "log.csv", "step,loss\n1,2\n2,1\n");
  failure(here + "/none", 3, "No such file");
  failure(here + "/nan.csv", 3, "expected at least one finite loss");
  failure(here + " -o " + here + "/log.svg", 2, "over the log");
  failure(here + " -o " + here + "/log.png", 2, "ending in .svg");
  failure(here + " --x tokens", 3, "expected the column tokens");
  failure(here + " --name a --name b", 2, "--name must be given once per run");
  failure(here + " -o /proc/none/x.svg", 4, "cannot create folder");
  BOOST_TEST(slurp(scratch / "log.csv") == "step,loss\n1,2\n2,1\n");
  BOOST_TEST(!std::filesystem::exists(scratch / "plots"));
}

BOOST_AUTO_TEST_SUITE_END()
