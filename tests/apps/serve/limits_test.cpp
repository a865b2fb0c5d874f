// The limits of the server: of time, of connections, of bytes, of open files.
#include <sys/resource.h>

#include <boost/test/unit_test.hpp>
#include <deque>

#include "tests/apps/serve/some_requests.h"

using namespace braid;
using namespace braid::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(serve_limits)

// S3: the deadlines are of the whole head and the whole body, whatever arrives in between.
BOOST_AUTO_TEST_CASE(slow_clients_are_closed_at_the_deadline) {
  TestServer server({.head_time = 300ms, .body_time = 300ms, .idle_time = 300ms});
  Client idle(server.port()), head(server.port()), body(server.port());
  idle.get("/health");
  body.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n");
  head.send("GET /health HTTP/1.1\r\n");
  bool head_open = true, body_open = true;
  for (int i = 0; i < 500 && (head_open || body_open); ++i) {  // a byte now and then
    head_open = head_open && head.send("X");
    body_open = body_open && body.send(" ");
    ::usleep(10000);
  }
  BOOST_TEST(!head_open);
  BOOST_TEST(!body_open);
  BOOST_TEST(idle.ends());
  BOOST_TEST(server.metric("braid_http_timeouts_total") == 2);
  check_healthy(server);
}

BOOST_AUTO_TEST_CASE(a_full_server_closes_whoever_waits_longest) {
  TestServer server({.requests = 2, .spare_connections = 4});
  std::deque<Client> waiting;
  for (int i = 0; i < 6; ++i) waiting.emplace_back(server.port());
  BOOST_TEST(waiting.back().get("/health").status == 200);
  BOOST_TEST(Client(server.port()).get("/health").status == 200);
  BOOST_TEST(waiting.front().ends());
  BOOST_TEST(waiting.back().get("/health").status == 200);
}

BOOST_AUTO_TEST_CASE(too_many_requests_are_told_so_at_once) {
  TestServer server({.requests = 2}, {.engine = {.sequences = 1, .queue = 2}});
  Client first(server.port()), second(server.port()), third(server.port());
  for (Client* client : {&first, &second}) {
    client->send(Client::post_text("/v1/completions", kLong));
    BOOST_TEST(client->receive());
  }
  // Both are answered now, or have been: then nothing is full.
  const Answer answer = third.post("/v1/completions", kScore);
  BOOST_TEST((answer.status == 503 || answer.status == 200));
  if (answer.status == 503) BOOST_TEST(answer.fields.at("retry-after") == "1");
  BOOST_TEST(Client(server.port()).get("/health").status == 200);
  // More texts than may wait can never be answered.
  const std::string many = R"({"prompt": [[1],[1],[1]], "max_tokens": 1})";
  BOOST_TEST(server.post("/v1/completions", many).status == 400);
  BOOST_TEST(server.idle());
  check_healthy(server);
}

BOOST_AUTO_TEST_CASE(long_bodies_of_all_clients_together_are_bounded) {
  TestServer server({.held_bytes = 1000});
  Client client(server.port());
  const Answer answer = client.post("/tokenize", "{\"prompt\": \"" + std::string(2000, 'x') + "\"}");
  BOOST_TEST(answer.status == 503);
  BOOST_TEST(answer.fields.at("retry-after") == "1");
  BOOST_TEST(client.ends());
  BOOST_TEST(server.post("/tokenize", "{\"prompt\": \"" + std::string(500, 'x') + "\"}").json()["count"] == 500);
}

BOOST_AUTO_TEST_CASE(readers_that_stop_reading_are_closed) {
  TestServer server({.unread_bytes = 4096, .send_buffer = 4096});
  Client client(server.port(), 4096);
  // Pipelined streams fill the buffers of the system, and then the one of the connection.
  std::string requests;
  for (int i = 0; i < 50; ++i) requests += Client::post_text("/v1/completions", kLong);
  client.send(requests);
  for (int i = 0; i < 3000 && server.metric("braid_http_slow_readers_total") == 0; ++i) ::usleep(10000);
  BOOST_TEST(server.metric("braid_http_slow_readers_total") == 1);
  BOOST_TEST(server.idle());
  check_healthy(server);
}

BOOST_AUTO_TEST_CASE(clients_that_leave_while_they_read_are_counted) {
  TestServer server({.send_buffer = 4096});
  Client client(server.port(), 4096);
  client.send(Client::post_text("/tokenize", "{\"prompt\": \"" + std::string(1000000, 'x') + "\"}"));
  BOOST_TEST(client.receive());  // the answer, of 4 MB, is complete, and more of it is to be written
  client.close();
  const std::string left = "braid_http_answers_total{route=\"/tokenize\",status=\"499\"}";
  for (int i = 0; i < 3000 && server.metric(left) < 1; ++i) ::usleep(10000);
  BOOST_TEST(server.metric(left) == 1);
  BOOST_TEST(server.metric("braid_http_left_total") == 1);
}

BOOST_AUTO_TEST_CASE(too_much_behind_a_request_ends_the_connection) {
  TestServer server({.pipelined_bytes = 1000});
  Client full(server.port());
  full.send(Client::post_text("/v1/completions", kLong));
  BOOST_TEST(full.receive());
  std::string next = "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Filling: ";
  next += std::string(1000 - next.size() - 4, 'x') + "\r\n\r\n";
  full.send(next);  // as much as may wait
  BOOST_TEST(full.answer().body.find("[DONE]") != std::string::npos);
  BOOST_TEST(full.answer().status == 200);
  Client client(server.port());
  client.send(Client::post_text("/v1/completions", kLong) + std::string(9000, 'x'));
  while (client.receive()) continue;
  BOOST_TEST(client.text().find("[DONE]") == std::string::npos);
  BOOST_TEST(server.idle());
}

// A cache smaller than the longest sequence of the model.
BOOST_AUTO_TEST_CASE(the_context_is_what_the_cache_has_room_for) {
  TestServer server({}, {.engine = {.positions = 40}});
  BOOST_TEST(Client(server.port()).get("/v1/models").json()["data"][0]["max_model_len"] == 40);
  const auto text = [&](size_t bytes) {
    return server.post("/v1/completions",
                       "{\"ignore_eos\": true, \"max_tokens\": -1, \"prompt\": \"" + std::string(bytes, 'x') + "\"}");
  };
  const nlohmann::json made = text(10).json();
  BOOST_TEST(made["usage"]["completion_tokens"] == 30);
  BOOST_TEST(made["choices"][0]["finish_reason"] == "length");
  const Answer longer = text(41);
  BOOST_TEST(longer.status == 400);
  BOOST_TEST(longer.json()["error"]["code"] == "context_length_exceeded");
  BOOST_TEST(longer.json()["error"]["param"] == "prompt");
}

// S9: with no descriptor left the connections that are open are served, and new ones when some are free again.
BOOST_AUTO_TEST_CASE(the_limit_of_open_files_is_survived) {
  TestServer server;
  Client open(server.port());
  BOOST_TEST(open.get("/health").status == 200);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  std::deque<Client> clients;
  rlimit low = before;
  low.rlim_cur = 64;
  ::setrlimit(RLIMIT_NOFILE, &low);
  for (int i = 0; i < 64; ++i) clients.emplace_back(server.port());
  BOOST_TEST(!clients.back().connected());
  BOOST_TEST(open.get("/health").status == 200);
  clients.clear();
  ::setrlimit(RLIMIT_NOFILE, &before);
  check_healthy(server);
}

BOOST_AUTO_TEST_SUITE_END()
