#include "apps/train/log/prometheus_file.h"

#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;
using apps::LogRow, apps::PrometheusFile, apps::prometheus_text;

BOOST_AUTO_TEST_SUITE(prometheus_file)

namespace {

// The value of a metric; "" where it is not there.
std::string value_of(const std::string& text, const std::string& metric, const std::string& run) {
  const std::string line = "\nbraid_train_" + metric + "{run=\"" + run + "\"} ";
  const size_t at = ("\n" + text).find(line);
  return at == std::string::npos ? "" : text.substr(at + line.size() - 1, text.find('\n', at) - at - line.size() + 1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(text_of_a_row) {
  LogRow row(7, {{"loss", 2.5}, {"tokens", 896}});
  row.unix_time = 1795759427.25;
  BOOST_TEST(prometheus_text(row, "a\"\\\n", 10) ==
             "# HELP braid_train_step Steps done.\n# TYPE braid_train_step gauge\n"
             "braid_train_step{run=\"a\\\"\\\\\\n\"} 7\n"
             "# HELP braid_train_steps Steps of the run.\n# TYPE braid_train_steps gauge\n"
             "braid_train_steps{run=\"a\\\"\\\\\\n\"} 10\n"
             "# HELP braid_train_loss Training loss of the last step.\n# TYPE braid_train_loss gauge\n"
             "braid_train_loss{run=\"a\\\"\\\\\\n\"} 2.5\n"
             "# HELP braid_train_tokens_total Tokens since step 0.\n# TYPE braid_train_tokens_total counter\n"
             "braid_train_tokens_total{run=\"a\\\"\\\\\\n\"} 896\n"
             "# HELP braid_train_last_step_timestamp_seconds When the last step ended.\n"
             "# TYPE braid_train_last_step_timestamp_seconds gauge\n"
             "braid_train_last_step_timestamp_seconds{run=\"a\\\"\\\\\\n\"} 1795759427.25\n");
}

// Between two writes of the disk lies a second, but a validation is shown at once; what a row lacks stays.
BOOST_AUTO_TEST_CASE(when_it_is_written) {
  const Scratch scratch;
  const std::string path = (scratch / "run.prom").string();
  PrometheusFile file(path, "r", 10, {LogRow(3, {{"val_loss", 4}, {"loss", 9}})});
  BOOST_TEST(!std::filesystem::exists(path));
  file.update(LogRow(4, {{"loss", 3}}));
  BOOST_TEST(value_of(slurp(path), "loss", "r") == "3");
  BOOST_TEST(value_of(slurp(path), "validation_loss", "r") == "4");
  BOOST_TEST(value_of(slurp(path), "learning_rate", "r") == "");
  file.update(LogRow(5, {{"loss", 2}}));
  BOOST_TEST(value_of(slurp(path), "step", "r") == "4");
  file.write();
  BOOST_TEST(value_of(slurp(path), "step", "r") == "5");
  file.update(LogRow(6, {{"loss", 1}, {"val_loss", 1.5}}));
  BOOST_TEST(value_of(slurp(path), "validation_loss", "r") == "1.5");
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 1);
  BOOST_CHECK_EXCEPTION(PrometheusFile((scratch / "no/run.prom").string(), "r", 1, {}), Error,
                        says(ErrorKind::output, "no/run.prom"));
}

BOOST_AUTO_TEST_CASE(of_a_run) {
  const auto out = world().fresh();
  const std::string path = (world().scratch / "of-a-run.prom").string();
  const Outcome done = train(out, {"log.prometheus=" + path});
  BOOST_REQUIRE_MESSAGE(done.code == 0, done.output);
  const std::string text = slurp(path), run = out.string();
  const LogRow last = apps::last_row(out).value();
  BOOST_TEST(value_of(text, "step", run) == "10");
  BOOST_TEST(value_of(text, "steps", run) == "10");
  for (const auto& [metric, value] : {std::pair("loss", last["loss"]), std::pair("validation_loss", last["val_loss"]),
                                      std::pair("tokens_total", last["tokens"]), std::pair("learning_rate", last["lr"]),
                                      std::pair("gradient_norm", last["grad_norm"])})
    BOOST_TEST(value_of(text, metric, run) == detail::shortest(value), metric << " in\n" << text);
  BOOST_TEST(std::stod(value_of(text, "tokens_per_second", run)) > 0);
  BOOST_TEST(std::stod(value_of(text, "last_step_timestamp_seconds", run)) > 1.7e9);
  BOOST_TEST(deterministic_log(out) == deterministic_log(undisturbed()));
  const Outcome nowhere = train(world().fresh(), {"log.prometheus=/nowhere/run.prom"});
  BOOST_TEST(nowhere.code == 4, nowhere.output);
  BOOST_TEST(nowhere.output.find("/nowhere") != std::string::npos, nowhere.output);
}

BOOST_AUTO_TEST_SUITE_END()
