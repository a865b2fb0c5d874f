// The prepare command, run as the real program. Its output is tested in tests/models/data/text.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <set>
#include <tuple>

#include "braid/models/data/text/manifest.h"
#include "tests/apps/faults.h"
#include "tests/apps/support.h"

BOOST_AUTO_TEST_SUITE(prepare)

using braid::test::run;
using braid::test::Scratch;
using braid::test::write;

BOOST_AUTO_TEST_CASE(text_and_tasks_become_a_data_folder) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "in");
  for (int i = 0; i < 40; ++i)
    write(scratch / ("in/" + std::to_string(i) + ".txt"), "document " + std::to_string(i * i) + "\n");
  const auto result = run("prepare " + (scratch / "in").string() +
                          " --tasks 20 --task-items 1 --val-fraction 0.25 -o " + (scratch / "data").string());
  BOOST_TEST(result.code == 0, result.output);
  for (const char* part : {"reading text", "making tasks", "from 40 files", "training", "validation",
                           "samples to grade", "next: braid train model.preset=dcformer-tiny data.path="})
    BOOST_TEST(result.output.find(part) != std::string::npos, part);
  const auto manifest = braid::models::text::read_manifest((scratch / "data").string());
  BOOST_TEST(manifest.train.documents + manifest.val.documents == 40 + 20 + 5);
  BOOST_TEST(manifest.val_fraction == 0.25);
  BOOST_TEST(manifest.tasks.size() == 2u);
}

BOOST_AUTO_TEST_CASE(flags_reach_the_work) {
  const Scratch scratch;
  write(scratch / "a.jsonl", "{\"body\":\"hello\"}\n{\"body\":\"world\"}\n");
  const auto result = run("prepare " + (scratch / "a.jsonl").string() +
                          " --text-field body --shard-tokens 4 --seed 9 -o " + (scratch / "data").string());
  BOOST_TEST(result.code == 0, result.output);
  const auto manifest = braid::models::text::read_manifest((scratch / "data").string());
  BOOST_TEST(manifest.seed == 9u);
  BOOST_TEST(manifest.train.shards.size() + manifest.val.shards.size() >= 3u);
  for (const auto& shard : manifest.train.shards) BOOST_TEST(shard.tokens <= 5);
  BOOST_TEST(manifest.tasks.empty());
}

