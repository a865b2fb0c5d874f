// The server on real sockets: what clients may send, and what must not harm the others.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <deque>
#include <map>
#include <sstream>

#include "apps/cli/version.h"
#include "braid/tensor/random.h"
#include "tests/apps/exposition.h"
#include "tests/apps/serve/some_requests.h"

using namespace braid;
using namespace braid::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(serve_server)

namespace {
std::string path_of(const apps::serve::Route& route) {
  return route.task == apps::serve::Task::model ? "/v1/models/tiny" : route.path;
}
}  // namespace

BOOST_AUTO_TEST_CASE(every_route_with_every_method) {
  TestServer server;
  for (const apps::serve::Route& route : apps::serve::routes()) {
    for (const std::string method : {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "MARKER"}) {
      BOOST_TEST_CONTEXT(method << " " << route.path) {
        const bool fits = method == route.method || (method == "HEAD" && std::string(route.method) == "GET");
        Client client(server.port());
        client.send(
            method + " " + path_of(route) +
            "?a=b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
        const Answer answer = client.answer(method == "HEAD");
        const bool needs_more =  // than an empty object, which is a new document for completions
            std::string(route.method) == "POST" && route.task != apps::serve::Task::completions;
        BOOST_TEST(answer.status == (!fits ? 405 : needs_more ? 400 : 200));
        BOOST_TEST(answer.fields.count("x-request-id") == 1U);
        BOOST_TEST(answer.fields.count("access-control-allow-origin") == 0U);
        if (!fits) BOOST_TEST(answer.fields.at("allow") == route.method);
        if (!fits && method != "HEAD") BOOST_TEST(answer.json()["error"]["code"] == "method_not_allowed");
      }
    }
  }
  for (const char* path : {"/v1", "/V1/models", "/../health", "/MARKER", "/health/x", "/page", "/page//"}) {
    const Answer answer = Client(server.port()).get(path);
    BOOST_TEST(answer.status == 404);
    BOOST_TEST(answer.body.find("MARKER") == std::string::npos);
  }
  Client client(server.port());  // HEAD is of one request
  BOOST_TEST(client.get("/health", "", "HEAD").status == 200);
  client.send("this is no request\r\n\r\n");
  BOOST_TEST(client.answer().json().contains("error"));
  // Slashes that clients add.
  for (const char* path : {"//health", "/health/", "/v1//models", "//v1/models/?a=b", "//", "/page//main.js"})
    BOOST_TEST(Client(server.port()).get(path).status == 200, path);
  BOOST_TEST(server.post("/v1//tokenize/", R"({"prompt": "x"})").status == 200);
}

// Its words are the server's own.
BOOST_AUTO_TEST_CASE(unknown_routes_name_those_there_are) {
  TestServer server;
  const auto message = [&](const std::string& path) {
    const Answer answer = Client(server.port()).get(path);
    BOOST_TEST(answer.status == 404);
    BOOST_TEST(answer.json()["error"]["code"] == "unknown_route");
    return answer.json()["error"]["message"].get<std::string>();
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    BOOST_TEST(text.find(part) != std::string::npos, part << " in " << text);
  };
  contains(message("/v1/chat/completion"), "did you mean '/v1/chat/completions'?");
  contains(message("/v1/model"), "did you mean '/v1/models'?");
  contains(message("/api/tags"),
           "there is no such route; routes: POST /v1/completions, POST /v1/chat/completions, GET");
  for (const apps::serve::Route& route : apps::serve::routes())
    contains(message("/api/tags"), std::string(route.method) + " " + route.path);
  contains(message("/v1/embeddings"), "embeddings are not served: this model writes text; use POST /v1/completions or");
  contains(message("/v1/responses/resp_1"), "responses are not served; use POST /v1/chat/completions, ");
  BOOST_TEST(message("/MARKER").find("MARKER") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_probes_and_browsers_ask) {
  TestServer server({.access = {.key = "secret"}});
  BOOST_TEST(Client(server.port()).get("/ready").json()["status"] == "ready");
  BOOST_TEST(Client(server.port()).get("/version").status == 401);
  const Answer version = Client(server.port()).get("/version", "Authorization: Bearer secret\r\n");
  BOOST_TEST(version.json()["version"] == apps::version());
  BOOST_TEST(version.json()["commit"] == apps::build_commit());
  const Answer icon = Client(server.port()).get("/favicon.ico");
  BOOST_TEST(icon.status == 200);
  BOOST_TEST(icon.fields.at("content-type") == "image/svg+xml");
  BOOST_TEST(icon.body == Client(server.port()).get("/page/icon.svg").body);
}

BOOST_AUTO_TEST_CASE(a_name_of_any_bytes) {
  TestServer server({}, {.name = "caf\xe9"});
  BOOST_TEST(Client(server.port()).get("/v1/models").json()["data"][0]["id"] == "caf\uFFFD");
  BOOST_TEST(Client(server.port()).get("/v1/models/caf%EF%BF%BD").status == 200);
}

// The text format of Prometheus, read line by line.
BOOST_AUTO_TEST_CASE(histograms_of_metrics) {
  TestServer server;
  for (int i = 0; i < 3; ++i)
    server.post("/v1/completions", R"({"prompt": "abc", "max_tokens": 12, "ignore_eos": true, "seed": 1})");
  server.post("/v1/completions", R"({"prompt": "abcde", "max_tokens": 0, "echo": true, "logprobs": 1})");
  BOOST_TEST(server.idle());
  const std::string text = Client(server.port()).get("/metrics").body;
  read_exposition(text);
  std::istringstream lines(text);
  struct Read {
    std::vector<std::pair<double, int64_t>> buckets;
    double sum = -1;
    int64_t count = -1;
  };
  std::map<std::string, Read> read;
  std::map<std::string, std::string> types;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, name;
    words >> first >> second >> name;
    if (first == "#") {
      if (second == "TYPE") types[name] = "seen";
      if (second == "TYPE" && line.ends_with(" histogram")) read[name];
      continue;
    }
    for (auto& [histogram, values] : read) {
      if (!first.starts_with(histogram + "_")) continue;
      const std::string rest = first.substr(histogram.size());
      if (rest == "_sum") values.sum = std::stod(second);
      if (rest == "_count") values.count = std::stoll(second);
      if (!rest.starts_with("_bucket{le=\"")) continue;
      const std::string bound = rest.substr(12, rest.size() - 14);
      values.buckets.emplace_back(bound == "+Inf" ? INFINITY : std::stod(bound), std::stoll(second));
    }
  }
  BOOST_TEST(read.size() == 6u);
  for (const auto& [name, values] : read) {
    BOOST_TEST_CONTEXT(name) {
      BOOST_REQUIRE(values.buckets.size() > 10u);
      for (size_t i = 1; i < values.buckets.size(); ++i) {
        BOOST_TEST(values.buckets[i].first > values.buckets[i - 1].first);
        BOOST_TEST(values.buckets[i].second >= values.buckets[i - 1].second);
      }
      BOOST_TEST(std::isinf(values.buckets.back().first));
      BOOST_TEST(values.buckets.back().second == values.count);
      BOOST_TEST(values.sum >= 0);
    }
  }
  BOOST_TEST(read["braid_time_to_first_token_seconds"].count == 3);  // a prompt that is scored has none
  BOOST_TEST(read["braid_time_per_output_token_seconds"].count == 3);
  BOOST_TEST(read["braid_e2e_request_latency_seconds"].count == 4);
  BOOST_TEST(read["braid_request_queue_time_seconds"].count == 4);
  BOOST_TEST(read["braid_request_prompt_tokens"].sum == 14);
  BOOST_TEST(read["braid_request_generation_tokens"].sum == 36);
  BOOST_TEST(read["braid_e2e_request_latency_seconds"].sum >= read["braid_time_to_first_token_seconds"].sum);
}

// RFC 9112, 3.2: the host of an address counts instead of the field, which must be there all the same.
BOOST_AUTO_TEST_CASE(every_form_of_target) {
  TestServer server;
  const auto status = [&](const std::string& line, const std::string& fields = "Host: localhost\r\n") {
    Client client(server.port());
    client.send(line + " HTTP/1.1\r\n" + fields + "\r\n");
    return client.answer().status;
  };
  for (const char* target :
       {"http://localhost/v1/models", "HTTP://127.0.0.1:80/v1/models?a=b", "https://localhost/health",
        "http://[::1]:9/health", "http://localhost", "http://localhost?x"})
    BOOST_TEST(status("GET " + std::string(target)) == 200, target);
  BOOST_TEST(status("GET http://localhost/health", "Host: evil.example\r\n") == 200);
  BOOST_TEST(status("GET http://localhost/nothing") == 404);
  BOOST_TEST(status("GET http:" + std::string("//evil.example/health")) == 403);
  for (const char* target : {"http:///health", "http://@localhost/health", "ftp://localhost/health", "health", "*",
                             "localhost:80", "http:/localhost/health"})
    BOOST_TEST(status("GET " + std::string(target)) == 400, target);
  BOOST_TEST(status("GET http://localhost/health", "") == 400);
  BOOST_TEST(status("GET http://localhost/health", "Host: a\r\nHost: b\r\n") == 400);
  BOOST_TEST(status("OPTIONS *") == 204);
  BOOST_TEST(status("CONNECT localhost:80") == 501);
}

BOOST_AUTO_TEST_CASE(clients_that_leave_are_counted) {
  TestServer server({}, {.engine = {.sequences = 1}});
  {
    Client client(server.port());
    client.send(
        Client::post_text("/v1/completions", R"({"prompt": "x", "n": 60, "max_tokens": 60, "ignore_eos": true})"));
    // All 60 are with the engine: those that it does not have yet when a client leaves are never sent to it.
    const auto taken = [&] {
      const auto load = server.service.load();
      return load.waiting + load.running + load.finished;
    };
    while (taken() < 60) ::usleep(1000);
  }
  const auto ended = [&] { return server.service.load().cancelled + server.service.load().finished; };
  for (int i = 0; i < 3000 && ended() < 60; ++i) ::usleep(10000);  // between two of them the engine may be idle
  BOOST_TEST(ended() == 60);
  BOOST_TEST(server.idle());
  BOOST_TEST(server.service.load().cancelled > 0);
  BOOST_TEST(server.metric("braid_http_left_total") == 1);
  BOOST_TEST(server.metric("braid_http_answers_total{route=\"/v1/completions\",status=\"499\"}") == 1);
}

BOOST_AUTO_TEST_CASE(with_a_key_every_route_but_health_needs_it) {
  TestServer server({.access = {.key = "secret"}});
  for (const apps::serve::Route& route : apps::serve::routes()) {
    for (const std::string method : {"GET", "POST", "PUT"}) {
      for (const char* fields : {"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer secre\r\n",
                                 "Authorization: Bearer secret\r\nAuthorization: Bearer secret\r\n"}) {
        const Answer answer = Client(server.port()).get(path_of(route), fields, method);
        const bool open = !route.needs_key && method == "GET";
        BOOST_TEST(answer.status == (open ? 200 : 401), method << " " << route.path << " " << fields);
        BOOST_TEST(answer.fields.count("allow") == 0U);
      }
    }
  }
  BOOST_TEST(Client(server.port()).get("/unknown").status == 401);
  BOOST_TEST(Client(server.port()).get("/unknown", "Authorization: Bearer secret\r\n").status == 404);
  BOOST_TEST(Client(server.port()).get("/v1/models", "Authorization: Bearer secret\r\n").status == 200);
}

BOOST_AUTO_TEST_CASE(content_types_and_expectations) {
  TestServer server;
  const auto status = [&](const std::string& fields) {
    Client client(server.port());
    client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + fields +
                "Content-Length: 15\r\n\r\n{\"prompt\": \"x\"}");
    return client.answer().status;
  };
  BOOST_TEST(status("Content-Type: application/json\r\n") == 200);
  BOOST_TEST(status("Content-Type: Application/JSON; charset=utf-8\r\n") == 200);
  BOOST_TEST(status("Content-Type: text/plain\r\n") == 415);
  BOOST_TEST(status("Content-Type: application/jsonp\r\n") == 415);
  BOOST_TEST(status("") == 415);
  const std::string json = "Content-Type: application/json\r\n";
  for (const char* coding : {"gzip", "deflate", "br", "zstd", "identity, gzip", "GZIP"})
    BOOST_TEST(status(json + "Content-Encoding: " + coding + "\r\n") == 415, coding);
  BOOST_TEST(status(json + "Content-Encoding: Identity\r\n") == 200);
  for (const char* expect : {"200-ok", "100-continue, x", ""})  // with the whole body behind them
    BOOST_TEST(status(json + "Expect: " + expect + "\r\n") == 417, expect);
  BOOST_TEST(status(json + "Expect: 100-Continue\r\n") == 200);
  BOOST_TEST(Client(server.port()).get("/health", "Expect: MARKER\r\n").status == 417);
  Client client(server.port());
  client.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
      "Content-Length: 15\r\n\r\n");
  BOOST_TEST(client.receive());
  BOOST_TEST(client.text() == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("{\"prompt\": \"x\"}");
  BOOST_TEST(client.answer().status == 200);
  client.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: MARKER\r\n"
      "Content-Length: 15\r\n\r\n");
  BOOST_TEST(client.answer().status == 417);
}

