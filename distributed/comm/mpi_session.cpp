// The MPI transport; the only file that includes mpi.h.
//
// MPI starts processes and moves bytes. The Communicator forms sums, because MPI has no bf16 and does not guarantee the
// order of additions. Waiting is polling, so that a rank that does not answer is detected.
#include "braid/distributed/comm/mpi_session.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

namespace braid::dist {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kMaxMessage = int64_t{1} << 30;  // bytes; MPI counts are int
// Tags on MPI_COMM_WORLD, which carries no other messages.
constexpr int kHeartbeatTag = 1, kFailureTag = 2;
constexpr size_t kFailureBytes = 4000;

void ok(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  fail(ErrorKind::process, str(call, " failed: ", std::string(text, static_cast<size_t>(length))));
}

class MpiTransfer final : public TransferHandle {
 public:
  ~MpiTransfer() override {
    // Only after an error: the job is about to end, and MPI must keep its requests until then.
    for (MPI_Request& r : requests_) {
      if (r != MPI_REQUEST_NULL) MPI_Request_free(&r);
    }
  }
  // peer: the rank in the group, which is rank `world` in comm.
  void send(Buffer b, int peer, int world, int tag, MPI_Comm comm) {
    pieces(b, peer, [&](char* data, int count, MPI_Request* r) {
      ok(MPI_Isend(data, count, MPI_BYTE, world, tag, comm, r), "MPI_Isend");
    });
  }
  void receive(Buffer b, int peer, int world, int tag, MPI_Comm comm) {
    pieces(b, peer, [&](char* data, int count, MPI_Request* r) {
      ok(MPI_Irecv(data, count, MPI_BYTE, world, tag, comm, r), "MPI_Irecv");
    });
  }
  bool done() override {
    int flag = 0;
    ok(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &flag, MPI_STATUSES_IGNORE), "MPI_Testall");
    if (flag) requests_.clear();
    return flag != 0;
  }
  // Yields first, because most waits are short; sleeps in long waits, so that computing processes get the processor.
  void yield() override {
    if (++rests_ < 2000) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  std::vector<int> pending_peers() const override {
    std::vector<int> ranks;
    for (size_t i = 0; i < requests_.size(); ++i) {
      int flag = 0;
      if (requests_[i] != MPI_REQUEST_NULL) MPI_Request_get_status(requests_[i], &flag, MPI_STATUS_IGNORE);
      if (requests_[i] != MPI_REQUEST_NULL && !flag) ranks.push_back(peers_[i]);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

 private:
  template <class F>
  void pieces(Buffer b, int peer, F&& f) {
    for (int64_t at = 0; at < b.bytes; at += kMaxMessage) {
      requests_.push_back(MPI_REQUEST_NULL);
      peers_.push_back(peer);
      f(b.data + at, static_cast<int>(std::min(kMaxMessage, b.bytes - at)), &requests_.back());
    }
  }
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;
  int64_t rests_ = 0;
};

// A copy of MPI_COMM_WORLD for the messages of all groups.
struct OwnWorld {
  MPI_Comm comm;
  int largest_tag = 32767;  // what every MPI allows

  OwnWorld() {
    ok(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int found = 0, *value = nullptr;
    MPI_Comm_get_attr(comm, MPI_TAG_UB, &value, &found);
    if (found) largest_tag = *value;
  }
  ~OwnWorld() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Comm_free(&comm);
  }
  OwnWorld(const OwnWorld&) = delete;
};

// A group is a tag, not a communicator of MPI, which its members could only make by a call that waits for all of them
// without a time limit. Messages between two ranks of one group arrive in the order in which they were sent.
class MpiTransport final : public Transport {
 public:
  MpiTransport(std::shared_ptr<OwnWorld> own, std::vector<int> world, int group)
      : own_(std::move(own)), world_(std::move(world)), group_(group) {
    int me = 0;
    ok(MPI_Comm_rank(own_->comm, &me), "MPI_Comm_rank");
    rank_ = static_cast<int>(std::find(world_.begin(), world_.end(), me) - world_.begin());
    check(group_ <= own_->largest_tag, ErrorKind::process, [&] {
      return str("this MPI has messages for ", own_->largest_tag + 1, " groups of ranks, one more is needed");
    });
    next_group_ = group_ + 1;
  }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_.size()); }
  int world_rank(int rank) const override { return world_.at(static_cast<size_t>(rank)); }

  std::unique_ptr<TransferHandle> start(const std::vector<Buffer>& send, const std::vector<Buffer>& receive) override {
    auto transfer = std::make_unique<MpiTransfer>();
    for (int step = 1; step < size(); ++step) {  // every rank begins with another peer
      int from = (rank_ - step + size()) % size(), to = (rank_ + step) % size();
      auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
      if (receive[f].bytes > 0) transfer->receive(receive[f], from, world_[f], group_, own_->comm);
      if (send[t].bytes > 0) transfer->send(send[t], to, world_[t], group_, own_->comm);
    }
    return transfer;
  }

  std::shared_ptr<Transport> split(const std::vector<int>& members, int group) override {
    std::vector<int> world;
    for (int m : members) world.push_back(world_rank(m));
    return std::make_shared<MpiTransport>(own_, std::move(world), group);
  }
  int next_group() const override { return next_group_; }

  // A rank that has waited too long sends a heartbeat to all ranks. A rank that waits too answers with its own; the
  // rank that hangs does not.
  void answer_heartbeat() override {
    int arrived = 0;
    if (!heartbeat_sent_) MPI_Iprobe(MPI_ANY_SOURCE, kHeartbeatTag, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    if (arrived) send_heartbeat();
  }
  std::vector<int> unresponsive_ranks(double seconds) override {
    send_heartbeat();
    int ranks = 0, me = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    static std::vector<char> received;
    received.assign(static_cast<size_t>(ranks), 0);
    std::vector<MPI_Request> requests(static_cast<size_t>(ranks), MPI_REQUEST_NULL);
    for (int r = 0; r < ranks; ++r) {
      if (r == me) continue;
      MPI_Irecv(&received[static_cast<size_t>(r)], 1, MPI_BYTE, r, kHeartbeatTag, MPI_COMM_WORLD,
                &requests[static_cast<size_t>(r)]);
    }
    Clock::time_point start = Clock::now();
    std::vector<int> unresponsive;
    do {
      unresponsive.clear();
      for (int r = 0; r < ranks; ++r) {
        int flag = 1;
        if (r != me) MPI_Test(&requests[static_cast<size_t>(r)], &flag, MPI_STATUS_IGNORE);
        if (!flag) unresponsive.push_back(r);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (!unresponsive.empty() && std::chrono::duration<double>(Clock::now() - start).count() < seconds);
    return unresponsive;
  }

 private:
  static void send_heartbeat() {
    static char byte = 0;
    if (heartbeat_sent_) return;
    heartbeat_sent_ = true;
    int ranks = 0, me = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (int r = 0; r < ranks; ++r) {
      if (r == me) continue;
      MPI_Request request;
      MPI_Isend(&byte, 1, MPI_BYTE, r, kHeartbeatTag, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
    }
  }
  inline static bool heartbeat_sent_ = false;  // once: the job ends after it
  inline static int next_group_ = 0;

  std::shared_ptr<OwnWorld> own_;
  std::vector<int> world_;  // of the ranks of the group
  int rank_ = 0;            // in the group
  int group_;
};

}  // namespace

bool built_with_mpi() { return true; }

MpiSession::MpiSession() {
  int provided = 0, ranks = 0;
  ok(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  ok(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size");
  std::vector<int> world(static_cast<size_t>(ranks));
  std::iota(world.begin(), world.end(), 0);
  world_ = Communicator(std::make_shared<MpiTransport>(std::make_shared<OwnWorld>(), std::move(world), 0));
}

MpiSession::~MpiSession() {
  world_ = Communicator();
  MPI_Finalize();
}

// On MPI_COMM_WORLD, which carries nothing else but heartbeats. Rank 0 answers when it has heard from all.
std::optional<std::vector<std::string>> MpiSession::gather_failures(const std::string& mine, double seconds) const {
  const Clock::time_point start = Clock::now();
  const int me = world_.rank(), ranks = world_.size();
  // Kept until the end of the process: a message that arrives too late must find its buffer.
  static std::string text;
  static std::vector<std::string> texts;
  static std::vector<MPI_Request> requests;
  text = mine.substr(0, kFailureBytes);
  texts.assign(static_cast<size_t>(ranks), std::string(kFailureBytes, '\0'));
  requests.assign(static_cast<size_t>(ranks), MPI_REQUEST_NULL);
  const auto send = [&](int to) {
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_BYTE, to, kFailureTag, MPI_COMM_WORLD, &sent);
    MPI_Request_free(&sent);
  };
  const auto receive = [&](int from) {
    std::string& into = texts[static_cast<size_t>(from)];
    MPI_Irecv(into.data(), static_cast<int>(into.size()), MPI_BYTE, from, kFailureTag, MPI_COMM_WORLD,
              &requests[static_cast<size_t>(from)]);
  };
  if (me == 0) {
    for (int r = 1; r < ranks; ++r) receive(r);
  } else {
    send(0);
    receive(0);
  }
  for (int all = 0; !all;) {
    MPI_Testall(ranks, requests.data(), &all, MPI_STATUSES_IGNORE);
    if (!all && std::chrono::duration<double>(Clock::now() - start).count() > seconds) return {};
    if (!all) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int r = 1; r < ranks && me == 0; ++r) send(r);
  std::vector<std::string> result;
  for (const std::string& t : texts) result.push_back(t.substr(0, t.find('\0')));
  if (me != 0) return std::vector<std::string>{result[0]};
  result[0] = text;
  return result;
}

void MpiSession::abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace braid::dist
