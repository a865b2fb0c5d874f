// Checks of exercise 12: collectives beside sums and copies made in one process, attention beside Braid's on all heads.
#include EXERCISE

#include <algorithm>

#include "braid/autograd/ops.h"
#include "course/12_processes/ranks.h"

using namespace braid;
using course::Communicator;

namespace {

std::vector<Tensor> draws(int ranks, const Shape& shape, uint64_t seed, DType dtype = DType::f64) {
  std::vector<Tensor> out;
  for (int r = 0; r < ranks; ++r) out.push_back(randn(shape, {.seed = seed + static_cast<uint64_t>(r)}, dtype));
  return out;
}
const Tensor& of(const std::vector<Tensor>& x, const Communicator& comm) { return x[static_cast<size_t>(comm.rank())]; }

// ((x_0 + x_1) + x_2) + ...
Tensor in_rank_order(const std::vector<Tensor>& x) {
  Tensor sum = x[0];
  for (size_t r = 1; r < x.size(); ++r) sum = sum + x[r];
  return sum;
}
Tensor part(const Tensor& x, int axis, const Communicator& comm) {
  const dist::Range range = dist::even_partition(x.dim(axis), comm.size()).single(comm.rank());
  return x.sliced(axis, range.begin, range.end);
}
// x of every rank is what was drawn.
void expect_unchanged(const std::string& what, const std::vector<Tensor>& x, const std::vector<Tensor>& drawn) {
  course::hint("a slice of x is the memory of x: add_() to it writes there, a + b is a new tensor");
  for (size_t r = 0; r < x.size(); ++r)
    course::expect_close(course::words(what, ": x of rank ", r, " afterwards"), x[r], drawn[r], 0);
}
// body on `ranks` ranks; then the bytes that any of them sent are at most `maximum`.
void within_bytes(const std::string& what, int ranks, int64_t maximum,
                  const std::function<void(const Communicator&)>& body) {
  std::vector<int64_t> sent(static_cast<size_t>(ranks));
  course::run_ranks(ranks, [&](const Communicator& comm) {
    body(comm);
    sent[static_cast<size_t>(comm.rank())] = comm.stats().bytes_of(dist::Collective::point);
  });
  course::hint("send a rank only what it adds or keeps");
  const int64_t found = *std::max_element(sent.begin(), sent.end());
  course::expect(found <= maximum, what, ": expected at most ", maximum, " bytes sent by a rank, found ", found);
}

}  // namespace