BOOST_AUTO_TEST_CASE(connections_are_kept_and_requests_may_wait_in_them) {
  TestServer server;
  Client client(server.port());
  for (int i = 0; i < 3; ++i) BOOST_TEST(client.get("/health").fields.at("connection") == "keep-alive");
  BOOST_TEST(client.get("/nothing").status == 404);
  BOOST_TEST(client.post("/tokenize", "MARKER").status == 400);
  std::string several;
  for (int i = 0; i < 5; ++i)
    several += Client::post_text("/tokenize", "{\"prompt\": \"" + std::string(static_cast<size_t>(i), 'x') + "\"}");
  client.send(several);
  for (int i = 0; i < 5; ++i) BOOST_TEST(client.answer().json()["count"] == i);
  BOOST_TEST(client.get("/health", "Connection: close\r\n").fields.at("connection") == "close");
  BOOST_TEST(client.ends());
  Client old(server.port());
  old.send("GET /health HTTP/1.0\r\n\r\n");
  BOOST_TEST(old.answer().status == 200);
  BOOST_TEST(old.ends());
}

// S1, S2: bytes that are no request end their connection with an error, and nothing else.
BOOST_AUTO_TEST_CASE(framing_errors_close_the_connection) {
  TestServer server;
  const std::string post = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  const std::string smuggled = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::pair<std::string, int> requests[] = {
      {post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" + smuggled, 400},
      {post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, 400},
      {post + "Transfer-Encoding: gzip\r\n\r\n" + smuggled, 501},
      {post + "Transfer-Encoding: chunked\r\n\r\n-2\r\n" + smuggled, 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffe\r\n" + smuggled, 413},
      {post + "Content-Length: 10737418240\r\n\r\n" + smuggled, 413},
      {"GET /health HTTP/3.0\r\n\r\n" + smuggled, 505},
      {"MARKER\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nX: " + std::string(20000, 'a'), 431}};
  for (const auto& [bytes, status] : requests) {
    BOOST_TEST_CONTEXT(bytes.substr(0, 120)) {
      Client client(server.port());
      client.send(bytes);
      const Answer answer = client.answer();
      BOOST_TEST(answer.status == status);
      BOOST_TEST(answer.fields.at("connection") == "close");
      BOOST_TEST(answer.body.find("MARKER") == std::string::npos);
      BOOST_TEST(client.ends());
      BOOST_TEST(client.text() == "");  // no second answer
    }
  }
  check_healthy(server);
}

// S4: whenever a client leaves, its text is not made any more, and the others get what they would have got alone.
BOOST_AUTO_TEST_CASE(clients_that_leave_disturb_nobody) {
  TestServer server({}, {.engine = {.sequences = 4, .queue = 64}});
  const std::string body = R"({"prompt": "abc", "max_tokens": 40, "temperature": 0.7, "seed": 5, "logprobs": 2,
                               "ignore_eos": true})";
  const std::string alone = server.post("/v1/completions", body).json()["choices"].dump();
  for (int round = 0; round < 20; ++round) {
    std::deque<Client> leaving;
    for (int i = 0; i < 8; ++i) {
      leaving.emplace_back(server.port());
      const std::string request =
          i % 2 == 0 ? kLong : R"({"prompt": ["a", "b", "c"], "n": 2, "max_tokens": 60, "ignore_eos": true})";
      leaving.back().send(Client::post_text("/v1/completions", request));
      if (i % 4 == 0) leaving.back().receive();  // in decode; others while they wait or are read
    }
    Client staying(server.port());
    staying.send(Client::post_text("/v1/completions", body));
    leaving.clear();
    BOOST_TEST(staying.answer().json()["choices"].dump() == alone);
  }
  BOOST_TEST(server.idle());
  const models::EngineLoad load = server.service.load();
  BOOST_TEST(load.running == 0);
  BOOST_TEST(load.cancelled > 0);                            // not computed to their end for nobody
  BOOST_TEST(server.metric("braid_http_requests") == 1);     // the one that asks
  BOOST_TEST(server.metric("braid_http_connections") <= 2);  // perhaps the one before
}

