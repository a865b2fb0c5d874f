#include "apps/train/log/log.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(run_log)

using braid::test::Scratch;
using braid::test::slurp;
using braid::test::write;

static LogRow row(int64_t step) {
  LogRow r(step, {{"loss", 5.0 / double(step)}, {"lr", 1e-3}, {"grad_norm", 1.0 / 3}});
  if (step % 2 == 0) r["val_loss"] = 0.1;
  return r;
}

static void fill(const Scratch& scratch, int64_t from, int64_t to) {
  RunLog log(scratch.path, from);
  for (int64_t step = from + 1; step <= to; ++step) log.append(row(step));
  log.sync_later()();
}

BOOST_AUTO_TEST_CASE(rows_are_exact_and_complete) {
  const Scratch scratch;
  fill(scratch, 0, 2);
  BOOST_TEST(slurp(scratch / "log.csv") ==
             "step,loss,val_loss,task_acc,lr,grad_norm,tokens,tok_per_s,mfu,memory_mb,elapsed_s,eta_s\n"
             "1,5,,,0.001,0.3333333333333333,,,,,,\n"
             "2,2.5,0.1,,0.001,0.3333333333333333,,,,,,\n");
  BOOST_TEST(slurp(scratch / "log.jsonl")
                 .starts_with("{\"step\":1,\"loss\":5,\"val_loss\":null,\"task_acc\":null,\"lr\":0.001,\"grad_norm\":0."
                              "3333333333333333,"));
  const auto rows = read_log(scratch.path);
  BOOST_TEST(rows.size() == 2u);
  BOOST_TEST(rows[1]["grad_norm"] == 1.0 / 3);
  BOOST_TEST(rows[1]["val_loss"] == 0.1);
  BOOST_TEST(std::isnan(rows[0]["val_loss"]));
}

// Killed after step 9 while the last checkpoint is of step 6, in every possible state of the last line.
BOOST_AUTO_TEST_CASE(a_resumed_log_equals_an_uninterrupted_one) {
  const Scratch whole;
  fill(whole, 0, 12);
  for (const size_t torn : {0u, 1u, 5u, 20u, 1000u}) {
    const Scratch scratch;
    fill(scratch, 0, 9);
    for (const char* name : {"log.csv", "log.jsonl"}) {
      const std::string text = slurp(scratch / name);
      write(scratch / name, text.substr(0, text.size() - std::min(torn, text.size())));
    }
    const int64_t checkpoint = torn == 1000u ? 0 : 6;
    {
      const RunLog log(scratch.path, checkpoint);
      BOOST_TEST(log.earlier_rows().size() == size_t(checkpoint));
    }
    fill(scratch, checkpoint, 12);
    BOOST_TEST(slurp(scratch / "log.csv") == slurp(whole / "log.csv"));
    BOOST_TEST(slurp(scratch / "log.jsonl") == slurp(whole / "log.jsonl"));
  }
}

// Bytes that had not reached the disk are zeros after a power loss: of the rows after the checkpoint, or of all.
BOOST_AUTO_TEST_CASE(zeros_of_a_power_loss_are_cut_off) {
  const Scratch whole;
  fill(whole, 0, 12);
  for (const int64_t checkpoint : {0, 6}) {
    for (const size_t lost : {size_t{1}, size_t{30}, std::string::npos}) {
      if (checkpoint > 0 && lost == std::string::npos) continue;  // the rows before it had been synced
      const Scratch scratch;
      fill(scratch, 0, 9);
      for (const char* name : {"log.csv", "log.jsonl"}) {
        std::string text = slurp(scratch / name);
        const size_t n = std::min(lost, text.size());
        write(scratch / name, text.replace(text.size() - n, n, n, '\0'));
      }
      fill(scratch, checkpoint, 12);
      BOOST_TEST(slurp(scratch / "log.csv") == slurp(whole / "log.csv"));
      BOOST_TEST(slurp(scratch / "log.jsonl") == slurp(whole / "log.jsonl"));
    }
  }
}

// The row of a validation that a signal had ended; an event of the restart stands behind it.
// As logrotate does it: by a new name, with the old file copied and cut, or by removal.
BOOST_AUTO_TEST_CASE(logs_may_be_rotated) {
  const Scratch whole;
  fill(whole, 0, 6);
  for (const std::string how : {"rename", "cut", "remove"}) {
    const Scratch scratch;
    {
      RunLog log(scratch.path, 0);
      for (int64_t step = 1; step <= 6; ++step) {
        if (step == 4)
          for (const char* name : {"log.csv", "log.jsonl"}) {
            if (how == "rename") std::filesystem::rename(scratch / name, scratch / (name + std::string(".1")));
            if (how == "cut") std::filesystem::resize_file(scratch / name, 0);
            if (how == "remove") std::filesystem::remove(scratch / name);
          }
        log.append(row(step));
      }
    }
    const auto rows = read_log(scratch.path);  // begins with its header
    BOOST_REQUIRE_EQUAL(rows.size(), 3u);
    BOOST_TEST(rows[0].step == 4);
    BOOST_TEST(slurp(scratch / "log.jsonl").starts_with("{\"step\":4,"));
    if (how == "rename")
      for (const char* name : {"log.csv", "log.jsonl"}) {
        const std::string now = slurp(scratch / name), earlier = slurp(scratch / (name + std::string(".1")));
        const size_t head = name == std::string("log.csv") ? now.find('\n') + 1 : 0;
        BOOST_TEST(earlier + now.substr(head) == slurp(whole / name));
      }
  }
}

