#include "apps/serve/http/http_reader.h"

#include <boost/test/unit_test.hpp>

#include "tests/apps/serve/rejects.h"

using namespace braid::apps::serve;

BOOST_AUTO_TEST_SUITE(serve_http_reader)

using braid::test::rejects;
using State = HttpReader::State;

namespace {

const HttpLimits kLimits{.head_bytes = 1024, .fields = 10, .body_bytes = 100};
const std::string kPost = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n";

struct Read {
  State state;
  RequestHead head;
  std::string body, rest;
};

// The bytes in pieces of `step`.
Read read(const std::string& bytes, size_t step = 1 << 20) {
  HttpReader reader(kLimits);
  Read result{State::head, {}, "", ""};
  for (size_t at = 0; at < bytes.size() && result.state != State::complete; at += step) {
    result.rest += bytes.substr(at, step);
    result.state = reader.put(result.rest);
    if (result.state == State::complete) result.rest += bytes.substr(std::min(bytes.size(), at + step));
  }
  if (result.state != State::head) result.head = reader.head();
  if (result.state == State::complete) result.body = reader.take_body();
  return result;
}

void bad(int status, const std::string& bytes, const std::string& words) {
  BOOST_TEST_CONTEXT(bytes.substr(0, 100)) {
    for (const size_t step : {size_t{1}, size_t{7}, size_t{1} << 20})
      BOOST_CHECK_EXCEPTION(read(bytes, step), ApiError, rejects(status, "", words));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(requests_in_pieces_of_any_size) {
  const std::string with_length = kPost + "Content-Length: 5\r\nX-Odd: a b\r\n\r\nhello";
  const std::string chunked =
      kPost + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrail: er\r\n\r\n";
  for (const std::string& text : {with_length, chunked}) {
    for (size_t step = 1; step <= text.size(); ++step) {
      const Read result = read(text + "GET ", step);
      BOOST_TEST((result.state == State::complete));
      BOOST_TEST(result.head.method == "POST");
      BOOST_TEST(result.head.target == "/v1/completions");
      BOOST_TEST(result.head.keep_alive);
      BOOST_TEST(result.head.all("host").at(0) == "x");
      BOOST_TEST(result.body == "hello");
      BOOST_TEST(result.rest == "GET ");
    }
  }
  BOOST_TEST((read("GET / HTTP/1.1\r\nHost: x\r\n\r\n").state == State::complete));
  BOOST_TEST(!read("GET / HTTP/1.0\r\n\r\n").head.keep_alive);
  BOOST_TEST(!read("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").head.keep_alive);
  BOOST_TEST((read(with_length.substr(0, with_length.size() - 1)).state == State::body));
  BOOST_TEST((read(kPost).state == State::head));
}

BOOST_AUTO_TEST_CASE(one_reader_takes_one_request_after_another) {
  HttpReader reader(kLimits);
  std::string in = kPost + "Content-Length: 1\r\n\r\na" + kPost + "Content-Length: 2\r\n\r\nbcGET / HTTP/1.1\r\n\r\n";
  for (const char* body : {"a", "bc", ""}) {
    BOOST_TEST((reader.put(in) == State::complete));
    BOOST_TEST(reader.take_body() == body);
    reader.next();
  }
  BOOST_TEST(in == "");
}

// A request that two readers could understand in two ways ends the connection.
BOOST_AUTO_TEST_CASE(doubts_about_the_end_of_a_request_are_errors) {
  bad(400, kPost + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "not HTTP/1.1");
  bad(400, kPost + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "not HTTP/1.1");
  bad(400, kPost + "Content-Length: 5, 5\r\n\r\nhello", "not HTTP/1.1");
  bad(400, kPost + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "not HTTP/1.1");
  bad(400, kPost + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "not HTTP/1.1");
  bad(400, kPost + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "not HTTP/1.1");
  bad(400, kPost + "Content-Length: -1\r\n\r\n", "not HTTP/1.1");
  bad(400, kPost + "Content-Length: +5\r\n\r\nhello", "not HTTP/1.1");
  bad(400, kPost + "Content-Length: 0x5\r\n\r\nhello", "not HTTP/1.1");
  bad(400, kPost + "Content-Length: 99999999999999999999999\r\n\r\n", "not HTTP/1.1");
  bad(400, kPost + "Content-Length:\r\n\r\n", "not HTTP/1.1");
  bad(501, kPost + "Transfer-Encoding: gzip\r\n\r\n", "chunked");
  bad(501, kPost + "Transfer-Encoding: gzip, chunked\r\n\r\n", "chunked");
  bad(501, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "chunked");
  const std::string chunked = kPost + "Transfer-Encoding: chunked\r\n\r\n";
  bad(400, chunked + "-2\r\nxx\r\n", "not HTTP/1.1");
  bad(400, chunked + "g\r\n", "not HTTP/1.1");
  bad(400, chunked + "2\r\nabXX0\r\n\r\n", "not HTTP/1.1");
  bad(400, chunked + "fffffffffffffffff\r\n", "not HTTP/1.1");
  bad(400, "GET / HTTP/1.1\r\nHost : x\r\n\r\n", "not HTTP/1.1");
  bad(400, "GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n", "not HTTP/1.1");
  bad(400, std::string("GET / HTTP/1.1\r\nHost: x\0y\r\n\r\n", 29), "not HTTP/1.1");
  for (const char* fold : {" ", "\t", "  "}) {  // RFC 9112, 5.2
    bad(400, "GET / HTTP/1.1\r\nHost: x\r\n" + std::string(fold) + "y\r\n\r\n", "must not be folded");
    bad(400, "GET / HTTP/1.1\r\nHost: x\r\nA:\r\n" + std::string(fold) + "b\r\nC: d\r\n\r\n", "must not be folded");
    bad(400, "GET / HTTP/1.1\r\n" + std::string(fold) + "Host: x\r\n\r\n", "");
  }
  BOOST_TEST(read(kPost + "Content-Length: 4\r\n\r\n\r\n a").body == "\r\n a");
  bad(400, "GET MARKER HTTP/1.1\r\n\r\n", "begins with /");
  bad(400, "\x16\x03\x01\x02\r\n\r\n", "not HTTP/1.1");
}

BOOST_AUTO_TEST_CASE(versions) {
  bad(505, "GET / HTTP/2.0\r\n\r\n", "expected HTTP/1.1");
  bad(505, "GET / HTTP/0.9\r\n\r\n", "expected HTTP/1.1");
  BOOST_CHECK_EXCEPTION(read("GET /\r\n\r\n"), ApiError,
                        [](const ApiError& e) { return e.status() == 400 || e.status() == 505; });
}

BOOST_AUTO_TEST_CASE(sizes_are_bounded) {
  bad(431, "GET / HTTP/1.1\r\nX: " + std::string(2000, 'a'), "at most 1024 bytes");
  bad(431, "GET /" + std::string(2000, 'a'), "at most 1024 bytes");
  std::string fields;
  for (int i = 0; i < 11; ++i) fields += "X: y\r\n";
  bad(431, "GET / HTTP/1.1\r\n" + fields + "\r\n", "11 fields: at most 10");
  bad(413, kPost + "Content-Length: 101\r\n\r\n", "at most 100 bytes");
  bad(413, kPost + "Content-Length: 10737418240\r\n\r\n", "at most 100 bytes");
  const std::string chunked = kPost + "Transfer-Encoding: chunked\r\n\r\n";
  bad(413, chunked + "fffffffffffffffe\r\nx", "at most 100 bytes");
  bad(413, chunked + "50\r\n" + std::string(80, 'a') + "\r\n50\r\n" + std::string(80, 'a') + "\r\n", "at most 100");
  bad(431, chunked + "1;" + std::string(5000, 'a'), "at most 1024 bytes");
}

BOOST_AUTO_TEST_SUITE_END()
