// data.sources: what a text means, the names in the log, and what is rejected.
#include "apps/train/config/data_sources.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(data_sources)

namespace {

TrainConfig config_of(const std::vector<std::string>& sources) {
  TrainConfig config;
  config.data.sources = sources;
  return config;
}

std::vector<std::string> names(const std::vector<std::string>& sources) {
  std::vector<std::string> names;
  for (const DataSource& source : apps::data_sources(config_of(sources))) names.push_back(source.name);
  return names;
}

void rejected(const std::vector<std::string>& sources, const std::string& words) {
  BRAID_CHECK_FAILS(apps::data_sources(config_of(sources)), ErrorKind::setting, words);
}

}  // namespace

BOOST_AUTO_TEST_CASE(weights_and_their_tokens) {
  const auto sources =
      apps::data_sources(config_of({"out/web", " my data/books  weight=0.25 weight=0@1000 weight=2@2e9 "}));
  BOOST_REQUIRE(sources.size() == 2);
  BOOST_TEST(sources[0].path == "out/web");
  BOOST_REQUIRE(sources[0].weights.size() == 1);
  BOOST_TEST(sources[0].weights[0].weight == 1);
  BOOST_TEST(sources[1].path == "my data/books");
  BOOST_REQUIRE(sources[1].weights.size() == 3);
  BOOST_TEST(sources[1].weights[0].weight == 0.25);
  BOOST_TEST(sources[1].weights[1].token == 1000);
  BOOST_TEST(sources[1].weights[2].token == 2'000'000'000);
  BOOST_TEST(sources[1].weights[2].weight == 2);
}

BOOST_AUTO_TEST_CASE(folders_of_the_settings) {
  TrainConfig config;
  BOOST_TEST(!names_data(config));
  BOOST_TEST(data_folder(config) == "");
  config.data.path = "one";
  BOOST_TEST(names_data(config));
  BOOST_TEST(apps::data_sources(config).empty());
  BOOST_TEST(data_folder(config) == "one");
  config = config_of({"a", "b weight=2"});
  BOOST_TEST(names_data(config));
  BOOST_TEST((data_folders(config) == std::vector<std::string>{"a", "b"}));
  config.data.path = "one";
  BRAID_CHECK_FAILS(apps::data_sources(config), ErrorKind::setting, "data.path and data.sources both name data");
}

BOOST_AUTO_TEST_CASE(names_are_those_of_folders_and_differ) {
  BOOST_TEST((names({"out/web", "out/books/"}) == std::vector<std::string>{"web", "books"}));
  BOOST_TEST(
      (names({"out/perl/data", "out/c/data", "text"}) == std::vector<std::string>{"perl-data", "c-data", "text"}));
  BOOST_TEST((names({"x/perl/data", "y/perl/data"}) == std::vector<std::string>{"perl-data-1", "perl-data-2"}));
  BOOST_TEST((names({"out/a, \"b\"=c"}) == std::vector<std::string>{"a___b__c"}));
}

BOOST_AUTO_TEST_CASE(what_is_no_mixture) {
  rejected({"a", "weight=3"}, "'weight=3' has no path");
  rejected({""}, "has no path");
  rejected({"a weight=1 lr=3"}, "has the unexpected 'lr=3'");
  for (const char* weight : {"-1", "nan", "inf", "much", ""})
    rejected({str("a weight=", weight)}, "whose weight is not a finite number of at least 0");
  for (const char* token : {"-1", "1.5", "nan", "1e16", ""})
    rejected({str("a weight=1 weight=1@", token)}, "whose token is not an integer from 0 to 1e15");
  rejected({"a weight=1@10"}, "has no weight from the first token on, before 'weight=1@10'");
  rejected({"a weight=1 weight=2@20 weight=3@10"}, "has phases out of order: 'weight=3@10' follows one from token 20");
  rejected({"a weight=1 weight=2@20 weight=3@20"}, "has phases out of order");
  rejected({"a", "b", "./a/"}, "./a/ is there twice");
  rejected({"a weight=0", "b weight=0"}, "the weights from token 0 on sum to 0");
  rejected({"a weight=1 weight=0@9", "b weight=1 weight=0@5"}, "the weights from token 9 on sum to 0");
  rejected({"a weight=1e308", "b weight=1e308"}, "sum to inf");
  rejected({"a", "b weight=0.00001"}, "b has the weight 1e-05 of a sum of 1.00001 from token 0 on");
}

BOOST_AUTO_TEST_CASE(relations_to_other_settings) {
  TrainConfig config = config_of({"a", "b"});
  check_together(config);
  config.train.epochs = 2;
  BRAID_CHECK_FAILS(check_relations(config), ErrorKind::setting, "train.epochs counts passes over data.path");
}

BOOST_AUTO_TEST_SUITE_END()