BOOST_AUTO_TEST_CASE(rows_that_log_csv_lacks_come_from_log_jsonl) {
  const Scratch whole;
  fill(whole, 0, 9);
  const std::string csv = slurp(whole / "log.csv"), json = slurp(whole / "log.jsonl");
  const size_t head = csv.find('\n') + 1, fifth = csv.find("\n5,") + 1;
  for (const std::string& left :
       {std::string(), csv.substr(0, head), csv.substr(0, head) + csv.substr(fifth), csv.substr(0, fifth)}) {
    const Scratch scratch;
    write(scratch / "log.csv", left);
    write(scratch / "log.jsonl", "{\"step\":0,\"event\":\"start\",\"loss\":1}\n" + json);
    {
      RunLog log(scratch.path, 6);
      BOOST_REQUIRE_EQUAL(log.earlier_rows().size(), 6u);
      BOOST_TEST(log.earlier_rows()[4].step == 5);
      for (int64_t step = 7; step <= 9; ++step) log.append(row(step));
    }
    BOOST_TEST(slurp(scratch / "log.csv") == csv);
  }
  const Scratch gone;
  write(gone / "log.jsonl", "{\"step\":1,\"loss\":x}\n");
  BRAID_CHECK_FAILS(RunLog(gone.path, 3), ErrorKind::input, "log.jsonl line 1: expected a number for \"loss\"");
}

BOOST_AUTO_TEST_CASE(the_last_row_is_completed) {
  const Scratch whole, scratch;
  fill(whole, 0, 12);
  fill(scratch, 0, 9);
  const LogRow last = read_log(scratch.path).back();
  for (const char* name : {"log.csv", "log.jsonl"}) {
    const std::string text = slurp(whole / name);
    write(scratch / name, text.substr(0, text.find(name == std::string("log.csv") ? "\n10," : "\n{\"step\":10,") + 1));
  }
  const std::string event = "{\"step\":9,\"event\":\"start\"}\n";
  LogRow lacking = last;
  lacking["val_loss"] = lacking["task_acc"] = std::nan("");
  {
    RunLog log(scratch.path, 8);
    log.append(lacking);
    BOOST_TEST(std::isnan(read_log(scratch.path).back()["val_loss"]));
  }
  RunLog log(scratch.path, 9);
  log.append_event(event);
  LogRow row = log.earlier_rows().back();
  BOOST_TEST(row.step == 9);
  row["val_loss"] = last["val_loss"], row["task_acc"] = last["task_acc"];
  log.complete(row);
  BOOST_TEST(read_log(scratch.path).size() == 9u);
  log.append_event(event);  // both files continue at their ends
  fill(scratch, 9, 12);
  BOOST_TEST(slurp(scratch / "log.csv") == slurp(whole / "log.csv"));
  std::string json = slurp(scratch / "log.jsonl");
  for (size_t at; (at = json.find(event)) != std::string::npos;) json.erase(at, event.size());
  BOOST_TEST(json == slurp(whole / "log.jsonl"));
}

BOOST_AUTO_TEST_CASE(the_last_row_is_found_below_a_header_of_any_length) {
  for (const int sources : {0, 300, 6000}) {
    const Scratch scratch;
    std::vector<std::string> columns;
    for (int i = 0; i < sources; ++i) columns.push_back("loss.source-" + std::to_string(i));
    {
      RunLog log(scratch.path, 0, "text", columns);
      log.append(row(2)), log.append(row(3));
    }
    const auto last = last_row(scratch.path);
    BOOST_REQUIRE(last.has_value());
    BOOST_TEST(last->step == 3);
    BOOST_TEST((*last)["val_loss"] == 0.1);
  }
  const Scratch scratch;
  write(scratch / "log.csv", csv_header("text").substr(0, 10));
  BOOST_TEST(!last_row(scratch.path).has_value());
}

BOOST_AUTO_TEST_CASE(a_torn_header_is_repaired) {
  const Scratch scratch;
  write(scratch / "log.csv", csv_header("text").substr(0, 10));
  fill(scratch, 0, 1);
  BOOST_TEST(slurp(scratch / "log.csv").starts_with(csv_header("text") + "1,5,"));
}

