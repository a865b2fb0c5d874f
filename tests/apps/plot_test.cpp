// The plot command, run as the real program.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <sstream>

#include "apps/chart/group.h"
#include "apps/train/log/log.h"
#include "apps/train/plan/run_flops.h"
#include "braid/models/cost/trace.h"
#include "braid/models/registry.h"
#include "braid/tensor/base/utf8.h"
#include "tests/apps/support.h"
#include "tests/support/sanitizer.h"

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(plot)

using braid::test::count;
using braid::test::run;
using braid::test::Scratch;
using braid::test::slurp;
using braid::test::write;

static void make_run(const std::filesystem::path& folder, int64_t steps, double offset) {
  std::filesystem::create_directories(folder);
  RunLog log(folder, 0);
  for (int64_t step = 1; step <= steps; ++step) {
    LogRow row(step, {{"loss", offset + 4.0 / double(step)}, {"lr", 1e-3}, {"grad_norm", 1}, {"tok_per_s", 5000}});
    row["elapsed_s"] = double(step);
    if (step % 10 == 0) row["val_loss"] = row["loss"] + 0.125, row["task_acc"] = 0.5;
    log.append(row);
  }
}

BOOST_AUTO_TEST_CASE(one_run_gets_its_chart_and_numbers) {
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

BOOST_AUTO_TEST_CASE(mean_and_spread_of_a_sample) {
  const auto [mean, spread] = mean_and_spread({1, 2, 6});
  BOOST_TEST(mean == 3.0);
  BOOST_TEST(spread * spread == 7.0, boost::test_tools::tolerance(1e-14));  // (4 + 1 + 9) / 2
  BOOST_TEST(mean_and_spread({5}).spread == 0.0);
  BOOST_TEST(std::isnan(mean_and_spread({1, not_measured}).mean));
}

BOOST_AUTO_TEST_CASE(runs_of_a_group_are_one_line) {
  const Scratch scratch;
  make_run(scratch / "dc-1", 40, 1);
  make_run(scratch / "dc-2", 30, 2);  // the steps that both have: 30
  make_run(scratch / "other", 40, 3);
  const std::string runs = (scratch / "dc-1").string() + " " + (scratch / "dc-2").string() + " " +
                           (scratch / "other").string() + " -o " + (scratch / "all.svg").string();
  const auto result = run("plot " + runs + " --group 'dc-*' --smooth 1");
  BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
  const std::string svg = slurp(scratch / "all.svg"), csv = slurp(scratch / "all.csv");
  BOOST_TEST(svg.find("dc-* (2)") != std::string::npos);
  BOOST_TEST(count(svg, "\"band c0\"") >= 1u);
  BOOST_TEST(count(svg, "\"band c1\"") == 0u);
  BOOST_TEST(svg.find("nan") == std::string::npos);
  // Final losses 1 + 4/30 and 2 + 4/30; with a spread of sqrt(1/2).
  BOOST_TEST(result.output.find("1.6333 ± 0.7071") != std::string::npos, result.output);
  BOOST_TEST(count(csv, "\"dc-1\",") == 30u);
  BOOST_TEST(count(csv, "\"dc-* (2)\",") == 30u);
  BOOST_TEST(count(csv, "\"other\",") == 40u);
  BOOST_TEST(csv.find("\"dc-* (2)\",5.5,1,5.5,") != std::string::npos, csv.substr(0, 300));

  const auto one = run("plot " + runs + " --group 'other*' --smooth 1");
  BOOST_TEST(one.output.find("3.1000 ± -") != std::string::npos, one.output);
  const auto none = run("plot " + runs + " --group 'dc-*' --group 'tf-*'");
  BOOST_TEST(none.code == 2);
  BOOST_TEST(none.output.find("--group 'tf-*' matches no run") != std::string::npos, none.output);
}

BOOST_AUTO_TEST_CASE(a_part_of_the_axes) {
  const Scratch scratch;
  make_run(scratch / "demo", 40, 1);
  const std::string folder = (scratch / "demo").string();
  const auto label = [&](const std::string& flags, const std::string& words) {
    BOOST_REQUIRE(run("plot " + folder + " " + flags).code == 0);
    return slurp(scratch / "demo/plots/run.svg").find(">" + words + "<") != std::string::npos;
  };
  BOOST_TEST(label("", "2.25"));          // the first rows, with losses of 5 and 3, do not stretch the axis
  BOOST_TEST(!label("--from 20", "15"));  // of the steps
  BOOST_TEST(label("--from 20", "22"));
  BOOST_TEST(label("--y-max 1.3", "1.30"));
  BOOST_TEST(!label("--y-max 1.3", "2.25"));
  for (const std::string log : {"", " --log-y"}) {
    BOOST_TEST(!label(log, "8"));
    BOOST_TEST(label("--y-max 9" + log, "8"));  // above all losses
  }
  const auto low = run("plot " + folder + " --y-max 1");
  BOOST_TEST(low.code == 2);
  BOOST_TEST(low.output.find("--y-max: expected more than 1.1000, the smallest loss") != std::string::npos, low.output);
  const auto late = run("plot " + folder + " --from 40");
  BOOST_TEST(late.code == 2);
  BOOST_TEST(late.output.find("--from: expected less than 40.00") != std::string::npos, late.output);
}

// FLOPs of a token are those of the settings in the run folder.
BOOST_AUTO_TEST_CASE(flops_as_an_axis) {
  const Scratch scratch;
  for (const char* name : {"small", "wide"}) {
    make_run(scratch / name, 0, 1);
    RunLog log(scratch / name, 0);
    for (int64_t step = 1; step <= 10; ++step)
      log.append(LogRow(step, {{"loss", 3 - 0.1 * double(step)}, {"tokens", 64.0 * double(step)}}));
    write(scratch / name / "config.resolved.toml",
          std::string("[model]\nvocab_size = 50\nn_layer = 1\nn_head = 2\nblock_size = 32\ndim = ") +
              (name[0] == 's' ? "16" : "32") + "\n");
  }
  const std::string small = (scratch / "small").string(), wide = (scratch / "wide").string();
  const auto drawn = run("plot " + small + " " + wide + " --x flops -o " + (scratch / "f.svg").string());
  BOOST_REQUIRE_MESSAGE(drawn.code == 0, drawn.output);
  const std::string svg = slurp(scratch / "f.svg");
  BOOST_TEST(svg.find(">FLOPs of training<") != std::string::npos);
  const auto spec = braid::models::configure_model(
      "", {{"vocab_size", "50"}, {"n_layer", "1"}, {"n_head", "2"}, {"block_size", "32"}, {"dim", "32"}});
  BOOST_TEST(training_flops_per_token(wide) == 3 * braid::models::forward_flops(*spec, 32).total() / 32,
             boost::test_tools::tolerance(1e-12));
  BOOST_TEST(training_flops_per_token(small) < training_flops_per_token(wide));
  std::filesystem::remove(scratch / "small/config.resolved.toml");
  const auto unknown = run("plot " + small + " --x flops");
  BOOST_TEST(unknown.code == 3, unknown.output);
  BOOST_TEST(unknown.output.find("expected a run folder, whose config.resolved.toml") != std::string::npos,
             unknown.output);
}

BOOST_AUTO_TEST_CASE(pixels) {
  const Scratch scratch;
  make_run(scratch / "demo", 40, 1);
  const std::string command = "plot " + (scratch / "demo").string() + " -o " + (scratch / "a.png").string();
  const auto without = run(command, "PATH=" + (scratch / "empty").string());
  BOOST_TEST(without.code == 2);
  BOOST_TEST(without.output.find("install it (Debian: librsvg2-bin)") != std::string::npos, without.output);
  BOOST_TEST(!std::filesystem::exists(scratch / "a.png"));
  write(scratch / "a.csv", "of the user");
  BOOST_TEST(run(command + " --for paper", "PATH=" + (scratch / "empty").string()).code == 2);
  BOOST_TEST(slurp(scratch / "a.csv") == "of the user");
  BOOST_TEST(!std::filesystem::exists(scratch / "a.svg"));
  std::filesystem::create_directories(scratch / "bin");
  const auto tool = [&](const std::string& script) {
    write(scratch / "bin/rsvg-convert", "#!/bin/sh\n" + script);
    std::filesystem::permissions(scratch / "bin/rsvg-convert", std::filesystem::perms::owner_all);
    return run(command, "PATH=" + (scratch / "bin").string() + ":$PATH");
  };
  const auto broken = tool("echo no fonts >&2; exit 1");
  BOOST_TEST(broken.code == 4);
  BOOST_TEST(broken.output.find("made no image: no fonts") != std::string::npos, broken.output);
  BOOST_TEST(tool("printf '\\211PNG'; cat").code == 0);
  const std::string png = slurp(scratch / "a.png");
  BOOST_TEST(png.starts_with("\x89PNG<svg "));
  BOOST_TEST(png.ends_with("</svg>\n"));
}

// A column of paper: names instead of the table, no title, and both files whichever is named.
BOOST_AUTO_TEST_CASE(paper) {
  const Scratch scratch;
  make_run(scratch / "demo", 40, 1);
  const std::string command = "plot " + (scratch / "demo").string() + " -o " + (scratch / "a.pdf").string();
  const auto made = run(command + " --for paper");
  BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
  const std::string svg = slurp(scratch / "a.svg"), pdf = slurp(scratch / "a.pdf");
  BOOST_TEST(svg.find("width=\"234pt\"") != std::string::npos);
  BOOST_TEST(pdf.find("/MediaBox [0 0 234 ") != std::string::npos);
  BOOST_TEST(svg.find("Loss (nats per token)") != std::string::npos);
  BOOST_TEST(svg.find("Training run") == svg.rfind("Training run"));  // the name for screen readers
  BOOST_TEST(svg.find("Learning rate") == std::string::npos);
  BOOST_TEST(count(slurp(scratch / "a.csv"), "\n") == 41u);
  BOOST_TEST(run(command + " --for paper=6.75").code == 0);
  BOOST_TEST(slurp(scratch / "a.svg").find("width=\"486pt\"") != std::string::npos);
  std::filesystem::remove(scratch / "a.svg");
  BOOST_TEST(run(command).code == 0);  // a PDF of the size of a screen
  BOOST_TEST(slurp(scratch / "a.pdf").find("/MediaBox [0 0 720 ") != std::string::npos);
  BOOST_TEST(!std::filesystem::exists(scratch / "a.svg"));
  for (const char* bad : {"papers", "paper=", "paper=1", "paper=21", "paper=x"}) {
    const auto rejected = run(command + " --for " + bad);
    BOOST_TEST(rejected.code == 2);
    BOOST_TEST(
        rejected.output.find("bad value for --for: expected paper, or paper=INCHES with a width from 1.5 to 20") !=
            std::string::npos,
        rejected.output);
  }
}

BOOST_AUTO_TEST_CASE(values_that_are_all_zero_get_an_axis_of_ordinary_numbers) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "zero");
  RunLog(scratch / "zero", 0).append(LogRow(1, {{"loss", 2}, {"task_acc", 0}, {"lr", 1e-3}}));
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

