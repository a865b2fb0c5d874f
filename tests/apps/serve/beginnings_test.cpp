#include "apps/serve/beginnings.h"

#include <boost/test/unit_test.hpp>

#include "tests/apps/support.h"

using namespace braid;
using namespace braid::apps::serve;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(serve_beginnings)

using Texts = std::vector<std::string>;

BOOST_AUTO_TEST_CASE(first_words_of_sentences) {
  const std::string text =
      "A title\nOnce there was a proud robot named Mila. She sat. Once there was a proud dog in it! "
      "An  odd one with two blanks is here. One morning a letter came to her house? This one is cut off in the";
  BOOST_TEST(sentence_beginnings(text, 5) == (Texts{"Once there was a proud", "One morning a letter came"}),
             boost::test_tools::per_element());
  BOOST_TEST(sentence_beginnings("", 5).empty());
}

BOOST_AUTO_TEST_CASE(of_a_run_and_of_other_folders) {
  const Scratch scratch;
  const auto model = scratch / "run/step-00000010";
  std::filesystem::create_directories(model);
  BOOST_TEST(beginnings_of(model).empty());
  write(scratch / "run/config.resolved.toml", "[sample]\ninterval = 5\nprompt = \"The dragon Otto\"\n");
  for (const auto& path : {model, model / ""})
    BOOST_TEST(beginnings_of(path) == (Texts{"The dragon Otto"}), boost::test_tools::per_element());
  write(scratch / "run/samples.txt",
        "--- step 5\nThe old sample has a sentence of words.\n--- step 10\nThe dragon Otto flies to the moon again.\n"
        "He met a fox and a hare. Then all of them went home to sleep. Three more words than that are here.\n");
  BOOST_TEST(beginnings_of(model) == (Texts{"The dragon Otto", "The dragon Otto flies to", "He met a fox and"}),
             boost::test_tools::per_element());
  write(scratch / "run/config.resolved.toml", "[sample");
  BOOST_TEST(beginnings_of(model).empty());
  BOOST_TEST(beginnings_of(scratch / "nowhere/model").empty());
}

BOOST_AUTO_TEST_SUITE_END()
