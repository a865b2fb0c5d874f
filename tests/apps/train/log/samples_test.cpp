#include "apps/train/log/samples.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>

#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(samples_file)

BOOST_AUTO_TEST_CASE(a_resume_cuts_off_what_it_makes_again) {
  const Scratch scratch;
  const auto file = scratch / "samples.txt";
  {
    SamplesFile samples(file, 0);
    BOOST_TEST(samples.last_step() == -1);
    BOOST_TEST(!std::filesystem::exists(file));
    for (int64_t step : {5, 10, 15}) samples.append(step, "text of " + std::to_string(step));
    samples.sync_later()();
  }
  const std::string all = "--- step 5\ntext of 5\n--- step 10\ntext of 10\n--- step 15\ntext of 15\n";
  BOOST_TEST(slurp(file) == all);
  {
    SamplesFile samples(file, 12);
    BOOST_TEST(samples.last_step() == 10);
    samples.append(15, "text of 15");
  }
  BOOST_TEST(slurp(file) == all);
  BOOST_TEST(SamplesFile(file, 0).last_step() == -1);
  BOOST_TEST(slurp(file).empty());
}

// As log_test.cpp has it for rows.
BOOST_AUTO_TEST_CASE(zeros_of_a_power_loss_are_cut_off) {
  const Scratch scratch;
  const auto file = scratch / "samples.txt";
  const std::string kept = "--- step 5\ntext\n";
  for (const std::string& lost : {std::string(7, '\0'), std::string(3, '\0') + "\nrest\n"}) {
    write(file, kept + lost);
    BOOST_TEST(SamplesFile(file, 5).last_step() == 5);
    BOOST_TEST(slurp(file) == kept);
  }
  const std::string older = std::string("--- step 4\n\0\n", 13) + kept;  // a sample that Braid wrote so before
  write(file, older);
  BOOST_TEST(SamplesFile(file, 5).last_step() == 5);
  BOOST_TEST(slurp(file) == older);
  {
    SamplesFile samples(file, 5);
    samples.append(9, std::string("a\0b", 3));
  }
  BOOST_TEST(slurp(file) == older + "--- step 9\na b\n");
}

BOOST_AUTO_TEST_CASE(a_torn_line_is_cut_off) {
  const Scratch scratch;
  const auto file = scratch / "samples.txt";
  const std::string kept = "--- step 5\ntext\n";
  for (const char* torn : {"rest", "--- step 1", "--- st"}) {
    write(file, kept + torn);
    SamplesFile samples(file, 20);
    BOOST_TEST(samples.last_step() == 5);
    samples.append(9, "new");
    BOOST_TEST(slurp(file) == kept + "--- step 9\nnew\n");
  }
}

BOOST_AUTO_TEST_CASE(a_sample_is_valid_text_and_no_heading) {
  const Scratch scratch;
  {
    SamplesFile samples(scratch / "samples.txt", 0);
    samples.append(5, "a\xff\n--- step 99\nb\xc3");
  }
  BOOST_TEST(slurp(scratch / "samples.txt") == "--- step 5\na\xef\xbf\xbd\n --- step 99\nb\xef\xbf\xbd\n");
  BOOST_TEST(SamplesFile(scratch / "samples.txt", 50).last_step() == 5);
}

BOOST_AUTO_TEST_CASE(a_pipe_without_a_reader_is_an_error) {
  const Scratch scratch;
  BOOST_REQUIRE(::mkfifo((scratch / "samples.txt").c_str(), 0666) == 0);
  BRAID_CHECK_FAILS(SamplesFile(scratch / "samples.txt", 0), ErrorKind::output, "cannot write");
}

BOOST_AUTO_TEST_SUITE_END()
