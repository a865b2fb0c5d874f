// Checks of exercise 9: formulas in f64, and numbers that are known.
#include EXERCISE

#include <string>

using namespace braid;

namespace {

Tensor random(const Shape& shape, uint64_t seed) { return randn(shape, {.seed = seed}, DType::f64); }

void expect_number(const char* what, double found, double expected) {
  course::expect(std::fabs(found - expected) < 1e-9, what, ": expected ", expected, ", found ", found);
}

// y (..., N d) with zeros where head `head` of size d stands; a negative head: y.
Tensor off(const Tensor& y, int64_t d, int64_t head) {
  const Tensor place = arange(y.dim(-1));
  return head < 0 ? y : masked_fill(y, (place >= head * d) & (place < (head + 1) * d), 0);
}

}  // namespace

int main() {
  course::Checks check;
  check("without_head: nothing of the head passes", "head h is read by the columns h d to (h + 1) d - 1 of wo", [] {
    const Tensor y = random({5, 6}, 1), kept = random({6, 6}, 2);
    for (int64_t head = 0; head < 3; ++head) {
      const Tensor wo = kept.clone();
      int calls = 0;
      exercise::without_head(wo, 3, head, [&] {
        ++calls;
        course::expect_close(course::words("y woᵀ without head ", head, " of 3"), linear(y, wo),
                             linear(off(y, 2, head), kept), 1e-12);
      });
      course::expect(calls == 1, "without_head: expected one call of body(), found ", calls);
    }
  });
  check("without_head: afterwards wo is as before", "keep a copy before writing: clone() copies, a view does not", [] {
    const Tensor wo = random({4, 6}, 3), kept = wo.clone();
    exercise::without_head(wo, 3, 1, [] {});
    course::expect_close("wo after without_head", wo, kept, 0);
    course::hint("body() may throw: a destructor runs on every way out of a function");
    try {
      exercise::without_head(wo, 3, 2, [] { throw std::runtime_error("a loss that fails"); });
    } catch (const std::runtime_error&) {
    }
    course::expect_close("wo after a body that throws", wo, kept, 0);
  });
  check("loss_increases: each head alone", "the loss with all heads is measured before any head is off", [] {
    const Tensor y = random({5, 4}, 4), first = random({4, 4}, 5), second = random({3, 4}, 6);
    const auto loss = [&](int64_t head0, int64_t head1) {  // of two layers, each without a head
      return mean(square(linear(off(tanh(linear(off(y, 2, head0), first)), 2, head1), second))).item();
    };
    const std::vector<double> found = exercise::loss_increases({first, second}, 2, [&] { return loss(-1, -1); });
    course::expect(found.size() == 4, "2 layers of 2 heads: expected 4 numbers, found ", found.size());
    for (int64_t i = 0; i < 4; ++i)
      expect_number(course::words("layer ", i / 2, " head ", i % 2).c_str(), found[static_cast<size_t>(i)],
                    loss(i < 2 ? i : -1, i < 2 ? -1 : i - 2) - loss(-1, -1));
  });
  check("shares: sizes that sum to 1",
        "divide by the sum of the sizes |x_j|, not by the sum; where that is 0 by something else", [] {
          course::expect_close("shares of (3, -1, 0) and (0, 0, 0)",
                               exercise::shares(from_values({3, -1, 0, 0, 0, 0}, {2, 3}, DType::f64)),
                               from_values({0.75, 0.25, 0, 0, 0, 0}, {2, 3}, DType::f64), 1e-12);
        });
  check("entropy: how spread out a head looks", "where p is 0 take the logarithm of something else", [] {
    course::expect_close("entropy of rows (1/2, 1/2) and (1, 0)",
                         exercise::entropy(from_values({0.5, 0.5, 1, 0}, {1, 2, 2}, DType::f64)),
                         from_values({std::log(2.0) / 2}, {1}, DType::f64), 1e-12);
    course::hint("the sum over keys, the mean over queries, a number for each head");
    const Tensor p = softmax(random({3, 5, 5}, 7));
    course::expect_close("entropy", exercise::entropy(p), mean(sum(p * log(reciprocal(p)), -1), -1), 1e-12);
  });
  check("effective_rank: how many singular values count", "exp(-sum p ln p) of p = s / sum s", [] {
    const auto of = [](const std::vector<double>& s) {
      return exercise::effective_rank(from_vector(s, {static_cast<int64_t>(s.size())}));
    };
    expect_number("effective_rank of (2, 2, 2, 2)", of({2, 2, 2, 2}), 4);
    course::hint("0 ln 0 counts as 0: where p is 0 take the logarithm of something else");
    expect_number("effective_rank of (5, 0, 0)", of({5, 0, 0}), 1);
    course::hint("p = s / sum s, not of the squares");
    expect_number("effective_rank of (4, 2, 1, 1)", of({4, 2, 1, 1}), std::pow(2, 1.75));
    course::hint("a sum of 0 divides nothing: 0 where all values are 0");
    expect_number("effective_rank of (0, 0)", of({0, 0}), 0);
  });
  check("qk_matrix: scores as a matrix of the inputs", "queries of head h: rows h d ...; its keys: N d rows later", [] {
    const int64_t N = 3, d = 2, D = 5;
    const Tensor x = random({4, D}, 8), wqkv = random({3 * N * d, D}, 9), all = linear(x, wqkv);
    for (int64_t head = 0; head < N; ++head) {
      const Tensor q = slice(all, 1, head * d, (head + 1) * d), k = slice(all, 1, (N + head) * d, (N + head + 1) * d);
      course::expect_close(course::words("x W xᵀ of head ", head),
                           matmul(matmul(x, exercise::qk_matrix(wqkv, N, head)), transpose(x)),
                           matmul(q, transpose(k)) / std::sqrt(2.0), 1e-12);
    }
  });
  check("cosines: do two heads look alike?",
        "-infinity times 0 is not a number: replace what stands where j > i; no mean is subtracted", [] {
          const Tensor maps = random({3, 4, 4}, 10) + 0.5, seen = tril(ones_like(maps));
          const Tensor masked = mask_scores(maps, {}, -std::numeric_limits<double>::infinity());
          const Tensor ab = einsum("mij,nij->mn", {maps * seen, maps * seen}), aa = diag(ab);
          const Tensor right = ab / sqrt(unsqueeze(aa, 0) * unsqueeze(aa, 1));
          course::expect_close("cosines of maps with -infinity where j > i", exercise::cosines(masked), right, 1e-12);
          course::hint("sums go over j <= i alone, those of the squares, too");
          course::expect_close("cosines of maps with other values where j > i", exercise::cosines(maps), right, 1e-12);
        });
  check("diversity: the mean over pairs of different heads", "N (N - 1) cosines count, not N N", [] {
    const Tensor c = from_values({1, 0.5, 0, 0.5, 1, -0.2, 0, -0.2, 1}, {3, 3}, DType::f64);
    expect_number("diversity of cosines 0.5, 0 and -0.2", exercise::diversity(c), 0.9);
    expect_number("diversity of two equal heads", exercise::diversity(ones({2, 2}, DType::f64)), 0);
  });
  return check.result();
}
