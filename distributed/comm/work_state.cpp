#include "braid/distributed/comm/work_state.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "braid/autograd/trace.h"
#include "braid/tensor/base/strings.h"

namespace braid::dist {

namespace {

using Clock = std::chrono::steady_clock;

std::string list(const std::vector<int>& ranks, const Communicator& comm) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + comm.rank_name(rank);
  return text;
}

}  // namespace

std::string Work::State::text() const {
  std::string text = str("rank ", comm.rank(), " of ", comm.size(), " (", comm.label(), "): ", name(kind));
  int64_t bytes = 0;
  const auto add = [&](const char* way, int peer, const Tensor& x) {
    if (!x || peer == comm.rank()) return int64_t{0};
    text += str(", ", way, " ", peer, ": ", x.dtype(), " ", x.shape());
    return x.numel() * size_of(x.dtype());
  };
  for (int r = 0; r < comm.size(); ++r) bytes += add("to", r, send[static_cast<size_t>(r)]);
  for (int r = 0; r < comm.size(); ++r) add("from", r, receive[static_cast<size_t>(r)]);
  return str(text, "; ", bytes, " bytes sent");
}

Communicator Work::State::with_transport(const Communicator& comm, std::shared_ptr<Transport> transport) {
  Communicator out(std::move(transport), comm.label_);
  out.limits_->hosts = comm.limits_->hosts;
  return out;
}

void Work::State::exchange(const Communicator& comm, const std::vector<Buffer>& send,
                           const std::vector<Buffer>& receive) {
  auto state = std::make_shared<State>();
  state->finish = [](const auto&, const auto&) { return Tensor(); };
  state->comm = comm;
  state->transfer = comm.transport_->start(send, receive);
  Work(std::move(state)).wait();
}

bool Work::poll() {
  check(state_ != nullptr, "communicator", "this result was taken already");
  return !state_->transfer || state_->transfer->done();
}

Tensor Work::wait() {
  check(state_ != nullptr, "communicator", "this result was taken already");
  std::shared_ptr<State> s = std::move(state_);
  if (s->transfer) {
    const Communicator& c = s->comm;
    // Seconds in which this process ran: one that was stopped itself finds no fault in the others when it wakes.
    double waited = 0;
    for (Clock::time_point last = Clock::now(); !s->transfer->done();) {
      s->transfer->yield();
      const Clock::time_point now = Clock::now();
      waited += std::min(std::chrono::duration<double>(now - std::exchange(last, now)).count(), 1.0);
      const double limit = c.limits_->timeout;
      if (limit > 0 && waited > 0.1) c.transport_->answer_heartbeat();
      if (limit > 0 && waited > limit) {
        std::vector<int> unresponsive = c.transport_->unresponsive_ranks(0.4), pending;
        for (int r : s->transfer->pending_peers()) pending.push_back(c.world_rank(r));
        const std::string& context = c.limits_->context;
        fail(ErrorKind::process,
             str(list(unresponsive.empty() ? pending : unresponsive, c), " did not answer within ",
                 braid::detail::decimal(limit), " s: ", name(s->kind), " of the group '", c.label(), "'",
                 context.empty() ? "" : " at " + context, ", detected by ", c.rank_name(c.world_rank(c.rank())),
                 "; the process is stopped or dead, or its machine is out of reach"));
      }
    }
    s->transfer.reset();
    braid::detail::trace_event(name(s->kind), "transfer", kCpu);
  }
  return s->finish(s->send, s->receive);
}

}  // namespace braid::dist