BOOST_AUTO_TEST_CASE(foreign_files_are_not_touched) {
  const Scratch scratch;
  for (const std::string text : {"my shopping list\nmilk\n", "shopping", "step,loss\n1,2\n"}) {
    write(scratch / "log.csv", text);
    BRAID_CHECK_FAILS(RunLog(scratch.path, 5), ErrorKind::input, "cannot continue");
    BOOST_TEST(slurp(scratch / "log.csv") == text);
  }
  write(scratch / "log.csv", csv_header("text") + "1,x,,,,,,,,,,\n");
  BRAID_CHECK_FAILS(RunLog(scratch.path, 5), ErrorKind::input,
                    "log.csv line 2, column loss: expected a number, found 'x'");
  write(scratch / "log.csv", csv_header("text"));
  write(scratch / "log.jsonl", "{\"other\":1}\n");
  BRAID_CHECK_FAILS(RunLog(scratch.path, 5), ErrorKind::input, "log.jsonl line 1: expected {\"step\":N");
  BOOST_TEST(slurp(scratch / "log.jsonl") == "{\"other\":1}\n");
}

BOOST_AUTO_TEST_CASE(infinite_values_are_no_json) {
  LogRow r(1, {{"loss", INFINITY}});
  BOOST_TEST(csv_line(r, "text").starts_with("1,inf,"));
  BOOST_TEST(json_line(r, "text").starts_with("{\"step\":1,\"loss\":null,"));
}

BOOST_AUTO_TEST_CASE(reads_logs_of_others) {
  const Scratch scratch;
  write(scratch / "other.csv", "epoch, loss ,step\r\n1, 2.5,10\r\n1,2.25,20\r\n\r\n2,2.0,15\r\n2,1.5,3");
  const auto rows = read_log(scratch / "other.csv");
  BOOST_TEST(rows.size() == 2u);  // step 20 was rewound; the torn last line does not count
  BOOST_TEST(rows[0].step == 10);
  BOOST_TEST(rows[1].step == 15);
  BOOST_TEST(rows[1]["loss"] == 2.0);
}

BOOST_AUTO_TEST_CASE(says_why_a_log_cannot_be_read) {
  const Scratch scratch;
  BRAID_CHECK_FAILS(read_log(scratch.path), ErrorKind::input, "expected a run folder with log.csv");
  BRAID_CHECK_FAILS(read_log(scratch / "none"), ErrorKind::input, "No such file");
  const auto failure = [&](const std::string& text, const std::string& words) {
    write(scratch / "log.csv", text);
    BRAID_CHECK_FAILS(read_log(scratch / "log.csv"), ErrorKind::input, words);
  };
  failure("", "empty log");
  failure("a,b\n1,2\n", "expected a header with the columns step and loss, found 'a,b'");
  failure("step,loss\n", "no rows in");
  failure("step,loss\n1\n", "line 2: expected 2 fields, found 1");
  failure("step,loss\n1,2\n2,abc\n", "line 3, column loss: expected a number, found 'abc'");
  failure("step,loss\n-1,2\n", "line 2, column step: expected an integer, found '-1'");
  failure("step,loss\n1.5,2\n", "column step: expected an integer, found '1.5'");
}

BOOST_AUTO_TEST_CASE(devices_are_no_logs) {
  BRAID_CHECK_FAILS(read_log("/dev/zero"), ErrorKind::input, "expected a file, found a device");
}

BOOST_AUTO_TEST_CASE(a_pipe_in_the_place_of_a_log_is_rejected) {
  for (const char* name : {"log.csv", "log.jsonl"}) {
    const Scratch scratch;
    BOOST_REQUIRE(::mkfifo((scratch / name).c_str(), 0666) == 0);
    BRAID_CHECK_FAILS(RunLog(scratch.path, 0), ErrorKind::input, "expected a file, found a device");
  }
}

// The rest of the large file is a hole: it takes no room.
BOOST_AUTO_TEST_CASE(a_log_of_more_than_a_gibibyte_goes_on) {
  const Scratch scratch, whole;
  fill(whole, 0, 3);
  fill(scratch, 0, 3);
  for (const char* name : {"log.csv", "log.jsonl"})
    std::filesystem::resize_file(scratch / name, (uint64_t{1} << 30) + 1000);
  fill(scratch, 2, 3);
  BOOST_TEST(slurp(scratch / "log.csv") == slurp(whole / "log.csv"));
  BOOST_TEST(slurp(scratch / "log.jsonl") == slurp(whole / "log.jsonl"));
}

// A limit on the size of files stands in for the full disk.
BOOST_AUTO_TEST_CASE(a_full_disk_is_said) {
  const Scratch scratch;
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{300, 300};
    ::setrlimit(RLIMIT_FSIZE, &small);
    try {
      RunLog log(scratch.path, 0);
      for (int64_t step = 1; step < 100; ++step) log.append(row(step));
    } catch (const Error& error) {
      const std::string text = error.what();
      ::_exit(error.kind() == ErrorKind::output && text.find("log.") != std::string::npos &&
                      text.find("File too large") != std::string::npos
                  ? 0
                  : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  BOOST_TEST(status == 0);
  // Earlier rows are intact; the torn row goes.
  const RunLog again(scratch.path, 1);
  BOOST_TEST(again.earlier_rows().size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
