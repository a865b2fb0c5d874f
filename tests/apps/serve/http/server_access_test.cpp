// Hosts, origins and preflights on real sockets.
#include <boost/test/unit_test.hpp>

#include "tests/apps/serve/some_requests.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(serve_server)

BOOST_AUTO_TEST_CASE(pages_of_allowed_origins) {
  TestServer server({.access = {.key = "secret", .origins = {"http://localhost:3000"}}});
  const std::string origin = "Origin: http://localhost:3000\r\n", key = "Authorization: Bearer secret\r\n",
                    ask = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n";
  const auto send = [&](const std::string& method, const std::string& path, const std::string& fields) {
    Client client(server.port());
    client.send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n");
    return client.answer(method == "OPTIONS");
  };
  const Answer preflight = send("OPTIONS", "/v1/chat/completions", origin + ask);
  BOOST_TEST(preflight.status == 204);
  BOOST_TEST(preflight.fields.at("access-control-allow-origin") == "http://localhost:3000");
  BOOST_TEST(preflight.fields.at("access-control-allow-methods").find("POST") != std::string::npos);
  BOOST_TEST(preflight.fields.at("access-control-allow-headers") == "*, Authorization");
  BOOST_TEST(preflight.fields.count("content-length") == 0U);
  for (const std::string& fields : {origin + key, origin}) {
    const Answer answer = send("GET", "/v1/models", fields);
    BOOST_TEST(answer.status == (fields == origin ? 401 : 200));
    BOOST_TEST(answer.fields.at("access-control-allow-origin") == "http://localhost:3000");
    BOOST_TEST(answer.fields.at("vary") == "Origin");
  }
  const Answer plain = send("GET", "/health", "");
  BOOST_TEST(plain.status == 200);
  BOOST_TEST(plain.fields.count("access-control-allow-origin") == 0U);
  BOOST_TEST(plain.fields.at("vary") == "Origin");
  for (const char* other : {"https://localhost:3000", "http://localhost:3001", "null", "http://127.0.0.1:3000"}) {
    const Answer answer = send("OPTIONS", "/v1/models", "Origin: " + std::string(other) + "\r\n" + ask);
    BOOST_TEST(answer.status == 403);
    BOOST_TEST(answer.fields.count("access-control-allow-origin") == 0U);
  }
  // A connection forgets the origin of its last request.
  Client client(server.port());
  BOOST_TEST(client.get("/health", origin).fields.count("access-control-allow-origin") == 1U);
  BOOST_TEST(client.get("/health").fields.count("access-control-allow-origin") == 0U);
}

BOOST_AUTO_TEST_CASE(foreign_hosts_and_origins) {
  TestServer server;
  const auto with_host = [&](const std::string& host) {
    Client client(server.port());
    client.send("GET /v1/models HTTP/1.1\r\n" + host + "\r\n");
    return client.answer().status;
  };
  BOOST_TEST(with_host("Host: 127.0.0.1:" + std::to_string(server.port()) + "\r\n") == 200);
  BOOST_TEST(with_host("Host: evil.example\r\n") == 403);
  BOOST_TEST(with_host("Host:\r\n") == 403);
  BOOST_TEST(with_host("") == 400);
  BOOST_TEST(with_host("Host: localhost\r\nOrigin: http://localhost\r\n") == 200);
  BOOST_TEST(with_host("Host: localhost\r\nOrigin: http://"
                       "evil.example\r\n") == 403);
}

BOOST_AUTO_TEST_SUITE_END()
