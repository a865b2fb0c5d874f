#include "apps/serve/http/session.h"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>

#include "apps/cli/version.h"
#include "apps/serve/page/page_files.h"
#include "braid/tensor/base/strings.h"

namespace braid::apps::serve {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Carries the answer of a call to the server's thread.
class SessionReply final : public Reply {
 public:
  SessionReply(std::shared_ptr<Hub> hub, std::weak_ptr<Session> session, uint64_t number)
      : hub_(std::move(hub)), session_(std::move(session)), number_(number) {}

  void send(Response response) override {
    post([number = number_, r = std::move(response)](Session& session) { session.respond(number, r); });
  }
  void stream(std::string events) override {
    post([number = number_, e = std::move(events)](Session& session) { session.stream(number, e); });
  }
  void end_stream(TokenCounts tokens) override {
    post([number = number_, tokens](Session& session) { session.end_stream(number, tokens); });
  }

 private:
  template <class Action>
  void post(Action action) {
    asio::post(hub_->io, [weak = session_, action = std::move(action)] {
      if (const auto session = weak.lock()) action(*session);
    });
  }

  std::shared_ptr<Hub> hub_;
  std::weak_ptr<Session> session_;
  uint64_t number_;
};

// "application/json", in any case and with any parameters.
bool is_json(std::string_view type) {
  std::string name(detail::trim(type.substr(0, type.find(';'))));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name == "application/json";
}

}  // namespace

Session::Session(asio::ip::tcp::socket socket, std::shared_ptr<Hub> hub)
    : socket_(std::move(socket)), hub_(std::move(hub)), timer_(hub_->io), reader_(hub_->options.http) {}

void Session::start() {
  error_code error;
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  socket_.set_option(asio::socket_base::send_buffer_size(hub_->options.send_buffer), error);
  const auto end = socket_.local_endpoint(error);
  if (!error) address_ = end.address().to_string();
  const auto client = socket_.remote_endpoint(error);
  if (!error) client_ = client.address().to_string();
  ++hub_->counts.connections, ++hub_->counts.accepted;
  set_deadline(hub_->options.head_time);
  read();
}

void Session::close() {
  if (phase_ == Phase::closed) return;
  if (phase_ == Phase::answering) {  // also an answer that is complete, but not read to its end
    --hub_->counts.requests;
    ++hub_->counts.left;
    tokens_ = {};
    count(499);
  }
  phase_ = Phase::closed;
  if (ticket_) std::exchange(ticket_, nullptr)->cancel();
  release_body();
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  --hub_->counts.connections;
  hub_->sessions.remove(shared_from_this());
}

void Session::close_after_answer() {
  if (phase_ == Phase::reading) return close();
  form_.keep_alive = false;
}

void Session::set_deadline(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (!error && self) self->on_deadline();
  });
}

void Session::no_deadline() { timer_.expires_at(std::chrono::steady_clock::time_point::max()); }

void Session::on_deadline() {
  if (phase_ == Phase::closed || timer_.expiry() > std::chrono::steady_clock::now()) return;  // it was set anew
  if (phase_ != Phase::leaving && !idle_) ++hub_->counts.timeouts;
  close();
}

void Session::read() {
  socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](const error_code& error, size_t bytes) {
    self->on_read(error, bytes);
  });
}

// A read is always under way, so that the end of the connection is seen while an answer is being made.
void Session::on_read(const error_code& error, size_t bytes) {
  if (phase_ == Phase::closed) return;
  if (error) return close();
  if (phase_ != Phase::leaving) in_.append(buffer_.data(), bytes);
  if (phase_ == Phase::answering && std::ssize(in_) > hub_->options.pipelined_bytes) return close();
  if (phase_ == Phase::reading) process();
  if (phase_ != Phase::closed) read();
}

// Takes what has arrived of the next request.
void Session::process() {
  if (in_.empty()) return;
  if (std::exchange(idle_, false)) set_deadline(hub_->options.head_time);
  try {
    const HttpReader::State state = reader_.put(in_);
    if (state == HttpReader::State::head) return;
    if (!std::exchange(checked_, true)) {
      check_request();
      if (state == HttpReader::State::body) begin_body();
    }
    hold_body();
    if (state == HttpReader::State::complete) dispatch();
  } catch (const ApiError& error) {
    reject(error);
  }
}

// Checks that need the head alone.
void Session::check_request() {
  const RequestHead& head = reader_.head();
  form_.version_1_1 = head.version_1_1;
  form_.without_body = head.method == "HEAD";
  form_.by_origin = !hub_->options.access.origins.empty();
  form_.origin = allowed_origin(hub_->options.access, head);
  check_host(hub_->options.access, head, address_);
  const bool preflight = !form_.origin.empty() && !head.all("access-control-request-method").empty();
  options_ = head.method == "OPTIONS" && (head.target == "*" || preflight);
  for (const std::string_view expected : head.all("expect"))
    if (lower(expected) != "100-continue") throw ApiError(417, "the only field Expect that is known is 100-continue");
  if (options_) return;
  try {
    route_ = &find_route(head.method, head.target, allow_);
  } catch (const ApiError&) {  // which routes there are is told to those with the key
    check_key(hub_->options.access, head);
    throw;
  }
  if (route_->needs_key) check_key(hub_->options.access, head);
  if (std::string_view(route_->method) != "POST") return;
  for (const std::string_view coding : head.all("content-encoding"))
    if (lower(coding) != "identity")
      throw ApiError(415, "the body is compressed: expected it as it is, without Content-Encoding", "",
                     "unsupported_content_encoding");
  const auto types = head.all("content-type");
  if (types.size() != 1 || !is_json(types[0]))
    throw ApiError(415, "expected one field Content-Type: application/json", "", "unsupported_media_type");
}