// S1: requests with bytes changed, left out and repeated; no answer has words of them, and the server stays as it was.
BOOST_AUTO_TEST_CASE(mutated_requests) {
  TestServer server({.head_time = 100ms, .body_time = 100ms, .idle_time = 100ms, .linger_time = 100ms});
  const std::string requests[] = {
      Client::post_text("/v1/completions", kScore),
      Client::post_text("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "x"}], "max_tokens": 2})"),
      Client::post_text("/tokenize", R"({"prompt": "text"})"), "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"};
  uint64_t draw = 0;
  const auto random = [&](uint64_t below) { return random_bits(draw++, RandomKey{.seed = 7}) % below; };
  int64_t answered = 0, errors = 0;
  for (int i = 0; i < 400; ++i) {
    std::string bytes = requests[random(4)];
    for (uint64_t changes = 1 + random(4); changes > 0; --changes) {
      const size_t at = random(bytes.size()), length = random(std::min<size_t>(8, bytes.size() - at));
      if (const uint64_t how = random(3); how == 0)
        bytes[at] = static_cast<char>(random(256));
      else if (how == 1)
        bytes.erase(at, length);
      else
        bytes.insert(at, bytes.substr(at, length));
    }
    Client client(server.port());
    client.send(bytes + "\r\n\r\n");
    const Answer answer = client.answer();
    if (answer.status == 0) continue;  // it was incomplete
    ++answered;
    errors += answer.status != 200;
    BOOST_TEST((answer.status == 200 || (answer.status >= 400 && answer.status <= 505)), answer.status << " " << bytes);
    BOOST_TEST(answer.status != 500, bytes);
  }
  BOOST_TEST(errors > 100, answered << " answers, " << errors << " of them errors");
  BOOST_TEST(server.idle());
  check_healthy(server);
}