BOOST_AUTO_TEST_CASE(what_is_left_out_is_summed_up) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "in");
  write(scratch / "in/a.txt", "some text\n");
  write(scratch / "in/b.txt", "some text\n");
  for (int i = 0; i < 3; ++i) write(scratch / ("in/" + std::to_string(i) + ".pdf"), "%PDF-1.4 x");
  std::filesystem::create_symlink("a.txt", scratch / "in/c.txt");
  const auto result = run("prepare " + (scratch / "in").string() + " --dedup -o " + (scratch / "data").string());
  BOOST_TEST(result.code == 0, result.output);
  for (const char* part : {"  left out     4 files of 1 MiB (pdf 3, link 1)\n",
                           "           1 left out, exactly equal to an earlier document\n"})
    BOOST_TEST(result.output.find(part) != std::string::npos, "no '" << part << "' in " << result.output);
  BOOST_TEST(run("prepare --help").output.find("  --dedup  ") != std::string::npos);
  BOOST_TEST(run("prepare --help").output.find(" exact duplicates only: ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(text_that_is_no_utf8_is_repaired_and_counted) {
  const Scratch scratch;
  write(scratch / "a.txt", std::string(3000, 'a') + " na\xEFve\xFF\n");
  const std::string command =
      "prepare " + (scratch / "a.txt").string() + " --val-fraction 0 --train-bpe 300 -o " + (scratch / "data").string();
  BOOST_TEST(run(command).code == 3);
  const auto result = run(command + " --invalid replace");
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(result.output.find("ill-formed              2 parts of text that are no UTF-8, replaced by U+FFFD") !=
                 std::string::npos,
             result.output);
  BOOST_TEST(run(command + " --invalid skip --replace").output.find("UTF-8, left out\n") != std::string::npos);
  BOOST_TEST(
      run(command + " --invalid drop").output.find("bad value for --invalid: expected one of error, replace, skip") !=
      std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_short_validation_split_is_noted) {
  const Scratch scratch;
  const std::string note =
      "note: the validation split is shorter than a sequence of 256 tokens, and training needs at "
      "least one; give more text, a larger --val-fraction or --val FILE\n";
  const auto noted = [&](size_t bytes, const std::string& flags) {
    write(scratch / "in.txt", std::string(bytes, 'a') + "\n");
    const auto result =
        run("prepare " + (scratch / "in.txt").string() + " --replace -o " + (scratch / "data").string() + flags);
    BOOST_TEST(result.code == 0, result.output);
    return result.output.find(note) != std::string::npos;
  };
  BOOST_TEST(noted(2000, ""));
  BOOST_TEST(!noted(2000, " --val-fraction 0.2"));
  BOOST_TEST(!noted(2000, " --val-fraction 0"));  // none at all
  BOOST_TEST(!noted(6000, ""));
}

BOOST_AUTO_TEST_CASE(bad_input_gets_a_sentence_and_writes_nothing) {
  const Scratch scratch;
  const std::string data = (scratch / "data").string();
  const auto failure = [&](const std::string& arguments, int code, const std::string& words) {
    const auto result = run("prepare " + arguments);
    BOOST_TEST(result.code == code, result.output);
    BOOST_TEST(result.output.starts_with("error: "), result.output);
    BOOST_TEST(result.output.find(words) != std::string::npos, result.output);
    BOOST_TEST(!std::filesystem::exists(data));
  };
  write(scratch / "empty.txt", "");
  failure("-o " + data, 2, "nothing to prepare");
  failure(scratch.path.string(), 2, "--out is missing");
  failure((scratch / "none").string() + " -o " + data, 3, "none");
  failure((scratch / "empty.txt").string() + " -o " + data, 3, "empty.txt");
  failure("--tasks 5 -o -", 2, "--out - is no name");
  failure("--tasks 5 --val-fraction 1 -o " + data, 2, "validation fraction");
  failure("--tasks -5 -o " + data, 2, "bad value for --tasks: expected an integer from 0 to 1000000000, found '-5'");
}

BOOST_AUTO_TEST_CASE(a_request_to_stop_leaves_nothing_behind) {
  const Scratch scratch;
  // A billion samples would take hours.
  braid::test::Process process({"prepare", "--tasks", "1000000000", "--out", (scratch / "data").string()});
  BOOST_TEST(process.line().find("making tasks") != std::string::npos);
  process.signal(SIGTERM);
  const auto result = process.wait();
  BOOST_TEST(result.code == 75);
  BOOST_TEST(result.output.find("stopped by SIGTERM; nothing was written") != std::string::npos, result.output);
  BOOST_TEST(std::filesystem::is_empty(scratch.path));
}

// What prepare works with is not left in the data folder, nor an error taken for an absence.
BOOST_AUTO_TEST_CASE(an_error_of_the_disk_leaves_no_strange_file) {
  using namespace braid::test;
  const Scratch scratch;
  write(scratch / "in.txt", std::string(5000, 'a') + "\n");
  const auto names = [&](const std::string& folder) {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(scratch / folder))
      found.insert(entry.path().filename().string());
    return found;
  };
  const auto command = [&](const std::string& out) {
    return "prepare " + (scratch / "in.txt").string() + " --shard-tokens 2000 -o " + (scratch / out).string();
  };
  BOOST_REQUIRE(run(command("whole")).code == 0);
  const auto once = run(command("once"), fault("remove", "journal", 0, 1, EIO));
  BOOST_TEST(once.code == 0, once.output);
  BOOST_TEST(names("once") == names("whole"), boost::test_tools::per_element());
  for (const auto& [call, part, fail, cause, code] : {std::tuple{"remove", "journal", 1000, EIO, 4},
                                                      {"readdir", ".preparing", 1, EIO, 4},
                                                      {"rename", "/data", 1, ENOSPC, 4},
                                                      {"rename", "/moved-", 1, ENOSPC, 4},
                                                      {"stat", "in.txt", 1, EIO, 3}}) {
    BOOST_TEST_CONTEXT(call << " of " << part) {
      const auto failed = run(command("data"), fault(call, part, 0, fail, cause));
      BOOST_TEST(failed.code == code, failed.output);
      BOOST_TEST(failed.output.find(std::strerror(cause)) != std::string::npos, failed.output);
      BOOST_TEST(!std::filesystem::exists(scratch / "data"));
      BOOST_TEST(run(command("data")).code == 0);
      BOOST_TEST(names("data") == names("whole"), boost::test_tools::per_element());
      std::filesystem::remove_all(scratch / "data");
    }
  }
  BOOST_TEST(names("") == (std::set<std::string>{"in.txt", "whole", "once"}), boost::test_tools::per_element());
  const auto again = run(command("whole"), fault("open", "whole/dataset.json", 0, 1, EIO));
  BOOST_TEST(again.code == 3, again.output);  // not 2: nothing is known of the data that are there
  BOOST_TEST(again.output.find(std::strerror(EIO)) != std::string::npos, again.output);
}

BOOST_AUTO_TEST_SUITE_END()
