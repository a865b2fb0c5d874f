#include "apps/eval/report.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(eval_report)

BOOST_AUTO_TEST_CASE(perplexities_beyond_use) {
  const std::vector<TaskResult> results = {{.task = "text:f",
                                            .items = 3,
                                            .settings = {},
                                            .metrics = {{.name = "word_perplexity", .value = 3.0037e9, .error = 1e8},
                                                        {.name = "byte_perplexity", .value = 999999.5, .error = 2.0},
                                                        {.name = "tokens", .value = 3e9, .error = {}, .count = true}}}};
  const std::string table = result_table(results);
  BOOST_TEST(table.find("word_perplexity        > 1e6       -\n") != std::string::npos, table);
  BOOST_TEST(table.find("byte_perplexity  999999.5000  2.0000\n") != std::string::npos, table);
  BOOST_TEST(table.find("3000000000") != std::string::npos, table);
  const auto json = nlohmann::json::parse(result_json(results));
  BOOST_TEST(json["results"][0]["metrics"]["word_perplexity"]["value"] == 3.0037e9);
}

BOOST_AUTO_TEST_CASE(extrapolated_tasks_are_named) {
  std::vector<TaskResult> results = {
      {.task = "a", .items = 1, .settings = {{"max_length", "96"}}, .metrics = {}},
      {.task = "b", .items = 1, .settings = {{"max_length", "96"}, {kExtrapolatedFrom, "64"}}, .metrics = {}}};
  const std::string table = result_table(results);
  BOOST_TEST(table.ends_with("b: extrapolated, sequences of up to 96 tokens by a model of 64\n"), table);
  BOOST_TEST(table.find("a: extrapolated") == std::string::npos, table);
}

BOOST_AUTO_TEST_SUITE_END()
