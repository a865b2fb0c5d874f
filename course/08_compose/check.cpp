// Checks of exercise 8: each term, and all of DCMHA, beside Braid's definition in f64.
#include EXERCISE

using namespace braid;
using exercise::Mixing;

namespace {

constexpr int64_t B = 2, T = 4, N = 3, R = 2, d = 5;

Tensor random(const Shape& shape, uint64_t seed) { return randn(shape, {.seed = seed}, DType::f64); }

Mixing every_term(uint64_t seed) {
  return {random({N, N}, seed),           random({B, T, R, N}, seed + 1), random({B, T, R, N}, seed + 2),
          random({B, T, R, N}, seed + 3), random({B, T, R, N}, seed + 4), random({B, T, N}, seed + 5),
          random({B, T, N}, seed + 6)};
}

// The same for Braid, which counts groups of heads: one.
HeadMixing with_group(const Mixing& c) {
  const auto at = [](const Tensor& x, int axis) { return x ? unsqueeze(x, axis) : x; };
  return {at(c.base, 0), at(c.q_down, 2), at(c.q_up, 2),  at(c.k_down, 2),
          at(c.k_up, 2), at(c.q_gate, 2), at(c.k_gate, 2)};
}

// Compose(a) by Braid: the scores of queries a[b,n,i] and keys that are unit vectors are a itself.
Tensor composed(const Tensor& a, const Mixing& mixing) {
  const Tensor units = expand(reshape(eye(T, DType::f64), {1, T, 1, T}), {B, T, N, T});
  DcmhaOptions options;
  options.mask.causal = false, options.scale = 1;
  return attention_maps(transpose(a, 1, 2), contiguous(units), with_group(mixing), {}, options).scores_composed;
}

// The members of both, in one order.
std::vector<Tensor> list(const std::vector<Tensor>& qkv, const Mixing& pre, const Mixing& post) {
  std::vector<Tensor> all = qkv;
  for (const Mixing& c : {pre, post})
    for (const Tensor& x : {c.base, c.q_down, c.q_up, c.k_down, c.k_up, c.q_gate, c.k_gate}) all.push_back(x);
  return all;
}
Mixing mixing_at(const std::vector<Tensor>& x, size_t i) {
  return {x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5], x[i + 6]};
}
Tensor own(const std::vector<Tensor>& x) {
  return exercise::composed_attention(x[0], x[1], x[2], mixing_at(x, 3), mixing_at(x, 10));
}

}  // namespace

