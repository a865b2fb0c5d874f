// Checks of exercise 10: against Braid's attention and its derivative in f64, and the memory that tensors requested.
#include EXERCISE

#include "braid/tensor/memory.h"
#include "course/checks.h"

using namespace braid;
using course::expect_close;
using course::words;

namespace {

constexpr int64_t kHeads = 4, kSize = 16;
constexpr int64_t kAllScores = kHeads * 512 * 512 * 8;  // bytes, for 512 queries and keys

Tensor values(const Shape& shape, uint64_t stream) { return randn(shape, {10, stream}, DType::f64) * 2; }

// Braid's layout (1, T, N, d), in which it computes, and back.
Tensor braids(const Tensor& x) { return x.transposed(0, 1).contiguous().unsqueezed(0); }
Tensor students(const Tensor& x) { return x.squeezed(0).transposed(0, 1).contiguous(); }

SdpaOptions last_aligned(int64_t t, int64_t s) {
  SdpaOptions options;
  options.mask.offset = s - t;
  return options;
}

struct Problem {
  Problem(int64_t t, int64_t s)
      : q(values({kHeads, t, kSize}, 1)),
        k(values({kHeads, s, kSize}, 2)),
        v(values({kHeads, s, kSize}, 3)),
        dy(values({kHeads, t, kSize}, 4)) {}
  Tensor expected() const {
    return students(scaled_dot_product_attention(braids(q), braids(k), braids(v), last_aligned(q.dim(1), k.dim(1))));
  }
  exercise::Gradients gradients() const {
    Tensor a = braids(q), b = braids(k), c = braids(v);
    for (Tensor* x : {&a, &b, &c}) require_grad(*x);
    const std::vector<Tensor> d =
        grad(scaled_dot_product_attention(a, b, c, last_aligned(q.dim(1), k.dim(1))), {a, b, c}, {.dy = braids(dy)});
    return {students(d[0]), students(d[1]), students(d[2])};
  }
  Tensor q, k, v, dy;
};

// The bytes that f() needs at its peak beside those in use before it.
int64_t peak_of(const std::function<void()>& f) {
  reset_peak_memory(kCpu);
  const int64_t before = memory_by_use(kCpu).peak();
  f();
  return memory_by_use(kCpu).peak() - before;
}

void expect_peak(const char* what, int64_t found, int64_t bound) {
  course::expect(found < bound, what, ": expected a peak below ", bound, " bytes, found ", found);
}

}  // namespace