// A logarithmic axis leaves out what it cannot show; it is linear where nothing is left.
BOOST_AUTO_TEST_CASE(losses_of_zero_on_a_logarithmic_axis) {
  const Scratch scratch;
  const auto title_of = [&](const std::string& rows) {
    write(scratch / "log.csv", "step,loss\n" + rows);
    BOOST_TEST(run("plot " + scratch.path.string() + " --log-y").code == 0);
    const std::string svg = slurp(scratch / "plots/run.svg");
    return svg.substr(svg.find("Loss (nats per token)"), 32);
  };
  BOOST_TEST(title_of("1,5\n2,1\n3,0\n") == "Loss (nats per token), log scale");
  BOOST_TEST(title_of("1,0\n2,0\n") != "Loss (nats per token), log scale");
}

BOOST_AUTO_TEST_CASE(its_own_numbers_are_the_same_runs_again) {
  const Scratch scratch;
  make_run(scratch / "a", 30, 1);
  make_run(scratch / "b", 20, 2);
  const std::string here = scratch.path.string();
  const std::string words =
      run("plot " + here + "/a " + here + "/b --name 'x, \"y\"' --name z -o " + here + "/p.svg").output;
  const auto again = run("plot " + here + "/p.csv -o " + here + "/q.svg");
  BOOST_TEST(again.output.substr(0, again.output.find("wrote")) == words.substr(0, words.find("wrote")));
  BOOST_TEST(slurp(scratch / "p.csv") == slurp(scratch / "q.csv"));
  BOOST_TEST(run("plot " + here + "/p.csv " + here + "/a -o " + here + "/r.svg").output.find("p.csv/z ") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(runs_of_one_name_are_told_apart) {
  const Scratch scratch;
  const std::string here = scratch.path.string();
  for (const char* folder : {"x/a/run", "y/a/run", "y/b/run"}) make_run(scratch / folder, 20, 1);
  const auto names = [](const std::string& csv) {  // in their order
    std::vector<std::string> found;
    std::istringstream lines(csv);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      const std::string name = line.substr(1, line.find("\",") - 1);
      if (found.empty() || found.back() != name) found.push_back(name);
    }
    return found;
  };
  const auto plotted = [&](const std::string& arguments, const std::vector<std::string>& expected) {
    BOOST_TEST(run("plot " + arguments + " -o " + here + "/p.svg").code == 0);
    BOOST_TEST(names(slurp(scratch / "p.csv")) == expected, boost::test_tools::per_element());
    BOOST_TEST(run("plot " + here + "/p.csv -o " + here + "/q.svg").code == 0);
    BOOST_TEST(slurp(scratch / "p.csv") == slurp(scratch / "q.csv"));
  };
  const std::string first = here + "/x/a/run", second = here + "/y/a/run", third = here + "/y/b/run";
  plotted(first + " " + second + " " + third, {"x/a/run", "y/a/run", "b/run"});
  plotted(second + " " + third, {"a/run", "b/run"});
  plotted(first + " " + first + "/log.csv " + second, {"x/a/run", "x/a/run (2)", "y/a/run"});
  plotted(first + " " + second + " --name r --name r", {"r", "r (2)"});
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
    // A sanitizer maps terabytes that it does not use.
    const char* limits = braid::test::kAddressSanitizer || braid::test::kThreadSanitizer
                             ? "ulimit -t 200;"
                             : "ulimit -v 8000000; ulimit -t 20;";
    for (const char* flag : {"", " --log-y"}) BOOST_TEST(run("plot " + scratch.path.string() + flag, limits).code == 0);
  }
}

