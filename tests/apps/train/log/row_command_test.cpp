// A process that gets the rows of a run: all of them, without ever holding the run up.
#include "apps/train/log/row_command.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>

#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(row_command)

using apps::RowCommand;

namespace {

struct Told {
  std::string notes;
  void send(const std::string& command, int lines, const std::string& line) {
    RowCommand rows(command, [&](const std::string& note) { notes += note + "\n"; });
    for (int i = 0; i < lines; ++i) rows.send(line);
  }
};

// Writes into a pipe without a reader raise SIGPIPE, which braid train ignores.
struct IgnorePipe {
  void (*before)(int) = std::signal(SIGPIPE, SIG_IGN);
  ~IgnorePipe() { std::signal(SIGPIPE, before); }
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_line_arrives_and_the_end_is_waited_for) {
  const IgnorePipe ignore;
  const Scratch scratch;
  Told told;
  told.send("cat > " + (scratch / "rows").string() + "; sleep 0.3; echo end >> " + (scratch / "rows").string(), 500,
            "{\"step\":1}\n");
  const std::string rows = slurp(scratch / "rows");
  BOOST_TEST(std::ranges::count(rows, '\n') == 501);
  BOOST_TEST(rows.ends_with("{\"step\":1}\nend\n"));
  BOOST_TEST(told.notes == "");
}

BOOST_AUTO_TEST_CASE(one_that_ends_is_noted_once) {
  const IgnorePipe ignore;
  Told told;
  {
    RowCommand rows("head -1 > /dev/null; exit 3", [&](const std::string& note) { told.notes += note + "\n"; });
    for (int i = 0; i < 100; ++i) {
      rows.send("{\"step\":1}\n");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  BOOST_TEST(told.notes ==
             "note: log.command ended with code 3\n"
             "note: log.command reads no more rows; the run continues without it\n");
  Told unknown;
  unknown.send("braid-no-such-program 2> /dev/null", 1, "{}\n");
  BOOST_TEST(unknown.notes.find("ended with code 127") != std::string::npos, unknown.notes);
}

// It sleeps instead of reading: a pipe and a queue are full, the rest is counted.
BOOST_AUTO_TEST_CASE(a_slow_one_delays_nothing) {
  const IgnorePipe ignore;
  const std::string line = "{\"loss\":\"" + std::string(300, 'x') + "\"}\n";
  const Scratch scratch;
  constexpr int kLines = 5000;
  std::string notes;
  {
    RowCommand rows("sleep 1; cat > " + (scratch / "rows").string(),
                    [&](const std::string& note) { notes += note + "\n"; });
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kLines; ++i) rows.send(line);
    BOOST_TEST(seconds_since(begin) < 0.9);
  }
  const std::string rows = slurp(scratch / "rows");
  const auto arrived = std::ranges::count(rows, '\n');
  BOOST_TEST(arrived >= static_cast<int64_t>(RowCommand::max_lines));
  BOOST_TEST(arrived < kLines);
  BOOST_TEST(notes ==
             "note: log.command was too slow: " + std::to_string(kLines - arrived) + " rows were not sent to it\n");
}

BOOST_AUTO_TEST_CASE(a_run_gives_it_the_lines_of_its_log) {
  const auto out = world().fresh();
  const std::string rows = (world().scratch / "sent.jsonl").string();
  std::vector<std::string> all = settings(out, {"schedule.name=constant"});
  const std::string command = "'log.command=cat >> " + rows + "'";
  all.push_back(command);
  const Outcome result = run(join(all, " "));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(slurp(rows) == slurp(out / "log.jsonl"));
  BOOST_TEST(std::ranges::count(slurp(rows), '\n') == kSteps + 1);  // a start and the steps
  const Outcome failed = train(world().fresh(), {"'log.command=exit 7'"});
  BOOST_TEST(failed.code == 0, failed.output);
  BOOST_TEST(failed.output.find("note: log.command ended with code 7") != std::string::npos, failed.output);
  // A run that is finished starts none.
  BOOST_TEST(run(join(all, " ")).code == 0);
  BOOST_TEST(std::ranges::count(slurp(rows), '\n') == kSteps + 1);
}

BOOST_AUTO_TEST_SUITE_END()
