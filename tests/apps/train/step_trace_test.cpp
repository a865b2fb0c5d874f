// log.trace: the timeline of a step, and its chart.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/apps/support.h"

using namespace braid::test;

BOOST_AUTO_TEST_SUITE(step_trace)

BOOST_AUTO_TEST_CASE(the_third_step_is_written_and_drawn) {
  const Scratch scratch;
  write(scratch / "a.txt", std::string(2000, 'a') + "bc");
  BOOST_TEST(run("prepare " + (scratch / "a.txt").string() + " -o " + (scratch / "data").string()).code == 0);
  const std::string folder = (scratch / "run").string(),
                    train =
                        "train model.preset=dcformer-tiny model.n_layer=1 data.seq_len=16 train.batch_size=1 "
                        "schedule.warmup=0 eval.interval=0 log.trace=true data.path=" +
                        (scratch / "data").string() + " run.out=" + folder + " train.steps=";
  BOOST_TEST(run(train + "2").code == 0);
  const Outcome early = run("plot --trace " + folder);
  BOOST_TEST(early.code == 3);
  BOOST_TEST(early.output.find("train with log.trace=true, at least three steps") != std::string::npos, early.output);

  BOOST_TEST(run(train + "5").code == 0);
  std::set<std::string> kinds, names;
  const nlohmann::json trace = nlohmann::json::parse(slurp(scratch / "run/trace/rank-0.json"));
  for (const auto& e : trace.at("traceEvents")) {
    kinds.insert(e.at("cat"));
    names.insert(e.at("name"));
    BOOST_TEST(e.at("dur").get<double>() >= 0);
  }
  BOOST_TEST((kinds == std::set<std::string>{"derivative", "op", "phase"}));
  for (const char* name : {"matmul", "dcmha", "forward and backward", "update"}) BOOST_TEST(names.contains(name), name);

  const Outcome drawn = run("plot --trace " + folder);
  BOOST_TEST(drawn.code == 0, drawn.output);
  const std::string svg = slurp(scratch / "run/plots/trace.svg");
  for (const char* part : {"Timeline of a training step", "rank 0", "tensors of rank 0 (MiB)", "backward", " events, "})
    BOOST_TEST(svg.find(part) != std::string::npos, part);

  BOOST_TEST(run("plot --trace --x time " + folder).code == 2);
  write(scratch / "run/trace/rank-0.json", "{\"traceEvents\": [{\"name\": 1}]}");
  const Outcome bad = run("plot --trace " + folder);
  BOOST_TEST(bad.code == 3);
  BOOST_TEST(bad.output.find("not a trace of braid train: ") != std::string::npos, bad.output);
}

BOOST_AUTO_TEST_SUITE_END()
