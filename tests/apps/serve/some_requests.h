// Requests, and whether the server still serves after others.
#pragma once
#include <boost/test/unit_test.hpp>

#include "tests/apps/serve/test_server.h"

namespace braid::test {

inline const std::string kScore =
    R"({"prompt": [72, 101], "max_tokens": 1, "temperature": 0, "echo": true, "logprobs": 1})";
// A stream.
inline const std::string kLong = R"({"prompt": "x", "max_tokens": 60, "ignore_eos": true, "stream": true})";

// Still serves.
inline void check_healthy(TestServer& server) {
  BOOST_TEST(Client(server.port()).get("/health").status == 200);
  BOOST_TEST(server.post("/v1/completions", kScore).status == 200);
}

}  // namespace braid::test