void Session::begin_body() {
  if (form_.version_1_1 && !reader_.head().all("expect").empty()) {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    write();
  }
  set_deadline(hub_->options.body_time);
}

void Session::hold_body() {
  const int64_t more = reader_.body_bytes() - held_;
  held_ += more, hub_->held_bytes += more;
  if (hub_->held_bytes > hub_->options.held_bytes)
    throw ApiError(503, "the server holds too many long requests; try again later", "", "overloaded");
}

void Session::release_body() { hub_->held_bytes -= std::exchange(held_, 0); }

void Session::begin_answer() {
  phase_ = Phase::answering;
  done_ = streaming_ = false;
  tokens_ = {};
  no_deadline();
  number_ = ++hub_->requests;
  ++hub_->counts.requests;
  began_ = std::chrono::steady_clock::now();
  form_.request_id = "req-" + detail::hex(number_, 8);
}

void Session::reject(const ApiError& error) {
  begin_answer();
  const bool complete = checked_ && !reader_.has_body();
  form_.keep_alive = complete && reader_.head().keep_alive;
  Response response = Response::of(error);
  if (error.status() == 405) response.allow = allow_;
  send(response);
}

void Session::dispatch() {
  begin_answer();
  form_.keep_alive = reader_.head().keep_alive;
  if (options_) return send({.status = 204, .body = "", .allow = "GET, HEAD, POST, OPTIONS"});
  if (route_->task == Task::health) return send({.body = "{\"status\":\"ok\"}\n"});
  if (route_->task == Task::ready) return send({.body = "{\"status\":\"ready\"}\n"});
  if (route_->task == Task::version)
    return send({.body = "{\"version\":\"" + version() + "\",\"commit\":\"" + build_commit() + "\"}\n"});
  if (route_->task == Task::page) {
    const PageFile& file = *find_page_file(path_of(reader_.head().target));
    return send({.body = std::string(file.contents), .type = file.type});
  }
  if (hub_->counts.requests > hub_->options.requests)
    return send(Response::of(ApiError(503, "too many requests at a time; try again later", "", "overloaded")));
  if (route_->task == Task::metrics)
    return send({.body = metrics_text(hub_->counts, hub_->service.load(), hub_->service.texts()),
                 .type = "text/plain; version=0.0.4"});
  const bool named = route_->task == Task::model;
  ticket_ = hub_->service.call(route_->task, named ? named_model(reader_.head().target) : reader_.take_body(),
                               std::make_shared<SessionReply>(hub_, weak_from_this(), number_));
}

void Session::respond(uint64_t number, const Response& response) {
  if (phase_ == Phase::answering && number == number_ && !done_) send(response);
}

void Session::send(const Response& response) {
  status_ = response.status;
  tokens_ = response.tokens;
  out_ += answer_text(response, form_);
  done_ = true;
  write();
}

void Session::stream(uint64_t number, const std::string& events) {
  if (phase_ != Phase::answering || number != number_ || done_) return;
  if (!std::exchange(streaming_, true)) {
    status_ = 200;
    if (!form_.version_1_1) form_.keep_alive = false;  // the end of the connection ends the stream
    out_ += stream_head(form_);
  }
  out_ += stream_piece(events, form_);
  if (!writing_.empty() && std::ssize(out_) > hub_->options.unread_bytes) {
    ++hub_->counts.slow_readers;
    return close();
  }
  write();
}

void Session::end_stream(uint64_t number, TokenCounts tokens) {
  if (phase_ != Phase::answering || number != number_ || done_) return;
  tokens_ = tokens;
  out_ += stream_end(form_);
  done_ = true;
  write();
}

void Session::write() {
  if (!writing_.empty()) return;
  if (out_.empty()) {
    if (phase_ == Phase::answering && done_) end_answer();
    return;
  }
  writing_ = std::exchange(out_, "");
  if (phase_ == Phase::answering) set_deadline(hub_->options.write_time);
  asio::async_write(socket_, asio::buffer(writing_),
                    [self = shared_from_this()](const error_code& error, size_t) { self->on_written(error); });
}

void Session::on_written(const error_code& error) {
  writing_.clear();
  if (phase_ == Phase::closed) return;
  if (error) return close();
  if (phase_ == Phase::answering) no_deadline();
  write();
}

void Session::count(int status) {
  const char* route = route_ ? route_->path : "other";
  ++hub_->counts.answers[{route, status}];
  if (hub_->options.log == LogForm::none) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  const LogEntry entry{form_.request_id, client_, route, status, seconds, tokens_};
  std::fputs(log_line(hub_->options.log, entry, std::chrono::system_clock::now()).c_str(), stderr);
}

void Session::end_answer() {
  --hub_->counts.requests;
  count(status_);
  ticket_.reset();
  release_body();
  route_ = nullptr;
  options_ = false;
  form_.origin.clear();
  form_.without_body = false;
  allow_.clear();
  move_to_end();
  if (!form_.keep_alive) return leave();
  phase_ = Phase::reading;
  checked_ = false;
  reader_.next();
  idle_ = true;
  set_deadline(hub_->options.idle_time);
  process();
}

// The client may still be sending: a connection that is closed with bytes unread takes the answer with it.
void Session::leave() {
  phase_ = Phase::leaving;
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  in_.clear();
  set_deadline(hub_->options.linger_time);
}

void Session::move_to_end() {
  auto& all = hub_->sessions;
  for (auto at = all.begin(); at != all.end(); ++at)
    if (at->get() == this) return all.splice(all.end(), all, at);
}

}  // namespace braid::apps::serve
