// One connection: requests in, answers out, one at a time. Everything here runs in the server's thread.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <memory>

#include "apps/serve/http/http_reader.h"
#include "apps/serve/http/http_text.h"
#include "apps/serve/http/metrics.h"
#include "apps/serve/http/server.h"

namespace braid::apps::serve {

class Session;

// State that the connections of a server share. Replies of calls keep it, and with it the queue of the server's thread.
struct Hub {
  Hub(Service& the_service, ServerOptions the_options) : options(std::move(the_options)), service(the_service) {}

  boost::asio::io_context io{1};
  const ServerOptions options;
  Service& service;
  HttpCounts counts;
  std::list<std::shared_ptr<Session>> sessions;  // in the order in which they began to wait
  int64_t held_bytes = 0;                        // of bodies
  uint64_t requests = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(boost::asio::ip::tcp::socket socket, std::shared_ptr<Hub> hub);

  void start();
  void close();  // at once; what is being made for it is cancelled
  bool answering() const { return phase_ == Phase::answering; }
  void close_after_answer();  // at once where there is none

  // Parts of the reply to request `number`; called in the server's thread.
  void respond(uint64_t number, const Response& response);
  void stream(uint64_t number, const std::string& events);
  void end_stream(uint64_t number, TokenCounts tokens);

 private:
  // reading: a request, or idle; answering: until its last byte is written; leaving: the client reads the last answer.
  enum class Phase { reading, answering, leaving, closed };

  void read();
  void on_read(const boost::system::error_code& error, size_t bytes);
  void process();
  void check_request();
  void begin_body();
  void hold_body();
  void dispatch();
  void reject(const ApiError& error);  // the connection ends with this answer
  void begin_answer();
  void send(const Response& response);
  void write();
  void on_written(const boost::system::error_code& error);
  void end_answer();
  void count(int status);  // of the answer, with a line in the log
  void leave();
  void release_body();
  void move_to_end();  // of the hub's list
  void set_deadline(std::chrono::milliseconds time);
  void no_deadline();
  void on_deadline();

  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<Hub> hub_;
  boost::asio::steady_timer timer_;
  std::string address_, client_;  // of the server's end, of the other one
  HttpReader reader_;
  std::array<char, 8192> buffer_;
  std::string in_, out_, writing_;
  Phase phase_ = Phase::reading;
  bool idle_ = false;     // between two requests
  bool checked_ = false;  // the head of this request
  bool options_ = false;  // it asks what it may send, or whether a page of another origin may (CORS)
  bool done_ = false;     // the answer is complete, but for writing it
  bool streaming_ = false;
  int64_t held_ = 0;  // of hub_->held_bytes
  const Route* route_ = nullptr;
  std::string allow_;
  uint64_t number_ = 0;  // of the request
  int status_ = 0;
  TokenCounts tokens_;
  AnswerForm form_;
  std::chrono::steady_clock::time_point began_;
  std::shared_ptr<Ticket> ticket_;
};

}  // namespace braid::apps::serve
