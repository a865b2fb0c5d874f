// Every collective against its meaning, which each rank works out for itself from what all ranks hold.

#include "braid/distributed/comm/communicator.h"
#include "tests/distributed/support.h"

namespace braid::test {

using dist::Collective;
using dist::Communicator;
using dist::Partition;

namespace {

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8};

// The tensor of rank r: small integers, which every type represents exactly, and their sums too.
Tensor value_of(int r, const Shape& shape, DType dtype) {
  Tensor x = empty(shape, DType::f64);
  double* to = x.mutable_data<double>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = static_cast<double>((i * 7 + r * 3) % 11);
  return x.to(dtype);
}

Tensor sum_of(int ranks, const Shape& shape, DType dtype) {
  Tensor sum = zeros(shape, DType::f64);
  for (int r = 0; r < ranks; ++r) sum.add_(value_of(r, shape, DType::f64));
  return sum.to(dtype);
}

void exact(const Communicator& world, DType dtype) {
  int P = world.size(), me = world.rank();
  std::string type = str(dtype);
  for (const Shape& shape : {Shape{5, 6}, Shape{1}, Shape{0}, Shape{3, 7, 2}}) {
    expect_equal(world.all_reduce(value_of(me, shape, dtype)), sum_of(P, shape, dtype), "all_reduce of " + type);
    Tensor max = world.all_reduce(value_of(me, shape, dtype), dist::Reduction::max);
    std::vector<double> got = max.to_vector<double>();
    for (int r = 0; r < P; ++r) {
      std::vector<double> v = value_of(r, shape, dtype).to_vector<double>();
      for (size_t i = 0; i < v.size(); ++i) expect(got[i] >= v[i], "maximum of " + type);
    }
    expect_equal(world.broadcast(value_of(me, shape, dtype), P - 1), value_of(P - 1, shape, dtype),
                 "broadcast of " + type);
  }
  Shape shape{4, 9, 2};
  for (const Partition& parts : {dist::even_partition(9, P), dist::zigzag_partition(9, P)}) {
    const dist::Ranges& mine = parts.of(me);
    expect_equal(world.reduce_scatter(value_of(me, shape, dtype), 1, parts),
                 gather_ranges(sum_of(P, shape, dtype), 1, mine), "reduce_scatter of " + type);
    Tensor whole = value_of(0, shape, dtype);
    expect_equal(world.all_gather(gather_ranges(whole, 1, mine), 1, parts), whole, "all_gather of " + type);
    Partition columns = dist::even_partition(4, P);
    // A tensor that is sharded along axis 0 becomes one that is sharded along axis 1.
    Tensor before = gather_ranges(whole, 0, columns.of(me)), after = gather_ranges(whole, 1, mine);
    expect_equal(world.all_to_all(before, 1, parts, 0, columns), after, "all_to_all of " + type);
    expect_equal(world.all_to_all(after, 0, columns, 1, parts), before, "all_to_all back of " + type);
  }
  for (int from = 0; from < P; ++from) {
    for (int to = 0; to < P; ++to) {
      if (from == to) continue;
      if (me == from) world.send(value_of(from, shape, dtype), to);
      Tensor got = zeros(shape, dtype);
      if (me == to) world.receive(got, from);
      if (me == to) expect_equal(got, value_of(from, shape, dtype), "send and receive of " + type);
    }
  }
}

// 16-bit sums are formed in f32 and rounded once: 256 + 1 + 1 is 258 in bf16, but 256 + 1 alone rounds back to 256.
void sixteen_bits(const Communicator& world) {
  for (DType dtype : {DType::bf16, DType::f16}) {
    double big = dtype == DType::bf16 ? 256 : 2048;
    Tensor x = full({3}, world.rank() == 0 ? big : 1, dtype);
    double want = full({1}, big + world.size() - 1, DType::f64).to(dtype).item();
    expect_equal(world.all_reduce(x), full({3}, want, dtype), "all_reduce of " + str(dtype));
  }
}

void asynchronous(const Communicator& world) {
  int P = world.size(), me = world.rank();
  Shape shape{6, 5};
  Partition parts = dist::even_partition(6, P);
  std::vector<dist::Work> under_way;
  for (int i = 0; i < 4; ++i)
    under_way.push_back(world.start_reduce_scatter(value_of(me + i, shape, DType::f32), 0, parts));
  dist::Work whole = world.start_all_gather(gather_ranges(value_of(3, shape, DType::f32), 0, parts.of(me)), 0, parts);
  dist::Work sum = world.start_all_reduce(value_of(me, shape, DType::f64));
  while (!whole.poll()) {
  }
  expect_equal(whole.wait(), value_of(3, shape, DType::f32), "start_all_gather");
  for (int i = 3; i >= 0; --i) {  // in another order than they were started in
    Tensor want = zeros(shape, DType::f32);
    for (int r = 0; r < P; ++r) want.add_(value_of(r + i, shape, DType::f32));
    expect_equal(under_way[static_cast<size_t>(i)].wait(), gather_ranges(want, 0, parts.of(me)),
                 "start_reduce_scatter");
  }
  expect_equal(sum.wait(), sum_of(P, shape, DType::f64), "start_all_reduce");
  expect_error([&] { sum.wait(); }, ErrorKind::misuse, "taken already");
}

// The bits of a sum are those of adding in rank order, whatever the timing.
void rank_order(const Communicator& world) {
  Shape shape{1001};
  Tensor want = random_tensor(shape, 0, DType::f32);
  for (int r = 1; r < world.size(); ++r) want.add_(random_tensor(shape, static_cast<uint64_t>(r), DType::f32));
  for (int i = 0; i < 5; ++i) {
    expect_equal(world.all_reduce(random_tensor(shape, static_cast<uint64_t>(world.rank()), DType::f32)), want,
                 "bits of all_reduce");
  }
}

void splits(const Communicator& world) {
  int P = world.size(), me = world.rank();
  Communicator parity = world.split(me % 2, "parity");
  expect(parity.size() == (P + 1 - me % 2) / 2 && parity.rank() == me / 2, "ranks of a split");
  expect(parity.world_rank(parity.rank()) == me, "world rank of a split");
  int64_t want = 0;
  for (int r = me % 2; r < P; r += 2) want += r;
  expect(parity.sum(int64_t{me}) == want, "sum in a split");
  Communicator alone = world.split(me, "alone");
  expect(alone.size() == 1 && alone.sum(int64_t{5}) == 5, "a split into single ranks");
  Communicator same = world.split(0, "same");
  expect(same.size() == P && same.rank() == me && same.sum(1.5) == 1.5 * P, "a split into one group");
  expect(parity.label() == "parity", "label of a split");
}

void words_and_decisions(const Communicator& world) {
  std::vector<std::string> texts = world.gather_text(std::string(static_cast<size_t>(world.rank()), 'x'));
  for (size_t r = 0; r < texts.size(); ++r) expect(texts[r] == std::string(r, 'x'), "gather_text");
  expect(!world.any(false), "no rank requests");
  expect(world.any(world.rank() == world.size() - 1), "the last one requests");
  world.barrier();
}

// Bytes are those of the formulas in communicator.h, exactly, with uneven parts too.
void volumes(const Communicator& root) {
  Communicator world = root.split(0, "counted");
  int64_t P = world.size(), me = world.rank();
  Partition parts = dist::even_partition(10, static_cast<int>(P));
  int64_t mine = parts.size(static_cast<int>(me)), row = 3 * 4;
  auto sent = [&](Collective c, auto&& f) {
    int64_t before = world.stats().bytes_of(c);
    f();
    return world.stats().bytes_of(c) - before;
  };
  Tensor x = zeros({10, 3}, DType::f32), part = zeros({mine, 3}, DType::f32);
  int64_t scatter = sent(Collective::reduce_scatter, [&] { world.reduce_scatter(x, 0, parts); });
  expect(scatter == (10 - mine) * row, "volume of reduce_scatter");
  int64_t gather = sent(Collective::all_gather, [&] { world.all_gather(part, 0, parts); });
  expect(gather == (P - 1) * mine * row, "volume of all_gather");
  int64_t exchange = sent(Collective::all_to_all, [&] {
    Partition columns = dist::even_partition(3 * P, static_cast<int>(P));
    world.all_to_all(zeros({mine, 3 * P}, DType::f32), 1, columns, 0, parts);
  });
  expect(exchange == (P - 1) * mine * row, "volume of all_to_all");
  int64_t flat = dist::even_partition(30, static_cast<int>(P)).size(static_cast<int>(me)) * 4;
  int64_t reduce = sent(Collective::all_reduce, [&] { world.all_reduce(x); });
  expect(reduce == (120 - flat) + (P - 1) * flat, "volume of all_reduce");
  int64_t cast = sent(Collective::broadcast, [&] { world.broadcast(x, 0); });
  expect(cast == (me == 0 ? (P - 1) * 120 : 0), "volume of broadcast");
  if (P > 1) expect(world.stats().calls[0] == 1, "calls of all_reduce");
}

void rejections(const Communicator& world) {
  int P = world.size();
  expect_error([&] { world.all_gather(zeros({3}), 0, dist::even_partition(3, P + 1)); }, ErrorKind::misuse,
               "[all_gather] the axis is partitioned over " + std::to_string(P + 1) + " ranks");
  expect_error([&] { world.reduce_scatter(zeros({4}), 0, dist::even_partition(3, P)); }, ErrorKind::misuse,
               "axis 0 of (4) should have 3 entries");
  expect_error([&] { world.broadcast(zeros({4}), P); }, ErrorKind::misuse, "there is no rank");
  expect_error([&] { world.send(zeros({4}), world.rank()); }, ErrorKind::misuse, "cannot send to rank");
}

}  // namespace

void check_collectives(const Communicator& world) {
  for (DType dtype : kTypes) exact(world, dtype);
  sixteen_bits(world);
  asynchronous(world);
  rank_order(world);
  splits(world);
  words_and_decisions(world);
  volumes(world);
  rejections(world);
}

}  // namespace braid::test