BOOST_AUTO_TEST_CASE(runs_without_a_step_are_left_out) {
  const Scratch scratch;
  make_run(scratch / "out/a", 200, 1);
  std::filesystem::create_directories(scratch / "out/b");
  RunLog(scratch / "out/b", 0);
  std::filesystem::create_directories(scratch / "out/data");
  const std::string out = scratch.path.string();
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
  const auto result = run("plot " + scratch.path.string(), "timeout 20");
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
  const std::string here = scratch.path.string();
  write(scratch / "nan.csv", "step,loss\n1,nan\n");
  write(scratch / "log.csv", "step,loss\n1,2\n2,1\n");
  failure(here + "/none", 3, "No such file");
  failure(here + "/nan.csv", 3, "expected at least one finite loss");
  failure(here + " -o " + here + "/log.svg", 2, "over the log");
  failure(here + " -o " + here + "/log.jpg", 2, "ending in .svg, .pdf or .png");
  failure(here + " -o " + here + "/log.png", 2, "over the log");
  failure(here + " --x tokens", 3, "expected the column tokens");
  failure(here + " --y-max -3", 2, "bad value for --y-max");
  failure(here + " --name a --name b", 2, "--name must be given once per run");
  failure(here + " -o /proc/none/x.svg", 4, "cannot create folder");
  BOOST_TEST(slurp(scratch / "log.csv") == "step,loss\n1,2\n2,1\n");
  BOOST_TEST(!std::filesystem::exists(scratch / "plots"));
}

BOOST_AUTO_TEST_SUITE_END()
