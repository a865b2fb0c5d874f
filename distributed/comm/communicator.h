// Communicator: a group of ranks as a value. Nothing is global: code that communicates takes one as an argument.
//
// Every rank of the group must call each collective, in the same order, with matching arguments. Results have the same
// bits in every run: sums are formed in rank order, 16-bit types are summed in f32 and rounded once. With one rank
// every collective is the identity and nothing is sent. Tensors of a GPU are sent from its memory when the group has a
// transport for it (with_device_transport()), else through the CPU's memory; the order of sums is the same.
//
// One thread per rank uses a communicator and those that were split from it.
//
// Volumes, in bytes sent by one rank of P for a result or operand of n bytes:
//   all_reduce 2 (P-1)/P n,   reduce_scatter, all_gather and all_to_all (P-1)/P n,   broadcast (P-1) n from the root
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/distributed/comm/transport.h"
#include "braid/distributed/sharding/partition.h"

namespace braid::dist {

enum class Collective : uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, point };
constexpr size_t kCollectives = 6;
const char* name(Collective c);
enum class Reduction : uint8_t { sum, max };

// Calls and bytes of tensors that this rank has sent to other ranks so far.
struct CommStats {
  std::array<int64_t, kCollectives> calls{}, bytes{};
  int64_t bytes_of(Collective c) const { return bytes[static_cast<size_t>(c)]; }
  int64_t total() const;  // bytes
};

// A collective that was started, as in NCCL and torch.distributed.
class Work {
 public:
  struct State;
  Work() = default;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Tensor wait();  // waits for the end and returns the result; call it once
  bool poll();    // lets the transport proceed, without waiting; true when wait() will not wait for the first transfer

 private:
  std::shared_ptr<State> state_;
};

class Communicator {
 public:
  Communicator() = default;  // one process
  explicit Communicator(std::shared_ptr<Transport> transport, const std::string& label = "world");

  int rank() const { return transport_ ? transport_->rank() : 0; }
  int size() const { return transport_ ? transport_->size() : 1; }
  const std::string& label() const { return label_; }
  int world_rank(int rank) const { return transport_ ? transport_->world_rank(rank) : alone_; }
  // The ranks with the same color, in the order of their ranks here.
  Communicator split(int color, const std::string& label) const;
  // The same group with a transport for the tensors of one device; groups that are split from it have one too.
  Communicator with_device_transport(std::shared_ptr<DeviceTransport> device) const;
  // Whether tensors of this device are sent without passing through the CPU's memory.
  bool direct(Device device) const { return device_ && device_->device() == device; }

  Tensor all_reduce(const Tensor& x, Reduction op = Reduction::sum) const;
  // parts: the partition of the axis over the ranks.
  //   reduce_scatter   [a b] + [c d]  ->  [a+c] | [b+d]          all_gather   [a] | [b]  ->  [a b] | [a b]
  Tensor reduce_scatter(const Tensor& x, int axis, const Partition& parts) const;
  Tensor all_gather(const Tensor& x, int axis, const Partition& parts) const;
  // x has this rank's entries of axis `to` and all entries of axis `from`; the result has all entries of `to` and this
  // rank's entries of `from`. Partitions may overlap: an entry of `from` that several ranks have is sent to each of
  // them, the values of an entry of `to` that several ranks have are summed in rank order.
  //   heads x rows    [h0: r0 r1] | [h1: r0 r1]  ->  [h0 h1: r0] | [h0 h1: r1]        from = rows, to = heads
  Tensor all_to_all(const Tensor& x, int from, const Partition& from_parts, int to, const Partition& to_parts) const;
  // An all_gather of which each rank gets only the entries that it needs, and its adjoint. have.of(r): the entries of
  // the axis that rank r holds (each entry is held by one rank); need.of(r): those that it needs. Three ranks:
  //
  //   have    r0: 0 1      r1: 2 3      r2: 4 5
  //   need    r0: 0 1      r1: 1 2 3    r2: 3 4 5
  //   sparse_all_gather      x  r0: a b  r1: c d    r2: e f      ->  r0: a b    r1: b c d  r2: d e f
  //   sparse_reduce_scatter  x  r0: a b  r1: p c d  r2: q e f    ->  r0: a b+p  r1: c d+q  r2: e f     in rank order
  //
  // CommStats counts them as all_gather and reduce_scatter.
  Tensor sparse_all_gather(const Tensor& x, int axis, const Partition& have, const Partition& need) const;
  Tensor sparse_reduce_scatter(const Tensor& x, int axis, const Partition& have, const Partition& need) const;
  Tensor broadcast(const Tensor& x, int root) const;  // x of the root; on other ranks x gives shape and type
  void send(const Tensor& x, int to) const;
  void receive(Tensor& x, int from) const;  // x contiguous
  void barrier() const;

  // The same, asynchronously. x must not change until wait() returns.
  Work start_all_reduce(const Tensor& x, Reduction op = Reduction::sum) const;
  Work start_reduce_scatter(const Tensor& x, int axis, const Partition& parts) const;
  Work start_all_gather(const Tensor& x, int axis, const Partition& parts) const;
  Work start_all_to_all(const Tensor& x, int from, const Partition& from_parts, int to,
                        const Partition& to_parts) const;
  Work start_broadcast(const Tensor& x, int root) const;

  // Values instead of tensors; `mine` is this rank's.
  bool any(bool mine) const;
  int64_t sum(int64_t mine) const;
  double sum(double mine) const;  // in rank order
  std::vector<std::string> gather_text(const std::string& mine) const;

  // A collective that takes longer fails with an error that names the ranks that do not answer; 0: no limit. The
  // message includes the context ("step 17"). Both apply to all communicators that were split from one another.
  void set_timeout(double seconds) const;
  void set_context(const std::string& text) const;
  // The name of every rank's machine, by world rank, for messages; for the same communicators.
  void set_hosts(std::vector<std::string> hosts) const;
  // "rank 3 on host a", or "rank 3" where the hosts are not set.
  std::string rank_name(int world_rank) const;

  const CommStats& stats() const { return *stats_; }

 private:
  struct Limits {
    double timeout = 0;  // seconds
    std::string context;
    std::vector<std::string> hosts;
  };
  Work start(Collective kind, std::vector<Tensor> send, std::vector<Tensor> receive,
             std::function<Tensor(const std::vector<Tensor>& send, const std::vector<Tensor>& receive)> finish) const;
  void check_parts(const char* op, const Tensor& x, int axis, const Partition& parts, bool complete) const;
  friend class Work;

  Device staging_device(Device device) const { return direct(device) ? device : kCpu; }  // its tensors are sent from it
  Tensor staged(const Tensor& x) const;                                                  // contiguous, on that device

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<DeviceTransport> device_;
  std::shared_ptr<CommStats> stats_ = std::make_shared<CommStats>();
  std::shared_ptr<Limits> limits_ = std::make_shared<Limits>();
  std::string label_ = "world";
  int alone_ = 0;  // world rank of a group of one, which has no transport
};

}  // namespace braid::dist
