#include "apps/serve/http/server.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <future>
#include <thread>

#include "apps/serve/http/session.h"
#include "braid/tensor/error.h"

namespace braid::apps::serve {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

struct Server::Listener {
  Listener(Service& service, ServerOptions options, BoundAddress address)
      : hub(std::make_shared<Hub>(service, std::move(options))), acceptor(hub->io), retry(hub->io) {
    listen(std::move(address));
    accept();
    thread = std::thread([this] { run(); });
  }

  void listen(BoundAddress address) {
    port = address.port();
    const auto protocol = address.v6() ? tcp::v6() : tcp::v4();
    acceptor.assign(protocol, address.release());
    error_code error;
    acceptor.listen(asio::socket_base::max_listen_connections, error);
    check(!error, ErrorKind::setting, [&] {
      return str("cannot listen on port ", port, ": ", error.message(),
                 "; another program has taken this port by now: choose another one");
    });
  }

  void accept() {
    acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || !acceptor.is_open()) return;
      if (!error) {
        add(std::move(socket));
        return accept();
      }
      // No descriptor or no memory: what is there continues, and some will be free again.
      retry.expires_after(std::chrono::milliseconds(50));
      retry.async_wait([this](const error_code& stopped) {
        if (!stopped && acceptor.is_open()) accept();
      });
    });
  }

  void add(tcp::socket socket) {
    const auto capacity = static_cast<size_t>(hub->options.requests + hub->options.spare_connections);
    while (hub->sessions.size() >= capacity) {
      const auto waiting = std::ranges::find_if(hub->sessions, [](const auto& s) { return !s->answering(); });
      if (waiting == hub->sessions.end()) return;  // the socket is closed
      ++hub->counts.evicted;
      std::shared_ptr<Session>(*waiting)->close();
    }
    hub->sessions.push_back(std::make_shared<Session>(std::move(socket), hub));
    std::shared_ptr<Session>(hub->sessions.back())->start();
  }

  // An exception in a handler ends that handler; the connections continue.
  void run() {
    for (;;) {
      try {
        hub->io.run();
        return;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "error: the server's thread continues after: %s\n", error.what());
      }
    }
  }

  void close_all() {
    for (const auto& session : std::list<std::shared_ptr<Session>>(hub->sessions)) session->close();
  }

  bool stop(std::chrono::milliseconds grace) {
    if (!thread.joinable()) return true;
    asio::executor_work_guard<asio::io_context::executor_type> work(hub->io.get_executor());
    asio::post(hub->io, [this] {
      error_code ignored;
      acceptor.close(ignored);
      retry.cancel();
      for (const auto& session : std::list<std::shared_ptr<Session>>(hub->sessions)) session->close_after_answer();
    });
    const auto sessions = [this] {
      std::promise<size_t> count;
      asio::post(hub->io, [&] { count.set_value(hub->sessions.size()); });
      return count.get_future().get();
    };
    const auto end = std::chrono::steady_clock::now() + grace;
    size_t left;
    while ((left = sessions()) > 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    asio::post(hub->io, [this] { close_all(); });
    work.reset();
    thread.join();
    return left == 0;
  }

  std::shared_ptr<Hub> hub;
  tcp::acceptor acceptor;
  asio::steady_timer retry;
  int port = 0;
  std::thread thread;
};

Server::Server(Service& service, ServerOptions options, BoundAddress address) try
    : listener_(std::make_unique<Listener>(service, std::move(options), std::move(address))) {
} catch (const boost::system::system_error& e) {  // which is no std::system_error
  throw std::system_error(e.code(), "no server can be started");
}
Server::~Server() { listener_->stop(std::chrono::milliseconds(0)); }

int Server::port() const { return listener_->port; }
bool Server::stop(std::chrono::milliseconds grace) { return listener_->stop(grace); }

}  // namespace braid::apps::serve
