// Requests that clients send, with fields, heads and bytes changed: each gets an answer or the end of its connection.
#include <algorithm>
#include <array>

#include "tests/apps/serve/client.h"
#include "tests/soak/phases.h"

namespace braid::soak {
namespace {

using test::Answer;
using test::Client;

const std::string kMarker = "MARKER";  // in texts of the clients: no error may repeat it

struct Field {
  std::string name, value;
};
struct Shape {
  std::string path;
  std::vector<Field> fields;
};

// As lm-evaluation-harness, the package openai and the page send them.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"/v1/completions",
       {{"model", "\"tiny\""},
        {"prompt", "[[77, 65, 82], [75, 69, 82, 33]]"},
        {"temperature", "0"},
        {"max_tokens", "1"},
        {"logprobs", "1"},
        {"seed", "1234"},
        {"echo", "true"}}},
      {"/v1/completions",
       {{"model", "\"tiny\""},
        {"prompt", "\"MARKER\""},
        {"max_tokens", "3"},
        {"stop", "[\"MARKER\", \"\\n\"]"},
        {"stream", "true"},
        {"stream_options", "{\"include_usage\": true}"},
        {"top_p", "0.9"},
        {"top_k", "20"},
        {"n", "2"}}},
      {"/v1/chat/completions",
       {{"model", "\"MARKER\""},
        {"messages", R"([{"role": "system", "content": "MARKER"}, {"role": "user", "content": "x"}])"},
        {"max_tokens", "2"},
        {"temperature", "0.7"},
        {"logprobs", "true"},
        {"top_logprobs", "3"},
        {"stop", "null"}}},
      {"/tokenize", {{"prompt", "\"MARKER\""}, {"add_special_tokens", "true"}}},
      {"/detokenize", {{"tokens", "[77, 65, 82, 75]"}}},
      {"/v1/inspect", {{"prompt", "\"MAR\""}, {"layer", "0"}}}};
  return all;
}

// JSON and what only looks like it: wrong types, out of every range, too deep, no text.
const std::vector<std::string>& bad_values() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> v = {"null",
                                  "true",
                                  "-1",
                                  "1e400",
                                  "-1e400",
                                  "1e-400",
                                  "NaN",
                                  "Infinity",
                                  "-0",
                                  "0.5",
                                  "2147483648",
                                  "9223372036854775808",
                                  "18446744073709551616",
                                  "1000000000000000000",
                                  "\"\"",
                                  "\"MARKER\"",
                                  "{}",
                                  "[]",
                                  "[[]]",
                                  "[null]",
                                  "[-1]",
                                  "[300]",
                                  "[1e9]",
                                  "[2147483648]",
                                  "[\"MARKER\", 1]",
                                  "{\"MARKER\": 1}",
                                  "\"\\ud800\"",
                                  "\"\\udc00\\ud800\"",
                                  "\"\\u0000\"",
                                  "\"\xff\xfe MARKER\"",
                                  "\"\xed\xa0\x80\"",
                                  "\"MARKER",
                                  "01",
                                  "+1",
                                  "0x10",
                                  "'x'",
                                  "[1,]",
                                  "[,1]",
                                  "{\"a\":}",
                                  "tru",
                                  "\"\\x\"",
                                  "// MARKER",
                                  "1 2",
                                  "[{\"role\": \"user\"}]",
                                  "[{\"role\": \"USER MARKER\", \"content\": 1}]",
                                  "[{\"content\": {\"MARKER\": []}}]"};
    v.push_back(std::string(2000, '[') + std::string(2000, ']'));
    v.push_back(std::string(3000, '['));
    v.push_back("\"" + std::string(9000, 'x') + "\"");
    v.push_back("[" + std::string(4000, '1') + "]");
    std::string stops = "[\"0\"";
    for (int i = 1; i < 400; ++i) stops += ", \"" + std::to_string(i) + "\"";
    v.push_back(stops + "]");
    return v;
  }();
  return all;
}

