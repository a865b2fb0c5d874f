// Checks of exercise 7: values and gradients beside Braid's ops in f64, derivatives beside finite differences.
#include EXERCISE

#include <braid/autograd/graph_dot.h>
#include <braid/nn/layers/rope.h>

using namespace braid;

namespace {

constexpr int64_t B = 2, T = 5, N = 3, d = 4, D = N * d;

Tensor random(const Shape& shape, uint64_t seed) { return randn(shape, {.seed = seed}, DType::f64); }

// What Braid computes for (B, T, D).
Tensor real(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads) {
  const auto parts = [&](const Tensor& x) { return reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}); };
  return reshape(scaled_dot_product_attention(parts(q), parts(k), parts(v)), q.shape());
}

Tensor leaf(const Shape& shape, uint64_t seed) {
  Tensor x = random(shape, seed);
  return require_grad(x);
}

}  // namespace

int main() {
  course::Checks check;
  check("split_heads: (B, T, D) to (B, N, T, d)", "reshape to (B, T, N, d) first, then exchange two axes", [] {
    const Tensor x = arange(8).reshaped({1, 2, 4});  // token 0: 0 1 2 3, token 1: 4 5 6 7
    course::expect_close("split_heads of tokens 0 1 2 3 and 4 5 6 7 into 2 heads", exercise::split_heads(x, 2),
                         from_values({0, 1, 4, 5, 2, 3, 6, 7}, {1, 2, 2, 2}), 0);
  });
  check("merge_heads: the way back", "the same two steps in the other order", [] {
    const Tensor x = random({B, T, D}, 1);
    course::expect_close("merge_heads of split_heads", exercise::merge_heads(exercise::split_heads(x, N)), x, 0);
  });
  check("scores: q kᵀ / sqrt(d), later keys at -infinity",
        "d is the width of a head: the last axis of q; key j is masked where j > i, not where j = i", [] {
          const Tensor q = random({B, N, T, d}, 2), k = random({B, N, T, d}, 3), s = exercise::scores(q, k);
          const Tensor unmasked = einsum("bnid,bnjd->bnij", q, k) / 2.0;
          const Tensor masked = tril(full({T, T}, 1.0, DType::f64)) < 0.5;
          course::expect(s.shape() == unmasked.shape(), "scores: expected the shape ", unmasked.shape(), ", found ",
                         s.shape());
          course::expect_close("scores where j <= i", masked_fill(s, masked, 0), masked_fill(unmasked, masked, 0),
                               1e-12);
          course::hint("row i is a query, column j a key: masked where j > i, in every sample and head");
          course::expect(all(masked_select(s, expand(masked, s.shape())) < -1e300).item() == 1,
                         "scores where j > i: expected -infinity everywhere, found another value");
        });
  check(
      "probabilities: the softmax of rows", "along the last axis; subtract the largest score of the row before exp",
      [] {
        const double inf = std::numeric_limits<double>::infinity();
        const Tensor s = from_values({std::log(3.0), 0, -inf, 1000, 1001, -inf, -5, -5, -5}, {1, 1, 3, 3}, DType::f64);
        course::expect_close("probabilities of scores (ln 3, 0, -inf), (1000, 1001, -inf), (-5, -5, -5)",
                             exercise::probabilities(s), softmax(s), 1e-12);
      });
  check("scores_gradient: the derivative of softmax", "a score also lowers the other probabilities of its row", [] {
    Tensor s = leaf({B, N, T, T}, 4);
    const Tensor p = softmax(s), dp = random({B, N, T, T}, 5);
    course::expect_close("scores_gradient", exercise::scores_gradient(p.detach(), dp), grad(p, {s}, {.dy = dp})[0],
                         1e-12);
  });
  check("attention: values", "matmul(p, v) in each head, then merge_heads", [] {
    const Tensor q = random({B, T, D}, 6), k = random({B, T, D}, 7), v = random({B, T, D}, 8);
    course::expect_close("attention", exercise::attention(q, k, v, N), real(q, k, v, N), 1e-12);
  });
  check("attention: gradients of q, k, v", "return what record() returns, with a closure that gives dq, dk, dv", [] {
    const std::vector<Tensor> in{leaf({B, T, D}, 9), leaf({B, T, D}, 10), leaf({B, T, D}, 11)};
    const Tensor dy = random({B, T, D}, 12), y = exercise::attention(in[0], in[1], in[2], N);
    course::expect(requires_grad(y), "attention: the result has no history; return what record() returns");
    const std::vector<Tensor> own = grad(y, in, {.dy = dy}), right = grad(real(in[0], in[1], in[2], N), in, {.dy = dy});
    const char* hints[] = {"dq = ds k, times the scale of the scores; ds = scores_gradient(p, dy vᵀ)",
                           "dk = dsᵀ q, times the scale of the scores; ds = scores_gradient(p, dy vᵀ)",
                           "dv = pᵀ dy in each head: dy is split as v is, and dv merged"};
    for (const size_t i : {2, 0, 1}) {
      course::hint(hints[i]);
      course::expect_close(course::words("d", "qkv"[i]), own[i], right[i], 1e-12);
    }
  });
  check("attention: one recorded op", "compute on detach()ed tensors inside no_grad(), and record() the result", [] {
    const Tensor y = exercise::attention(leaf({B, T, D}, 9), leaf({B, T, D}, 10), leaf({B, T, D}, 11), N);
    std::istringstream graph(dot(y));
    int ops = 0;
    for (std::string line; std::getline(graph, line);)
      ops += line.find("[label=") != std::string::npos && line.find("->") == std::string::npos &&
             line.find("shape=ellipse") == std::string::npos;
    course::expect(ops > 0, "attention: the result has no history; return what record() returns");
    course::expect(ops <= 2, "attention: expected one op behind the result, found ", ops,
                   ": what it computes inside was recorded, too");
  });
  check("attention: finite differences agree", "does the closure use anything that changed since?", [] {
    const Function f = [](const std::vector<Tensor>& x) { return exercise::attention(x[0], x[1], x[2], 2); };
    const GradcheckResult result = gradcheck(f, {random({1, 3, 4}, 13), random({1, 3, 4}, 14), random({1, 3, 4}, 15)});
    course::expect(result.error < 1e-7, "the derivative differs from finite differences: ", result.where);
  });
  check("rotated: each pair turned by its angle", "e counts pairs within a head, and every head turns alike", [] {
    const Tensor x = random({B, T, D}, 16), y = exercise::rotated(x, N);
    const nn::Rope rope(d, T, 10000, nn::Rope::Precision::exact, DType::f64);
    course::expect_close("rotated", y, reshape(rope(reshape(x, {B, T, N, d}), 0), x.shape()), 1e-12);
    course::hint("ops on x itself, none on numbers copied from it, and recording on");
    const GradcheckResult result =
        gradcheck([](const std::vector<Tensor>& in) { return exercise::rotated(in[0], 2); }, {random({1, 3, 8}, 17)});
    course::expect(result.error < 1e-7, "rotated has a wrong derivative: ", result.where);
  });
  return check.result();
}
