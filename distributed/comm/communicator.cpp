#include "braid/distributed/comm/communicator.h"

#include <algorithm>
#include <utility>

#include "braid/autograd/debug.h"
#include "braid/distributed/comm/rank_order_reduce.h"
#include "braid/distributed/comm/work_state.h"

namespace braid::dist {

namespace {

// To read from: sending a tensor leaves what it holds.
Buffer to_read(const Tensor& x) {
  if (!x) return {};
  return {static_cast<char*>(const_cast<void*>(x.raw())), x.numel() * size_of(x.dtype())};
}
Buffer to_fill(Tensor& x) {
  if (!x) return {};
  return {static_cast<char*>(x.mutable_raw()), x.numel() * size_of(x.dtype())};
}

}  // namespace

const char* name(Collective c) {
  constexpr const char* names[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "send"};
  return names[static_cast<size_t>(c)];
}

int64_t CommStats::total() const {
  int64_t sum = 0;
  for (int64_t b : bytes) sum += b;
  return sum;
}

Communicator::Communicator(std::shared_ptr<Transport> transport, const std::string& label)
    : transport_(std::move(transport)), label_(label) {
  if (transport_ && transport_->size() == 1) transport_ = nullptr;
}

Communicator Communicator::split(int color, const std::string& label) const {
  Communicator out;
  out.limits_ = limits_;
  out.label_ = label;
  out.alone_ = alone_;
  if (!transport_) return out;
  // The ranks agree here, under the time limit: making the group itself cannot wait for anybody.
  const std::vector<int32_t> mine{color, transport_->next_group()};
  const std::vector<int32_t> all =
      all_gather(from_vector(mine, {1, 2}), 0, even_partition(size(), size())).to_vector<int32_t>();
  std::vector<int> members;
  int group = 0;
  for (int r = 0; r < size(); ++r) {
    const size_t at = 2 * static_cast<size_t>(r);
    if (all[at] == color) members.push_back(r);
    group = std::max(group, all[at + 1]);
  }
  std::shared_ptr<Transport> sub = transport_->split(members, group);
  out.alone_ = sub->world_rank(0);
  if (sub->size() == 1) return out;
  out.transport_ = std::move(sub);
  return device_ ? out.with_device_transport(device_->split(out)) : out;
}

Communicator Communicator::with_device_transport(std::shared_ptr<DeviceTransport> device) const {
  Communicator out = *this;
  if (transport_) out.device_ = std::move(device);
  return out;
}

Tensor Communicator::staged(const Tensor& x) const { return x.to(staging_device(x.device())).contiguous(); }

Work Communicator::start(Collective kind, std::vector<Tensor> send, std::vector<Tensor> receive,
                         std::function<Tensor(const std::vector<Tensor>&, const std::vector<Tensor>&)> finish) const {
  auto state = std::make_shared<Work::State>();
  state->finish = std::move(finish);
  state->send = std::move(send);
  state->receive = std::move(receive);
  state->comm = *this;
  state->kind = kind;
  std::vector<Buffer> out, in;
  auto k = static_cast<size_t>(kind);
  ++stats_->calls[k];
  for (int r = 0; r < size(); ++r) {
    auto i = static_cast<size_t>(r);
    out.push_back(r == rank() ? Buffer{} : to_read(state->send[i]));
    in.push_back(r == rank() ? Buffer{} : to_fill(state->receive[i]));
    stats_->bytes[k] += out.back().bytes;
  }
  Device place = kCpu;
  for (const auto* tensors : {&state->send, &state->receive}) {
    for (const Tensor& x : *tensors) place = x ? x.device() : place;
  }
  if (debug().comm) print_debug(state->text());
  state->transfer = direct(place) ? device_->start(out, in) : transport_->start(out, in);
  return Work(std::move(state));
}

namespace {
// A result without communication.
Work ready(Tensor x) {
  auto state = std::make_shared<Work::State>();
  state->finish = [x = std::move(x)](const std::vector<Tensor>&, const std::vector<Tensor>&) { return x; };
  return Work(std::move(state));
}
}  // namespace

void Communicator::check_parts(const char* op, const Tensor& x, int axis, const Partition& parts, bool complete) const {
  check(parts.ranks() == size(), op,
        [&] { return str("the axis is partitioned over ", parts.ranks(), " ranks, the group has ", size()); });
  int64_t expected = complete ? parts.extent() : parts.size(rank());
  check(x.dim(axis) == expected, op,
        [&] { return str("axis ", axis, " of ", x.shape(), " should have ", expected, " entries on rank ", rank()); });
}

Work Communicator::start_reduce_scatter(const Tensor& x, int axis, const Partition& parts) const {
  check_parts("reduce_scatter", x, axis, parts, true);
  if (!transport_) return ready(x.contiguous());
  Tensor source = staged(x);
  std::vector<Tensor> send, receive;
  for (int r = 0; r < size(); ++r) send.push_back(gather_ranges(source, axis, parts.of(r)));
  auto me = static_cast<size_t>(rank());
  for (int r = 0; r < size(); ++r) receive.push_back(r == rank() ? send[me] : empty_like(send[me]));
  return start(Collective::reduce_scatter, std::move(send), std::move(receive),
               [device = x.device()](const auto&, const auto& got) {
                 return reduce_in_rank_order(got, Reduction::sum).to(device);
               });
}

Work Communicator::start_all_gather(const Tensor& x, int axis, const Partition& parts) const {
  check_parts("all_gather", x, axis, parts, false);
  if (!transport_) return ready(x.contiguous());
  Tensor source = staged(x);
  Shape shape = x.shape();
  std::vector<Tensor> send(static_cast<size_t>(size()), source), receive;
  for (int r = 0; r < size(); ++r) {
    shape[axis] = parts.size(r);
    receive.push_back(r == rank() ? source : empty(shape, x.dtype(), source.device()));
  }
  shape[axis] = parts.total();
  return start(Collective::all_gather, std::move(send), std::move(receive),
               [axis, parts, shape, dtype = x.dtype(), device = x.device()](const auto&, const auto& got) {
                 Tensor full = empty(shape, dtype, got[0].device());
                 for (size_t r = 0; r < got.size(); ++r) scatter_ranges(got[r], axis, parts.ranges[r], full);
                 return full.to(device);
               });
}

Work Communicator::start_all_to_all(const Tensor& x, int from, const Partition& from_parts, int to,
                                    const Partition& to_parts) const {
  check_parts("all_to_all", x, from, from_parts, true);
  check_parts("all_to_all", x, to, to_parts, false);
  if (!transport_) return ready(x.contiguous());
  Tensor source = staged(x);
  std::vector<Tensor> send, receive;
  Shape shape = x.shape();
  shape[from] = from_parts.size(rank());
  for (int r = 0; r < size(); ++r) {
    send.push_back(gather_ranges(source, from, from_parts.of(r)));
    shape[to] = to_parts.size(r);
    receive.push_back(r == rank() ? send.back() : empty(shape, x.dtype(), source.device()));
  }
  shape[to] = to_parts.extent();
  return start(Collective::all_to_all, std::move(send), std::move(receive),
               [to, to_parts, shape, dtype = x.dtype(), device = x.device()](const auto&, const auto& got) {
                 if (to_parts.total() != to_parts.extent())
                   return sum_into_ranges(got, to, to_parts.ranges, shape).to(device);
                 Tensor y = empty(shape, dtype, got[0].device());
                 for (size_t r = 0; r < got.size(); ++r) scatter_ranges(got[r], to, to_parts.ranges[r], y);
                 return y.to(device);
               });
}

Tensor Communicator::sparse_all_gather(const Tensor& x, int axis, const Partition& have, const Partition& need) const {
  check_parts("sparse_all_gather", x, axis, have, false);
  if (!transport_ && have == need) return x.contiguous();
  auto me = static_cast<size_t>(rank());
  Tensor source = staged(x);
  Shape shape = x.shape();
  std::vector<Tensor> send, receive;
  std::vector<Ranges> places;
  int64_t found = 0;
  for (size_t r = 0; r < have.ranges.size(); ++r) {
    Ranges theirs = intersect(have.ranges[r], need.ranges[me]);
    places.push_back(locate(need.ranges[me], theirs));
    send.push_back(gather_ranges(source, axis, locate(have.ranges[me], intersect(have.ranges[me], need.ranges[r]))));
    found += shape[axis] = entries(theirs);
    receive.push_back(r == me ? send.back() : empty(shape, x.dtype(), source.device()));
  }
  check(found == need.size(rank()), "sparse_all_gather", [&] {
    return str("the ranks have ", found, " of the ", need.size(rank()), " entries that rank ", rank(), " needs");
  });
  shape[axis] = found;
  auto finish = [=, device = x.device()](const auto&, const std::vector<Tensor>& got) {
    Tensor y = empty(shape, got[0].dtype(), got[0].device());
    for (size_t r = 0; r < got.size(); ++r) scatter_ranges(got[r], axis, places[r], y);
    return y.to(device);
  };
  if (!transport_) return finish(send, receive);
  return start(Collective::all_gather, std::move(send), std::move(receive), finish).wait();
}

Tensor Communicator::sparse_reduce_scatter(const Tensor& x, int axis, const Partition& have,
                                           const Partition& need) const {
  check_parts("sparse_reduce_scatter", x, axis, need, false);
  if (!transport_ && have == need) return x.contiguous();
  auto me = static_cast<size_t>(rank());
  Tensor source = staged(x);
  Shape shape = x.shape();
  std::vector<Tensor> send, receive;
  std::vector<Ranges> places;
  for (size_t r = 0; r < have.ranges.size(); ++r) {
    Ranges theirs = intersect(have.ranges[me], need.ranges[r]);
    places.push_back(locate(have.ranges[me], theirs));
    send.push_back(gather_ranges(source, axis, locate(need.ranges[me], intersect(have.ranges[r], need.ranges[me]))));
    shape[axis] = entries(theirs);
    receive.push_back(r == me ? send.back() : empty(shape, x.dtype(), source.device()));
  }
  shape[axis] = have.size(rank());
  auto finish = [=, device = x.device()](const auto&, const std::vector<Tensor>& got) {
    return sum_into_ranges(got, axis, places, shape).to(device);
  };
  if (!transport_) return finish(send, receive);
  return start(Collective::reduce_scatter, std::move(send), std::move(receive), finish).wait();
}

Work Communicator::start_broadcast(const Tensor& x, int root) const {
  check(root >= 0 && root < size(), "broadcast",
        [&] { return str("there is no rank ", root, " in a group of ", size()); });
  if (!transport_) return ready(x.contiguous());
  Tensor value = rank() == root ? staged(x) : empty(x.shape(), x.dtype(), staging_device(x.device()));
  std::vector<Tensor> send(static_cast<size_t>(size())), receive(static_cast<size_t>(size()));
  if (rank() == root) {
    std::fill(send.begin(), send.end(), value);
  } else {
    receive[static_cast<size_t>(root)] = value;
  }
  return start(Collective::broadcast, std::move(send), std::move(receive),
               [value, device = x.device()](const auto&, const auto&) { return value.to(device); });
}

// A reduce_scatter of the flattened tensor and an all_gather of the sums: each sum is formed once, so all ranks have
// the same bits. The second half runs in wait().
Work Communicator::start_all_reduce(const Tensor& x, Reduction op) const {
  if (!transport_) return ready(x.contiguous());
  Tensor flat = staged(x).reshaped({x.numel()});
  Partition parts = even_partition(flat.numel(), size());
  std::vector<Tensor> send, receive;
  for (const Ranges& list : parts.ranges) send.push_back(flat.sliced(0, list[0].begin, list[0].end));
  auto me = static_cast<size_t>(rank());
  for (int r = 0; r < size(); ++r) receive.push_back(r == rank() ? send[me] : empty_like(send[me]));
  return start(Collective::all_reduce, std::move(send), std::move(receive),
               [op, parts, comm = *this, shape = x.shape(), device = x.device()](const auto&, const auto& got) {
                 Tensor mine = reduce_in_rank_order(got, op);
                 std::vector<Tensor> out(got.size(), mine), in;
                 for (int r = 0; r < comm.size(); ++r)
                   in.push_back(r == comm.rank() ? mine : empty({parts.size(r)}, mine.dtype(), mine.device()));
                 --comm.stats_->calls[static_cast<size_t>(Collective::all_reduce)];  // one call, two transfers
                 return comm
                     .start(Collective::all_reduce, std::move(out), std::move(in),
                            [parts, shape, device](const auto&, const auto& pieces) {
                              Tensor full = empty({parts.total()}, pieces[0].dtype(), pieces[0].device());
                              for (size_t r = 0; r < pieces.size(); ++r)
                                scatter_ranges(pieces[r], 0, parts.ranges[r], full);
                              return full.reshaped(shape).to(device);
                            })
                     .wait();
               });
}

Tensor Communicator::all_reduce(const Tensor& x, Reduction op) const { return start_all_reduce(x, op).wait(); }
Tensor Communicator::reduce_scatter(const Tensor& x, int axis, const Partition& parts) const {
  return start_reduce_scatter(x, axis, parts).wait();
}
Tensor Communicator::all_gather(const Tensor& x, int axis, const Partition& parts) const {
  return start_all_gather(x, axis, parts).wait();
}
Tensor Communicator::all_to_all(const Tensor& x, int from, const Partition& from_parts, int to,
                                const Partition& to_parts) const {
  return start_all_to_all(x, from, from_parts, to, to_parts).wait();
}
Tensor Communicator::broadcast(const Tensor& x, int root) const { return start_broadcast(x, root).wait(); }

// send() and receive() are called by their two ranks alone: transports number transfers per pair of ranks.
void Communicator::send(const Tensor& x, int to) const {
  check(to >= 0 && to < size() && to != rank(), "send",
        [&] { return str("rank ", rank(), " cannot send to rank ", to, " of ", size()); });
  std::vector<Tensor> out(static_cast<size_t>(size())), in(static_cast<size_t>(size()));
  out[static_cast<size_t>(to)] = staged(x);
  start(Collective::point, std::move(out), std::move(in), [](const auto&, const auto&) { return Tensor(); }).wait();
}

void Communicator::receive(Tensor& x, int from) const {
  check(from >= 0 && from < size() && from != rank(), "receive",
        [&] { return str("rank ", rank(), " cannot receive from rank ", from, " of ", size()); });
  check(x.is_contiguous(), "receive", [&] { return str("needs a contiguous tensor to fill, got ", x.shape()); });
  std::vector<Tensor> out(static_cast<size_t>(size())), in(static_cast<size_t>(size()));
  Tensor got = staging_device(x.device()) == x.device() ? x : empty(x.shape(), x.dtype());
  in[static_cast<size_t>(from)] = got;
  start(Collective::point, std::move(out), std::move(in), [](const auto&, const auto&) { return Tensor(); }).wait();
  if (got.device() != x.device()) x.copy_(got.to(x.device()));
}

void Communicator::barrier() const { sum(int64_t{0}); }

bool Communicator::any(bool mine) const { return sum(static_cast<int64_t>(mine)) > 0; }

int64_t Communicator::sum(int64_t mine) const {
  return all_reduce(from_vector(std::vector<int64_t>{mine}, {1})).data<int64_t>()[0];
}

double Communicator::sum(double mine) const {
  return all_reduce(from_vector(std::vector<double>{mine}, {1})).data<double>()[0];
}

std::vector<std::string> Communicator::gather_text(const std::string& mine) const {
  if (!transport_) return {mine};
  std::vector<int64_t> lengths = all_gather(from_vector(std::vector<int64_t>{static_cast<int64_t>(mine.size())}, {1}),
                                            0, even_partition(size(), size()))
                                     .to_vector<int64_t>();
  Partition parts;
  int64_t at = 0;
  for (int64_t n : lengths) {
    parts.ranges.push_back({{at, at + n}});
    at += n;
  }
  std::vector<uint8_t> bytes(mine.begin(), mine.end());
  Tensor all = all_gather(from_vector(bytes, {static_cast<int64_t>(bytes.size())}), 0, parts);
  std::vector<std::string> texts;
  for (const Ranges& list : parts.ranges) {
    const uint8_t* text = all.data<uint8_t>();
    texts.emplace_back(text + list[0].begin, text + list[0].end);
  }
  return texts;
}

void Communicator::set_timeout(double seconds) const { limits_->timeout = seconds; }
void Communicator::set_context(const std::string& text) const { limits_->context = text; }
void Communicator::set_hosts(std::vector<std::string> hosts) const { limits_->hosts = std::move(hosts); }

std::string Communicator::rank_name(int world_rank) const {
  const auto i = static_cast<size_t>(world_rank);
  return str("rank ", world_rank, i < limits_->hosts.size() ? " on host " + limits_->hosts[i] : "");
}

}  // namespace braid::dist
