#include "apps/serve/http/request_log.h"

#include <boost/test/unit_test.hpp>

using namespace braid::apps::serve;

BOOST_AUTO_TEST_SUITE(serve_request_log)

BOOST_AUTO_TEST_CASE(both_forms_of_a_line) {
  const std::chrono::system_clock::time_point time(std::chrono::milliseconds(1795759427007));
  LogEntry entry{"req-00000001", "192.0.2.7", "/v1/completions", 200, 0.0123456789, {12, 3}};
  BOOST_TEST(log_line(LogForm::text, entry, time) == "req-00000001 /v1/completions 200 12.3 ms\n");
  BOOST_TEST(log_line(LogForm::json, entry, time) ==
             R"({"time":"2026-11-27T06:03:47.007Z","request":"req-00000001","client":"192.0.2.7",)"
             R"("route":"/v1/completions","status":200,"seconds":0.012346,"prompt_tokens":12,"completion_tokens":3})"
             "\n");
  entry.tokens = {};
  BOOST_TEST(log_line(LogForm::json, entry, time).find("\"prompt_tokens\":null,\"completion_tokens\":null") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
