// Communicator: a group of ranks as a value. Nothing is global: whoever talks to other processes was handed one.
//
// All collectives must be called by every rank of the group, in the same order, with arguments that fit. Results have
// the same bits in every run: sums are formed in rank order, 16-bit types are summed in f32 and rounded once. With one
// rank every collective is the identity and nothing is sent. Tensors of other devices travel straight from their memory
// when a transport for it was given (with()), through the CPU's memory otherwise; where sums are formed differs, their
// order does not.
//
// Volumes, in bytes sent by one rank of P for a result or operand of n bytes:
//   all_reduce 2 (P-1)/P n,   reduce_scatter, all_gather and all_to_all (P-1)/P n,   broadcast (P-1) n from the root
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/distributed/comm/rank_order_reduce.h"
#include "braid/distributed/comm/transport.h"

namespace braid::dist {

enum class Collective : uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, point };
constexpr size_t kCollectives = 6;
const char* name(Collective c);

// What this rank has sent to others so far; the bytes of tensors, counted where they are handed to the transport.
struct CommStats {
  std::array<int64_t, kCollectives> calls{}, bytes{};
  int64_t of(Collective c) const { return bytes[static_cast<size_t>(c)]; }
  int64_t total() const;
};

// The result of a collective that was started and is under way.
class Work {
 public:
  struct State;
  Work() = default;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Tensor wait();    // finishes it and gives the result; once
  bool progress();  // moves it along without waiting; true when wait() need not wait (any more)

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
  // The same group, with another transport for the tensors of its device; groups that are split off have it too.
  Communicator with(std::shared_ptr<DeviceTransport> device) const;
  // Whether tensors of this device travel without passing through the CPU's memory.
  bool direct(Device device) const { return device_ && device_->device() == device; }

  Tensor all_reduce(const Tensor& x, Reduction op = Reduction::sum) const;
  // Sums x over ranks and keeps our part of the axis / joins every rank's part along the axis.
  Tensor reduce_scatter(const Tensor& x, int axis, const Partition& parts) const;
  Tensor all_gather(const Tensor& x, int axis, const Partition& parts) const;
  // x is our part of axis `to` and whole along `from`; the result is whole along `to` and our part of `from`. Entries
  // may be part of several ranks: of `from`, then they go to all of these; of `to`, then what comes is summed in rank
  // order.
  Tensor all_to_all(const Tensor& x, int from, const Partition& from_parts, int to, const Partition& to_parts) const;
  // Each rank has some entries of an axis (different ones) and needs some, ours are have.of[rank()] and
  // need.of[rank()]. fetch: what we have -> what we need. give_back: numbers for what we needed -> for what we have,
  // the sum over the ranks that had it, in rank order. Counted as all_gather and reduce_scatter, of which they do a
  // part.
  Tensor sparse_all_gather(const Tensor& x, int axis, const Partition& have, const Partition& need) const;
  Tensor sparse_reduce_scatter(const Tensor& x, int axis, const Partition& have, const Partition& need) const;
  Tensor broadcast(const Tensor& x, int root) const;  // x of the root; elsewhere it says shape and type
  void send(const Tensor& x, int to) const;
  void receive(Tensor& x, int from) const;  // x contiguous
  void barrier() const;

  // The same, under way while the caller computes. x must not change until wait() returns.
  Work start_all_reduce(const Tensor& x, Reduction op = Reduction::sum) const;
  Work start_reduce_scatter(const Tensor& x, int axis, const Partition& parts) const;
  Work start_all_gather(const Tensor& x, int axis, const Partition& parts) const;
  Work start_all_to_all(const Tensor& x, int from, const Partition& from_parts, int to,
                        const Partition& to_parts) const;
  Work start_broadcast(const Tensor& x, int root) const;

  // Decisions and words instead of tensors.
  bool any(bool mine) const;
  int64_t sum(int64_t mine) const;
  double sum(double mine) const;  // in rank order
  std::vector<std::string> gather_text(const std::string& mine) const;

  // A collective that takes longer is an error that names the ranks that do not answer; 0 = wait for ever. `where`
  // ("step 17") is said in such messages. Both hold for all communicators that were split from one another.
  void watch(double seconds) const;
  void where(const std::string& text) const;

  const CommStats& traffic() const { return *traffic_; }

 private:
  struct Watch {
    double seconds = 0;
    std::string where;
  };
  Work start(Collective kind, std::vector<Tensor> send, std::vector<Tensor> receive,
             std::function<Tensor(const std::vector<Tensor>& send, const std::vector<Tensor>& receive)> finish) const;
  void check_parts(const char* op, const Tensor& x, int axis, const Partition& parts, bool whole) const;
  friend class Work;

  Device place_of(Device device) const { return direct(device) ? device : kCpu; }  // where its tensors are sent from
  Tensor placed(const Tensor& x) const;                                            // contiguous, there

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<DeviceTransport> device_;
  std::shared_ptr<CommStats> traffic_ = std::make_shared<CommStats>();
  std::shared_ptr<Watch> watch_ = std::make_shared<Watch>();
  std::string label_ = "world";
  int alone_ = 0;  // world rank of a group of one, which needs no transport
};

}  // namespace braid::dist
