// How the server begins to listen, and how it ends.
#include <boost/test/unit_test.hpp>
#include <deque>
#include <thread>

#include "tests/apps/serve/some_requests.h"
#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(serve_stopping)

// S10: what is being answered ends, nothing new begins; after the time of grace all is closed.
BOOST_AUTO_TEST_CASE(stopping_lets_requests_end) {
  TestServer server;
  std::deque<Client> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(Client::post_text("/v1/completions", kLong));
  }
  for (Client& client : clients) BOOST_TEST(client.receive());
  Client idle(server.port());
  idle.get("/health");
  const int port = server.port();
  bool complete = false;
  std::thread stopping([&] { complete = server.server.stop(60s); });
  for (Client& client : clients) {
    BOOST_TEST(client.ends());
    BOOST_TEST(client.text().ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
    client.close();
  }
  BOOST_TEST(idle.ends());
  stopping.join();
  BOOST_TEST(complete);
  BOOST_TEST(!Client(port).connected());
}

BOOST_AUTO_TEST_CASE(stopping_without_grace_closes_all) {
  TestServer server({}, {.engine = {.sequences = 1}});
  std::deque<Client> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(Client::post_text("/v1/completions", kLong));
  }
  BOOST_TEST(clients.front().receive());
  server.server.stop(0ms);
  for (Client& client : clients) BOOST_TEST(client.ends());
  BOOST_TEST(server.idle());
}

BOOST_AUTO_TEST_CASE(addresses_that_cannot_be_used) {
  using apps::serve::BoundAddress;
  TestServer server;
  BRAID_CHECK_FAILS(BoundAddress("127.0.0.1", server.port()), ErrorKind::setting, "another program has this port");
  BRAID_CHECK_FAILS(BoundAddress("192.0.2.7", 0), ErrorKind::setting, "cannot listen on 192.0.2.7");
  BRAID_CHECK_FAILS(BoundAddress("nowhere", 0), ErrorKind::setting, "expected an IP address");
}

// While the model is being loaded no client can connect; a second server that begins to listen meanwhile is told of.
BOOST_AUTO_TEST_CASE(a_bound_address_accepts_nobody_yet) {
  TestServer other;
  for (const char* name : {"127.0.0.1", "localhost", "::1"}) {
    apps::serve::BoundAddress address(name, 0);
    const int port = address.port();
    BOOST_TEST(port > 0);
    BOOST_TEST(!Client(port).connected());
    apps::serve::Server server(other.service, {}, std::move(address));
    BOOST_TEST(server.port() == port);
    if (name[0] != ':') BOOST_TEST(Client(port).get("/health").status == 200);
  }
  apps::serve::BoundAddress first("127.0.0.1", 0), second("127.0.0.1", first.port());
  const apps::serve::Server server(other.service, {}, std::move(first));
  BRAID_CHECK_FAILS(apps::serve::Server(other.service, {}, std::move(second)), ErrorKind::setting,
                    "another program has taken this port");
}

BOOST_AUTO_TEST_SUITE_END()