std::string body_of(const Shape& shape) {
  std::string body = "{";
  for (const Field& field : shape.fields) body += (body.size() > 1 ? ", \"" : "\"") + field.name + "\": " + field.value;
  return body + "}";
}

void change_bytes(std::string& text, Random& random) {
  for (uint64_t changes = 1 + below(random, 4); changes > 0 && !text.empty(); --changes) {
    const size_t at = below(random, text.size()), length = below(random, std::min<size_t>(12, text.size() - at) + 1);
    switch (below(random, 4)) {
      case 0:
        text[at] = static_cast<char>(below(random, 256));
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
        break;
      case 2:
        text.erase(at, length);
        break;
      default:
        text.insert(at, text.substr(at, length));
    }
  }
}

// A request whose head says how long it is: the connection may continue.
std::string framed(Random& random) {
  static const std::vector<std::string> unknown = {
      "logit_bias",        "tools",           "best_of", "suffix",
      "frequency_penalty", "response_format", "MARKER",  "max_completion_tokens",
      "ignore_eos"};
  Shape shape = shapes()[below(random, shapes().size())];
  const auto bad = [&] { return bad_values()[below(random, bad_values().size())]; };
  const size_t at = below(random, shape.fields.size());
  std::string body;
  switch (below(random, 8)) {
    case 0:
      shape.fields.erase(shape.fields.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      shape.fields.push_back({shape.fields[at].name, bad()});
      break;
    case 2:
      shape.fields.push_back({unknown[below(random, unknown.size())], bad()});
      break;
    case 3:
      body = body_of(shape);
      body.resize(below(random, body.size()));
      return Client::post_text(shape.path, body);
    case 4:
      return Client::post_text(shape.path, bad());
    case 5:
      body = body_of(shape);
      change_bytes(body, random);
      return Client::post_text(shape.path, body);
    default:
      shape.fields[at].value = bad();
  }
  return Client::post_text(shape.path, body_of(shape));
}

// Heads that are HTTP but not allowed; most of them end the connection.
std::string bad_head(Random& random) {
  static const std::vector<std::string> lines = {
      "GET /MARKER HTTP/1.1\r\nHost: localhost\r\n",
      "GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n",
      "PUT /v1/completions HTTP/1.1\r\nHost: localhost\r\n",
      "MARKER /health HTTP/1.1\r\nHost: localhost\r\n",
      "GET /health HTTP/1.1\r\nHost: evil.example\r\n",
      "GET /health HTTP/1.1\r\nHost:\r\n",
      "GET /health HTTP/1.1\r\n",
      "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
      "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: http://"
      "MARKER.example\r\n",
      "GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n",
      "GET /health HTTP/2.0\r\nHost: localhost\r\n",
      "GET /health HTTP/1.0\r\n",
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n",
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/MARKER\r\nContent-Length: 0\r\n",
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: "
      "MARKER\r\nContent-Length: "
      "9\r\n"};
  return lines[below(random, lines.size())] + "\r\n";
}

// Bytes that leave a doubt about where the request ends, or are none.
std::string bad_framing(Random& random) {
  static const std::string post = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  static const std::vector<std::string> fields = {"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
                                                  "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                                                  "Transfer-Encoding: chunked, chunked\r\n\r\n",
                                                  "Transfer-Encoding: gzip\r\n\r\n",
                                                  "Content-Length: -2\r\n\r\n{}",
                                                  "Content-Length: +2\r\n\r\n{}",
                                                  "Content-Length: 2,2\r\n\r\n{}",
                                                  "Content-Length: 0x2\r\n\r\n{}",
                                                  "Content-Length: 18446744073709551618\r\n\r\n{}",
                                                  "Content-Length: 10737418240\r\n\r\n{}",
                                                  "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n",
                                                  "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffe\r\n{}\r\n",
                                                  "Transfer-Encoding: chunked\r\n\r\nMARKER\r\n",
                                                  "Transfer-Encoding: chunked\r\n\r\n2\r\n{}MARKER",
                                                  "Content-Length : 2\r\n\r\n{}",
                                                  "Content-Length: 2\r\n MARKER\r\n\r\n{}",
                                                  "\r\nX: MARKER\r\n\r\n{}",
                                                  std::string("X: \0MARKER\r\n\r\n", 13),
                                                  "MARKER\r\n\r\n",
                                                  "Content-Length: 5\r\n\r\n{}"};
  switch (below(random, 6)) {
    case 0:
    case 1:
      return post + fields[below(random, fields.size())];
    case 2: {
      std::string many = post;
      for (uint64_t i = 90 + below(random, 300); i > 0; --i) many += "X-" + std::to_string(i) + ": MARKER\r\n";
      return many + "\r\n";
    }
    case 3:
      return "GET /health HTTP/1.1\r\nX: " + std::string(1000 + below(random, 30000), 'M');
    case 4: {
      std::string noise(1 + below(random, 200), ' ');
      for (char& c : noise) c = static_cast<char>(below(random, 256));
      return noise + "\r\n\r\n";
    }
    default: {
      const Shape& shape = shapes()[below(random, shapes().size())];
      std::string bytes = Client::post_text(shape.path, body_of(shape));
      change_bytes(bytes, random);
      return bytes + "\r\n\r\n";
    }
  }
}

void check_answer(const Answer& answer, const std::string& request, Report& report) {
  static constexpr std::array kErrors = {400, 403, 404, 405, 413, 415, 417, 431, 501, 503, 505};
  report.answer(answer.status);
  if (answer.status == 200) return;
  const auto fault = [&](const std::string& what) {
    report.fault(what + ": " + answer.body.substr(0, 200) + " to " + request.substr(0, 300));
  };
  if (std::ranges::count(kErrors, answer.status) == 0) fault("status " + std::to_string(answer.status));
  if (answer.body.find(kMarker) != std::string::npos) fault("an error repeats words of the client");
  const nlohmann::json body = nlohmann::json::parse(answer.body, nullptr, false);
  if (!body.is_object() || !body.contains("error")) fault("an error that is no object of OpenAI");
}

// Some requests on one connection, of which the last one may end it. How many of them are through.
int64_t connection(const Plan& plan, Random& random, Report& report) {
  constexpr size_t kRequests = 32;
  constexpr size_t kBytes = 20000;  // with the last two, fewer than the 64 KiB that may wait behind a request
  std::vector<std::string> requests;
  for (size_t bytes = 0; requests.size() < kRequests && bytes < kBytes; bytes += requests.back().size())
    requests.push_back(framed(random));
  requests.push_back(below(random, 2) == 0 ? bad_head(random) : bad_framing(random));
  Client client(plan.port, 0, some_address(random));
  if (!client.connected()) {
    report.fault("no connection");
    return 1;
  }
  std::string all;
  for (const std::string& request : requests) all += request;
  client.send(all);
  int64_t through = 0;
  for (const std::string& request : requests) {
    const bool last = through + 1 == std::ssize(requests);
    if (last) client.set_patience(5);  // for the rest of a request that is not complete the server waits longer
    const Answer answer = client.answer();
    ++through;
    if (answer.status == 0) {
      if (last)
        report.add(client.ended() ? "closed without an answer" : "incomplete: closed by the client");
      else
        report.fault("no answer to " + request.substr(0, 300));
      break;
    }
    check_answer(answer, request, report);
    if (answer.fields.count("connection") == 0 || answer.fields.at("connection") != "keep-alive") break;
  }
  if (below(random, 2) == 0) client.reset();
  return through;
}

}  // namespace

void malformed_requests(const Plan& plan, Report& report) {
  in_threads(8, plan.work(), report, [&](Random& random, int64_t) { return connection(plan, random, report); });
}

}  // namespace braid::soak