// S10: a request whose logits are NaN fails; those beside it get what they get alone.
BOOST_AUTO_TEST_CASE(a_request_that_fails_fails_alone) {
  TestServer server({}, {}, 'N');
  const std::string good =
                        R"({"prompt": "good", "max_tokens": 30, "temperature": 0, "ignore_eos": true, "logprobs": 1})",
                    bad = R"({"prompt": "NaN", "max_tokens": 30, "ignore_eos": true})";
  const std::string alone = server.post("/v1/completions", good).json()["choices"].dump();
  for (int round = 0; round < 5; ++round) {
    Client first(server.port()), second(server.port()), third(server.port());
    first.send(Client::post_text("/v1/completions", good));
    second.send(Client::post_text("/v1/completions", bad));
    third.send(Client::post_text("/v1/completions", good));
    const Answer failed = second.answer();
    BOOST_TEST(failed.status == 500);
    BOOST_TEST(failed.json()["error"]["code"] == "numerical_failure");
    for (Client* client : {&first, &third}) BOOST_TEST(client->answer().json()["choices"].dump() == alone);
  }
  const Answer mixed = server.post("/v1/completions", R"({"prompt": ["good", "NaN"], "max_tokens": 5})");
  BOOST_TEST(mixed.status == 500);
  BOOST_TEST(server.idle());
  BOOST_TEST(server.service.load().failed >= 6);
}

BOOST_AUTO_TEST_SUITE_END()