int main() {
  course::Checks check;
  check("exchange: two ranks, both directions", "let the lower rank send first, the other one receive first", [] {
    course::run_ranks(2, [](const Communicator& comm) {
      const std::vector<Tensor> x{arange(3, DType::f64), arange(8, DType::f64).reshaped({2, 4})};
      const Tensor& theirs = x[static_cast<size_t>(1 - comm.rank())];
      course::expect_close("exchange", exercise::exchange(comm, 1 - comm.rank(), of(x, comm), theirs.shape()), theirs,
                           0);
    });
  });
  const auto check_reduce_scatter = [](int ranks) {
    const std::vector<Tensor> x = draws(ranks, {7, 2}, 10);
    const Tensor sum = in_rank_order(x);
    const std::string what = course::words("reduce_scatter of (7, 2) on ", ranks, " ranks");
    within_bytes(what, ranks, (7 - 7 / ranks) * 2 * 8, [&](const Communicator& comm) {
      course::expect_close(what, exercise::reduce_scatter(comm, of(x, comm)), part(sum, 0, comm), 1e-12);
    });
    expect_unchanged(what, x, draws(ranks, {7, 2}, 10));
  };
  check("reduce_scatter: this rank's part of the sum", "send the other rank its part of x; add what arrives to yours",
        [&] { check_reduce_scatter(2); });
  check("reduce_scatter: an order of partners without a circle",
        "7 rows on 3 ranks are parts of 3, 2 and 2: the shape of what arrives is that of your own part", [&] {
          for (const int ranks : {3, 4, 5}) {
            course::hint(nullptr);
            check_reduce_scatter(ranks);
          }
        });
  check("reduce_scatter: in rank order", "begin with the part of rank 0, not with your own", [] {
    // In f32 1e8 + 1 is 1e8: the order shows.
    const std::vector<Tensor> x{full({3}, 1e8), full({3}, 1), full({3}, -1e8)};
    course::run_ranks(3, [&](const Communicator& comm) {
      course::expect_close("(1e8 + 1) - 1e8 in f32, in rank order", exercise::reduce_scatter(comm, of(x, comm)),
                           zeros({1}), 0);
    });
  });
  check("all_gather: all parts on every rank", "the shape of another rank's part may differ from yours", [] {
    for (const int ranks : {2, 3}) {
      const Tensor x = randn({7, 2}, {.seed = 20}, DType::f64);
      course::run_ranks(ranks, [&](const Communicator& comm) {
        course::expect_close(course::words("all_gather of (7, 2) on ", ranks, " ranks"),
                             exercise::all_gather(comm, part(x, 0, comm).contiguous(), 7), x, 0);
      });
    }
  });
  check("all_reduce: the sum on every rank, for 2 (P-1)/P n bytes",
        "reduce_scatter, then all_gather, of the elements in a row", [] {
          const std::vector<Tensor> x = draws(4, {4, 5, 2}, 30);
          const Tensor sum = in_rank_order(x);
          within_bytes("all_reduce of 40 f64 on 4 ranks", 4, 2 * 3 * 10 * 8, [&](const Communicator& comm) {
            course::expect_close("all_reduce of (4, 5, 2) on 4 ranks", exercise::all_reduce(comm, of(x, comm)), sum,
                                 1e-12);
          });
          expect_unchanged("all_reduce", x, draws(4, {4, 5, 2}, 30));
          course::hint("axis 0 may be shorter than the ranks are many, or missing: reshape to one axis first");
          for (const Shape& shape : {Shape{3, 4}, Shape{}}) {  // which 4 ranks do not divide along axis 0
            const std::vector<Tensor> y = draws(4, shape, 31);
            course::run_ranks(4, [&](const Communicator& comm) {
              course::expect_close(course::words("all_reduce of ", shape, " on 4 ranks"),
                                   exercise::all_reduce(comm, of(y, comm)), in_rank_order(y), 1e-12);
            });
          }
        });
  check("mean_gradients: the gradient of one process",
        "each rank has a mean: the mean of the means where all have equally many samples", [] {
          const Tensor x = randn({10, 3}, {.seed = 40}, DType::f64), y = randn({10, 2}, {.seed = 41}, DType::f64);
          const auto gradients = [&](int64_t begin, int64_t end) {  // of a weight (2, 3) and a bias (2)
            Tensor w = full({2, 3}, 0.5, DType::f64), b = full({2}, 0.1, DType::f64);
            require_grad(w), require_grad(b);
            const Tensor miss = matmul(x.sliced(0, begin, end), transpose(w)) + b - y.sliced(0, begin, end);
            backward(sum(square(miss)) * (1.0 / static_cast<double>(end - begin)));
            return std::vector<Tensor>{grad(w).clone(), grad(b).clone()};
          };
          for (const int64_t first : {5, 3}) {
            if (first == 3)
              course::hint("weight the gradient of each rank by its samples, divided by those of all ranks");
            course::run_ranks(2, [&](const Communicator& comm) {
              const bool low = comm.rank() == 0;
              std::vector<Tensor> own = low ? gradients(0, first) : gradients(first, 10);
              exercise::mean_gradients(comm, own, low ? first : 10 - first);
              const std::vector<Tensor> whole = gradients(0, 10);
              course::expect(own.size() == 2, "expected 2 gradients, found ", own.size());
              for (size_t i = 0; i < 2; ++i)
                course::expect_close(
                    course::words(i ? "second " : "", "gradient of 10 samples, ", first, " of them on rank 0"), own[i],
                    whole[i], 1e-12);
            });
          }
        });
  check("heads_to_rows and back", "what goes to rank r: its rows of your heads; what comes: your rows of its heads",
        [] {
          for (const int ranks : {2, 3}) {
            const Tensor x = arange(72, DType::f64).reshaped({6, 6, 2});  // each element is its position
            course::hint(nullptr);
            course::run_ranks(ranks, [&](const Communicator& comm) {
              course::expect_close(course::words("heads_to_rows of (6, 6, 2) on ", ranks, " ranks"),
                                   exercise::heads_to_rows(comm, part(x, 1, comm).contiguous()), part(x, 0, comm), 0);
            });
            course::hint("what goes to rank r: its heads of your rows; what comes: your heads of its rows");
            course::run_ranks(ranks, [&](const Communicator& comm) {
              course::expect_close(course::words("rows_to_heads of (6, 6, 2) on ", ranks, " ranks"),
                                   exercise::rows_to_heads(comm, part(x, 0, comm).contiguous()), part(x, 1, comm), 0);
            });
          }
        });
  check("composed_attention: equals one process", "the result has own heads and all rows, as q: rows_to_heads()", [] {
    const Shape shape{6, 4, 8};
    const Tensor q = randn(shape, {.seed = 50}, DType::f64), k = randn(shape, {.seed = 51}, DType::f64),
                 v = randn(shape, {.seed = 52}, DType::f64), base = randn({4, 4}, {.seed = 53}, DType::f64) * 0.3;
    const auto one = [](const Tensor& x) { return unsqueeze(x, 0); };
    const Tensor y = squeeze(dcmha(one(q), one(k), one(v), {.base = one(base)}, {}), 0);
    for (const int ranks : {2, 1}) {
      std::vector<Tensor> found(2), expected(2);
      course::hint(nullptr);
      course::run_ranks(ranks, [&](const Communicator& comm) {
        const auto own = [&](const Tensor& x) { return part(x, 1, comm).contiguous(); };
        const auto rank = static_cast<size_t>(comm.rank());
        found[rank] = exercise::composed_attention(comm, own(q), own(k), own(v), base), expected[rank] = own(y);
        course::expect(found[rank].shape() == own(q).shape(), "composed attention: expected the shape of q, ",
                       own(q).shape(), ", found ", found[rank].shape());
      });
      for (int64_t t = 0; t < 6; ++t) {
        course::hint(t == 0          ? "a query with one key: base[m,n] is m read, n written"
                     : ranks * t < 6 ? "the first rank's queries: they need the keys of all rows up to their own"
                                     : "the last rank's queries: the mask's offset is the position of its first row");
        for (size_t rank = 0; rank < static_cast<size_t>(ranks); ++rank)
          course::expect_close(
              course::words("rank ", rank, ": composed attention (T = 6, N = 4, d = 8) on ", ranks, " ranks, row ", t),
              found[rank].sliced(0, t, t + 1), expected[rank].sliced(0, t, t + 1), 1e-12);
      }
    }
  });
  return check.result();
}
