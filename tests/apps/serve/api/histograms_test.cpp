#include "apps/serve/api/histograms.h"

#include <boost/test/unit_test.hpp>

using namespace braid;
using namespace braid::apps::serve;

BOOST_AUTO_TEST_SUITE(serve_histograms)

BOOST_AUTO_TEST_CASE(buckets_contain_their_bounds_and_what_is_below) {
  const double bounds[] = {0.5, 1, 10};
  Histogram histogram(bounds);
  for (const double value : {0.25, 1.0, 0.75, 100.0}) histogram.add(value);
  BOOST_TEST(histogram.text("x", "Help.") ==
             "# HELP x Help.\n# TYPE x histogram\n"
             "x_bucket{le=\"0.5\"} 1\nx_bucket{le=\"1\"} 3\nx_bucket{le=\"10\"} 3\nx_bucket{le=\"+Inf\"} 4\n"
             "x_sum 102\nx_count 4\n");
}

BOOST_AUTO_TEST_CASE(times_of_a_text) {
  TextHistograms texts;
  models::Update last{.reason = models::StopReason::length,
                      .prompt_tokens = 7,
                      .steps = 4,
                      .queue_seconds = 0.25,
                      .prompt_seconds = 0.5,
                      .step_seconds = 2};
  texts.add(last, 5, 5);
  last.steps = 0, last.step_seconds = 0;
  texts.add(last, 0, 0);  // a scored prompt
  for (const models::StopReason reason : {models::StopReason::cancelled, models::StopReason::failed}) {
    last.reason = reason;
    texts.add(last, 1, 1);
  }
  const std::string text = "\n" + texts.text();
  for (const char* line :
       {"braid_time_to_first_token_seconds_sum 0.75", "braid_time_to_first_token_seconds_count 1",
        "braid_time_per_output_token_seconds_sum 0.5", "braid_time_per_output_token_seconds_count 1",
        "braid_e2e_request_latency_seconds_sum 3.5", "braid_e2e_request_latency_seconds_count 2",
        "braid_request_queue_time_seconds_sum 0.5", "braid_request_prompt_tokens_sum 14",
        "braid_request_generation_tokens_sum 5", "braid_request_generation_tokens_bucket{le=\"5\"} 2",
        "braid_request_generation_tokens_bucket{le=\"2\"} 1", "braid_request_generation_tokens_bucket{le=\"100000\"} 2",
        "braid_request_queue_time_seconds_bucket{le=\"0.0001\"} 0"})
    BOOST_TEST(text.find("\n" + std::string(line) + "\n") != std::string::npos, line << " in " << text);
}

BOOST_AUTO_TEST_SUITE_END()
