// <f(x), y> == <x, f*(y)> over all ranks, f* being the backward pass; both sides random. A value that is the same on
// all ranks counts once.
#include <algorithm>

#include "braid/autograd.h"
#include "braid/distributed/parallel/mappings.h"
#include "tests/distributed/support.h"

namespace braid::test {

using dist::Communicator;
using dist::Partition;

namespace {

double product_of(const Tensor& x, const Tensor& y) {
  std::vector<double> a = x.to_vector<double>(), b = y.to_vector<double>();
  expect(a.size() == b.size(), "sizes of the operands of a dot product");
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

enum class Copies { none, input, output };  // the side that is the same on all ranks

template <class F>
void adjoint(const Communicator& world, const std::string& what, Copies copies, const Shape& input, F&& f) {
  auto salt = static_cast<uint64_t>(world.rank());
  Tensor x = random_tensor(input, copies == Copies::input ? 100 : salt, DType::f64);
  require_grad(x);
  Tensor fx = f(x);
  Tensor y = random_tensor(fx.shape(), copies == Copies::output ? 200 : 50 + salt, DType::f64);
  backward(fx, y);
  Tensor back = grad(x);
  double left = product_of(fx, y), right = product_of(x, back);
  if (copies != Copies::output) left = world.sum(left);
  if (copies != Copies::input) right = world.sum(right);
  expect(std::fabs(left - right) <= 1e-12 * (1 + std::fabs(left)),
         what + ": <f(x), y> = " + std::to_string(left) + ", <x, f*(y)> = " + std::to_string(right));
  if (copies == Copies::input) {  // the copies of the gradient stay copies
    expect_close(world.broadcast(back, 0), back, 0, what + ": gradients of copies");
  }
}

}  // namespace

void check_mappings(const Communicator& world) {
  int P = world.size(), me = world.rank();
  for (int64_t n : {12, 7}) {
    for (const Partition& parts : {dist::even_partition(n, P), dist::zigzag_partition(n, P)}) {
      Partition heads = dist::even_partition(5, P);
      Shape whole{2, n, 5}, part{2, parts.size(me), 5}, by_heads{2, n, heads.size(me)};
      adjoint(world, "copy_to_group", Copies::input, whole,
              [&](const Tensor& x) { return dist::copy_to_group(x, world); });
      adjoint(world, "all_reduce", Copies::output, whole, [&](const Tensor& x) { return dist::all_reduce(x, world); });
      adjoint(world, "all_gather_replicated", Copies::output, part,
              [&](const Tensor& x) { return dist::all_gather_replicated(x, 1, parts, world); });
      adjoint(world, "local_shard", Copies::input, whole,
              [&](const Tensor& x) { return dist::local_shard(x, 1, parts, world); });
      adjoint(world, "all_gather", Copies::none, part,
              [&](const Tensor& x) { return dist::all_gather(x, 1, parts, world); });
      adjoint(world, "reduce_scatter", Copies::none, whole,
              [&](const Tensor& x) { return dist::reduce_scatter(x, 1, parts, world); });
      adjoint(world, "all_to_all, heads to rows", Copies::none, by_heads,
              [&](const Tensor& x) { return dist::all_to_all(x, 1, parts, 2, heads, world); });
      adjoint(world, "all_to_all, rows to heads", Copies::none, part,
              [&](const Tensor& x) { return dist::all_to_all(x, 2, heads, 1, parts, world); });
      // Each rank needs its own entries and the three before them, so several ranks need the same ones.
      Partition need = parts;
      for (dist::Ranges& list : need.ranges) {
        for (dist::Range& i : list) i.begin = std::max<int64_t>(0, i.begin - 3);
        list = dist::merge(list);
      }
      Shape needed{2, need.size(me), 5};
      adjoint(world, "sparse_all_gather", Copies::none, part,
              [&](const Tensor& x) { return dist::sparse_all_gather(x, 1, parts, need, world); });
      adjoint(world, "all_to_all, heads to rows of several ranks", Copies::none, by_heads,
              [&](const Tensor& x) { return dist::all_to_all(x, 1, need, 2, heads, world); });
      Tensor all = random_tensor(whole, 9, DType::f64);
      expect_equal(dist::sparse_all_gather(dist::gather_ranges(all, 1, parts.of(me)), 1, parts, need, world),
                   dist::gather_ranges(all, 1, need.of(me)), "sparse_all_gather");
      expect_equal(dist::all_to_all(dist::gather_ranges(all, 2, heads.of(me)), 1, need, 2, heads, world),
                   dist::gather_ranges(all, 1, need.of(me)), "all_to_all, rows of several ranks");
      // Sums of 16-bit values are rounded once: 256 + 1 + 1 is 258 in bf16, although 256 + 1 is 256.
      Partition everything{std::vector<dist::Ranges>(static_cast<size_t>(P), {{0, n}})};
      Tensor big = full({2, n, 5}, me == 0 ? 256 : 1, DType::bf16);
      Tensor want = full(part, 256 + (P - 1), DType::f32).to(DType::bf16);
      expect_equal(world.sparse_reduce_scatter(big, 1, parts, everything), want, "sparse_reduce_scatter in bf16");
    }
  }
}

void check_device(const Communicator& world, Device device) {
  int P = world.size(), me = world.rank();
  auto salt = static_cast<uint64_t>(me);
  Partition rows = dist::zigzag_partition(12, P), heads = dist::even_partition(5, P);
  Partition everything{std::vector<dist::Ranges>(static_cast<size_t>(P), {{0, 12}})};
  for (DType dtype : {DType::f32, DType::bf16}) {
    Tensor whole = random_tensor({2, 12, 5}, salt, dtype), own = random_tensor({2, rows.size(me), 5}, salt, dtype),
           by_heads = random_tensor({2, 12, heads.size(me)}, salt, dtype);
    auto same = [&](const char* what, const Tensor& x, auto&& f) {
      Tensor there = f(x.to(device));
      expect(there.device() == device, std::string(what) + ": the result's device");
      expect_equal(there.to(kCpu), f(x), std::string(what) + " on " + str(device));
    };
    same("all_reduce", whole, [&](const Tensor& x) { return world.all_reduce(x); });
    same("maximum", whole, [&](const Tensor& x) { return world.all_reduce(x, dist::Reduction::max); });
    same("reduce_scatter", whole, [&](const Tensor& x) { return world.reduce_scatter(x, 1, rows); });
    same("all_gather", own, [&](const Tensor& x) { return world.all_gather(x, 1, rows); });
    same("all_to_all", by_heads, [&](const Tensor& x) { return world.all_to_all(x, 1, rows, 2, heads); });
    same("sparse_all_gather", own, [&](const Tensor& x) { return world.sparse_all_gather(x, 1, rows, everything); });
    same("sparse_reduce_scatter", whole,
         [&](const Tensor& x) { return world.sparse_reduce_scatter(x, 1, rows, everything); });
    same("broadcast", whole, [&](const Tensor& x) { return world.broadcast(x, P - 1); });
  }
}

}  // namespace braid::test