int main() {
  course::Checks check;
  const Tensor a = random({B, N, T, T}, 1);
  const Mixing all = every_term(10);
  check("static_term: a matrix over heads", "w[m,n]: the row m is the head read, the column n the head written", [&] {
    const Tensor two = from_values({1, 10}, {1, 2, 1, 1}, DType::f64);  // heads 0 and 1 of one pair: 1 and 10
    course::expect_close("static_term of heads (1, 10) by ((0, 2), (0, 0))",
                         exercise::static_term(two, from_values({0, 2, 0, 0}, {2, 2}, DType::f64)),
                         from_values({0, 2}, {1, 2, 1, 1}, DType::f64), 1e-12);
    course::expect_close("static_term", exercise::static_term(a, all.base), composed(a, {.base = all.base}) - a, 1e-12);
  });
  check("query_term: low rank, from the query's token", "down first: R numbers per pair; then up", [&] {
    course::expect_close("query_term", exercise::query_term(a, all.q_down, all.q_up),
                         composed(a, {.q_down = all.q_down, .q_up = all.q_up}) - a, 1e-12);
  });
  check("key_term: low rank, from the key's token", "the factors stand at the position of the last axis of a", [&] {
    course::expect_close("key_term", exercise::key_term(a, all.k_down, all.k_up),
                         composed(a, {.k_down = all.k_down, .k_up = all.k_up}) - a, 1e-12);
  });
  check("gate_terms: a factor for each head", "(B, T, N) must become (B, N, T, 1), and the key's (B, N, 1, S)", [&] {
    course::expect_close("gate_terms", exercise::gate_terms(a, all.q_gate, all.k_gate),
                         composed(a, {.q_gate = all.q_gate, .k_gate = all.k_gate}) - a, 1e-12);
  });
  check("factors: normalised, as they are, tanh",
        "down: the first R rows, divided by sqrt(mean + eps), the mean over heads, the last axis", [] {
          const Tensor w = random({B, T, 2 * R, N}, 30), gate = random({B, T, N}, 31);
          const exercise::Factors found = exercise::factors(w, gate, 1e-6);
          const ComposeFactors right =
              compose_factors(reshape(w, {1, 1, B, T, 2 * R, N}), reshape(gate, {B, T, 1, 1, N}), 1e-6)[0];
          course::expect_close("down", found.down, squeeze(right.down, 2), 1e-12);
          course::hint("up: the last R rows, as they are");
          course::expect_close("up", found.up, squeeze(right.up, 2), 1e-12);
          course::hint("the gate goes through tanh");
          course::expect_close("gate", found.gate, squeeze(right.gate, 2), 1e-12);
        });
  check("compose: a and every term", "an empty handle is false: its term is not there, and a stays", [&] {
    course::expect_close("compose without a term", exercise::compose(a, {}), a, 0);
    course::hint("every term reads a itself, not the sum so far");
    course::expect_close("compose", exercise::compose(a, all), composed(a, all), 1e-12);
    course::hint("each term by itself may be there: ask for each of them");
    const std::pair<const char*, Mixing> terms[] = {{"the static term", {.base = all.base}},
                                                    {"the query's term", {.q_down = all.q_down, .q_up = all.q_up}},
                                                    {"the key's term", {.k_down = all.k_down, .k_up = all.k_up}},
                                                    {"the gates", {.q_gate = all.q_gate, .k_gate = all.k_gate}}};
    for (const auto& [name, term] : terms)
      course::expect_close(course::words("compose with ", name, " alone"), exercise::compose(a, term),
                           composed(a, term), 1e-12);
  });
  check("pair_matrix: what a pair of tokens does", "the identity, base, downᵀ up of both tokens, the gates", [&] {
    const Tensor row = unsqueeze(index(a, {1, Slice{}, 3, 2}), 0);  // (1, N), heads of query 3 and key 2
    course::expect_close("heads of sample 1, query 3, key 2 times pair_matrix",
                         matmul(row, exercise::pair_matrix(all, N, 1, 3, 2)),
                         unsqueeze(index(composed(a, all), {1, Slice{}, 3, 2}), 0), 1e-12);
    course::hint("an empty handle is false: its term is not there");
    course::expect_close("pair_matrix without a term", exercise::pair_matrix({}, N, 1, 3, 2), eye(N, DType::f64), 0);
  });
  check("composed_attention: values",
        "without a term it is plain attention: scale, mask, softmax along the keys, times v", [&] {
          const std::vector<Tensor> x =
              list({random({B, T, N, d}, 40), random({B, T, N, d}, 41), random({B, T, N, d}, 42)}, all, every_term(20));
          course::expect_close("composed_attention without a term",
                               exercise::composed_attention(x[0], x[1], x[2], {}, {}),
                               scaled_dot_product_attention(x[0], x[1], x[2]), 1e-12);
          const Mixing pre = mixing_at(x, 3), post = mixing_at(x, 10);
          course::hint("first compose, then mask: -infinity times 0 is not a number");
          course::expect_close("composed_attention, pre alone", exercise::composed_attention(x[0], x[1], x[2], pre, {}),
                               dcmha(x[0], x[1], x[2], with_group(pre), {}), 1e-12);
          course::hint("post mixes the probabilities, and what it gives is not normalised again");
          course::expect_close("composed_attention", own(x), dcmha(x[0], x[1], x[2], with_group(pre), with_group(post)),
                               1e-11);
        });
  check("composed_attention: derivatives", "use ops on the tensors you got, not on detached or copied numbers", [&] {
    std::vector<Tensor> x =
        list({random({B, T, N, d}, 40), random({B, T, N, d}, 41), random({B, T, N, d}, 42)}, all, every_term(20));
    for (Tensor& each : x) require_grad(each);
    const char* names[] = {"q", "k", "v", "base", "q_down", "q_up", "k_down", "k_up", "q_gate", "k_gate"};
    const Tensor right = dcmha(x[0], x[1], x[2], with_group(mixing_at(x, 3)), with_group(mixing_at(x, 10)));
    const GradOptions options{.dy = random({B, T, N, d}, 50), .allow_unused = true};
    const std::vector<Tensor> found = grad(own(x), x, options), expected = grad(right, x, options);
    for (size_t i = 0; i < x.size(); ++i)
      course::expect_close(course::words("derivative by ",
                                         i < 3    ? ""
                                         : i < 10 ? "pre."
                                                  : "post.",
                                         names[i < 10 ? i : i - 7]),
                           found[i], expected[i], 1e-10);
  });
  check("composed_attention: finite differences agree", "is there a step outside of Braid's ops?", [] {
    const auto tokens = [](uint64_t seed) { return random({1, 2, 1, 2}, seed); };
    const auto small = [&](uint64_t seed) {
      return Mixing{random({2, 2}, seed),       tokens(seed + 1), tokens(seed + 2),
                    tokens(seed + 3),           tokens(seed + 4), random({1, 2, 2}, seed + 5),
                    random({1, 2, 2}, seed + 6)};
    };
    const auto of_heads = [](uint64_t seed) { return random({1, 2, 2, 2}, seed); };
    const GradcheckResult result =
        gradcheck(own, list({of_heads(60), of_heads(61), of_heads(62)}, small(70), small(80)));
    course::expect(result.error < 1e-6, "the derivative differs from finite differences: ", result.where);
  });
  return check.result();
}