int main() {
  course::Checks check;
  check("update: the scores 1, 2 and then 3 of the chapter",
        "exp(score - max) with the maximum of old and new; exp(-inf) is 0", [] {
          exercise::Running r = exercise::start(1, 1, 1);
          exercise::update(r, from_values({1, 2}, {1, 1, 2}, DType::f64), from_values({10, 20}, {1, 2, 1}, DType::f64));
          expect_close("sum after 1 and 2", r.sum, full({1, 1, 1}, 1.3678794411714423, DType::f64), 1e-14);
          course::hint("a new maximum scales the old sum and the old out by exp(old max - new max)");
          exercise::update(r, full({1, 1, 1}, 3, DType::f64), full({1, 1, 1}, 30, DType::f64));
          expect_close("max", r.max, full({1, 1, 1}, 3, DType::f64), 0);
          expect_close("sum", r.sum, full({1, 1, 1}, 1.5032147244080551, DType::f64), 1e-14);
          expect_close("out / sum", r.out / r.sum, full({1, 1, 1}, 25.752103826044415, DType::f64), 1e-12);
        });
  check("attention: one block of all keys, as Braid's", "scores / sqrt(d), then masked(), then update()", [] {
    const Problem p(7, 7);
    expect_close("y", exercise::attention(p.q, p.k, p.v, 7).y, p.expected(), 1e-10);
  });
  check("attention: blocks of any size, and more keys than queries",
        "masked() is told where its block begins; the last block may be shorter", [] {
          for (const int64_t block : {1, 3, 8, 100}) {
            for (const int64_t t : {20, 5, 1}) {
              if (t < 20) course::hint("masked() is told S, the number of all keys, not the end of the block");
              const Problem p(t, 20);
              expect_close(words("y of ", t, " queries, 20 keys, blocks of ", block),
                           exercise::attention(p.q, p.k, p.v, block).y, p.expected(), 1e-10);
            }
          }
        });
  check("attention: logsumexp", "max + log(sum)", [] {
    const Problem p(12, 12);
    const Tensor scores = exercise::masked(matmul(p.q, transpose(p.k)) / std::sqrt(1.0 * kSize), 0, 12);
    expect_close("logsumexp", exercise::attention(p.q, p.k, p.v, 5).logsumexp, logsumexp(scores, 2, true), 1e-10);
  });
  check("attention: memory", "slice the keys first, then multiply: scores exist for one block only", [] {
    const Problem p(512, 512);
    expect_peak("512 keys in blocks of 32", peak_of([&] { exercise::attention(p.q, p.k, p.v, 32); }), kAllScores);
  });
  check("attention_backward: as Braid's derivative",
        "P = exp(score - logsumexp), with the scale and the mask of attention()", [] {
          for (const int64_t block : {24, 5}) {
            for (const int64_t t : {24, 6}) {
              const Problem p(t, 24);
              const exercise::Result result = exercise::attention(p.q, p.k, p.v, block);
              const auto found = exercise::attention_backward(p.q, p.k, p.v, result, p.dy, block);
              const auto expected = p.gradients();
              const std::string what = words(" of ", t, " queries, 24 keys, blocks of ", block);
              course::hint("dv = P^T dy, of the keys of each block");
              expect_close("dv" + what, found.dv, expected.dv, 1e-10);
              course::hint("dS = P (dy v^T - rowsum(dy y)); dq = dS k times the scale, summed over the blocks");
              expect_close("dq" + what, found.dq, expected.dq, 1e-10);
              course::hint("dS = P (dy v^T - rowsum(dy y)); dk = dS^T q times the scale, of the keys of each block");
              expect_close("dk" + what, found.dk, expected.dk, 1e-10);
            }
          }
        });
  check("attention_backward: memory", "keep nothing of a block but its share of dq, dk and dv", [] {
    const Problem p(512, 512);
    const exercise::Result result = exercise::attention(p.q, p.k, p.v, 32);
    const int64_t peak = peak_of([&] { exercise::attention_backward(p.q, p.k, p.v, result, p.dy, 32); });
    expect_peak("512 keys in blocks of 32", peak, kAllScores);
  });
  check("append: writes into the buffers", "copy_() to a slice of positions length to length + n", [] {
    exercise::Cache cache(kHeads, 64, kSize);
    const Tensor keys = cache.keys, old_values = cache.values, k = values({kHeads, 5, kSize}, 5),
                 v = values({kHeads, 5, kSize}, 6);
    for (const auto& [begin, end] : {std::pair{0, 3}, {3, 4}, {4, 5}})
      exercise::append(cache, k.sliced(1, begin, end), v.sliced(1, begin, end));
    course::hint("length counts the positions in use: add k.dim(1)");
    course::expect(cache.length == 5, "length: expected 5, found ", cache.length);
    course::hint("copy_() writes into the buffer, keys = ... moves the handle to another one");
    course::expect(cache.keys.shares_storage(keys), "keys: expected the buffer of the start, found another one");
    course::expect(cache.values.shares_storage(old_values),
                   "values: expected the buffer of the start, found another one");
    course::hint(nullptr);
    expect_close("keys", cache.keys.sliced(1, 0, 5).contiguous(), k, 0);
    expect_close("values", cache.values.sliced(1, 0, 5).contiguous(), v, 0);
  });
  check("step: token by token as all at once", "first append, then attention() to the positions in use", [] {
    const Problem p(12, 12);
    const Tensor expected = p.expected();
    exercise::Cache cache(kHeads, 64, kSize);
    for (const auto& [begin, end] : {std::pair{0, 9}, {9, 10}, {10, 12}}) {
      const auto part = [&, b = begin, e = end](const Tensor& x) { return x.sliced(1, b, e).contiguous(); };
      const Tensor y = exercise::step(cache, part(p.q), part(p.k), part(p.v), 64);
      expect_close(words("y of the positions ", begin, " to ", end - 1), y, part(expected), 1e-10);
    }
  });
  check("step: no copy of the cache",
        "attention() of views: sliced() of a buffer copies nothing, contiguous(), clone() and concat() do", [] {
          constexpr int64_t kUsed = 2000;
          const Problem p(1, kUsed + 1);
          exercise::Cache cache(kHeads, 2048, kSize);
          exercise::append(cache, p.k.sliced(1, 0, kUsed), p.v.sliced(1, 0, kUsed));
          const Tensor k = p.k.sliced(1, kUsed, kUsed + 1), v = p.v.sliced(1, kUsed, kUsed + 1);
          Tensor y;
          const int64_t peak = peak_of([&] { y = exercise::step(cache, p.q, k, v, 64); });
          expect_close("y", y, p.expected(), 1e-10);
          expect_peak("a step behind 2000 positions in blocks of 64", peak, kHeads * kUsed * kSize * 8 / 4);
        });
  return check.result();
}
