// DCMHA: the checks, and the only choice between its paths.
#include "autograd/dcmha.h"

#include <algorithm>

#include "autograd/checkpoint.h"
#include "autograd/ops.h"

namespace braid {

namespace {

void check_shape(const char* what, const Tensor& x, const Shape& want, const Tensor& q) {
  if (!x) return;
  check(x.shape() == want, "dcmha",
        [&] { return std::string(what) + " must have shape " + str(want) + ", got " + str(x.shape()); });
  check(x.dtype() == q.dtype() && x.device() == q.device(), "dcmha", [&] {
    return std::string(what) + " is " + str(x.dtype()) + " on " + str(x.device()) + ", the queries are " +
           str(q.dtype()) + " on " + str(q.device());
  });
}

void check_compose(const std::string& stage, const Compose& c, const Tensor& q, int64_t S, int64_t G) {
  int64_t B = q.dim(0), T = q.dim(1), M = q.dim(2) / G;
  auto named = [&](const char* member) { return stage + "." + member; };
  check(bool(c.q_down) == bool(c.q_up), "dcmha", [&] { return stage + ".q_down and q_up must be given together"; });
  check(bool(c.k_down) == bool(c.k_up), "dcmha", [&] { return stage + ".k_down and k_up must be given together"; });
  int64_t q_rank = c.q_down && c.q_down.rank() == 5 ? c.q_down.dim(3) : 0;
  int64_t k_rank = c.k_down && c.k_down.rank() == 5 ? c.k_down.dim(3) : 0;
  check_shape(named("base").c_str(), c.base, {G, M, M}, q);
  check_shape(named("q_down").c_str(), c.q_down, {B, T, G, q_rank, M}, q);
  check_shape(named("q_up").c_str(), c.q_up, {B, T, G, q_rank, M}, q);
  check_shape(named("k_down").c_str(), c.k_down, {B, S, G, k_rank, M}, q);
  check_shape(named("k_up").c_str(), c.k_up, {B, S, G, k_rank, M}, q);
  check_shape(named("q_gate").c_str(), c.q_gate, {B, T, G, M}, q);
  check_shape(named("k_gate").c_str(), c.k_gate, {B, S, G, M}, q);
}

Tensor rows(const Tensor& x, int64_t begin, int64_t end) { return x ? slice(x, 1, begin, end) : x; }

Compose rows(const Compose& c, int64_t t0, int64_t t1, int64_t s0, int64_t s1) {
  return {c.base,
          rows(c.q_down, t0, t1),
          rows(c.q_up, t0, t1),
          rows(c.k_down, s0, s1),
          rows(c.k_up, s0, s1),
          rows(c.q_gate, t0, t1),
          rows(c.k_gate, s0, s1)};
}

// Chunks of query rows against the keys that some row of the chunk can see. Each chunk is recomputed in backward, so
// what stays alive between forward and backward is only the inputs.
Tensor chunked(const Tensor& q, const Tensor& k, const Tensor& v, const Compose& pre, const Compose& post,
               const DcmhaOptions& options) {
  int64_t T = q.dim(1), S = k.dim(1);
  std::vector<Tensor> outputs;
  for (int64_t t0 = 0; t0 < T; t0 += options.chunk) {
    int64_t t1 = std::min(T, t0 + options.chunk);
    int64_t s1 = options.visible.end(t1 - 1, S), s0 = std::min(options.visible.first(t0), s1);
    DcmhaOptions part = options;
    part.visible.offset += t0 - s0;
    Compose a = rows(pre, t0, t1, s0, s1), b = rows(post, t0, t1, s0, s1);
    std::vector<Tensor> inputs{rows(q, t0, t1), rows(k, s0, s1), rows(v, s0, s1)};
    for (const Compose* c : {&a, &b}) {
      for (const Tensor* x : {&c->base, &c->q_down, &c->q_up, &c->k_down, &c->k_up, &c->q_gate, &c->k_gate})
        inputs.push_back(*x);
    }
    auto run = [part](const std::vector<Tensor>& in) {
      Compose first{in[3], in[4], in[5], in[6], in[7], in[8], in[9]};
      Compose second{in[10], in[11], in[12], in[13], in[14], in[15], in[16]};
      return dcmha_reference(in[0], in[1], in[2], first, second, part);
    };
    outputs.push_back(checkpoint(run, inputs));
  }
  return concat(outputs, 1);
}

}  // namespace

Tensor dcmha(const Tensor& q, const Tensor& k, const Tensor& v, const Compose& pre, const Compose& post,
             const DcmhaOptions& options) {
  check(q.rank() == 4 && k.rank() == 4, "dcmha", [&] {
    return "queries must be (B, T, N, d) and keys (B, S, Nkv, d), got " + str(q.shape()) + " and " + str(k.shape());
  });
  int64_t N = q.dim(2), G = options.groups;
  check_shape("keys", k, {q.dim(0), k.dim(1), k.dim(2), q.dim(3)}, q);
  check_shape("values", v, k.shape(), q);
  check(G >= 1 && N % G == 0, "dcmha",
        [&] { return std::to_string(N) + " heads do not divide into " + std::to_string(G) + " groups"; });
  check(k.dim(2) >= 1 && N % k.dim(2) == 0, "dcmha", [&] {
    return std::to_string(N) + " query heads do not divide over " + std::to_string(k.dim(2)) + " key/value heads";
  });
  check(options.visible.window >= 0, "dcmha",
        [&] { return "the window must be positive, or 0 for none; got " + std::to_string(options.visible.window); });
  check(options.chunk >= 1, "dcmha",
        [&] { return "the chunk must be positive, got " + std::to_string(options.chunk); });
  check_compose("pre", pre, q, k.dim(1), G);
  check_compose("post", post, q, k.dim(1), G);

  switch (options.path) {
    case Path::fused:
      fail("dcmha", "no fused kernel on " + str(q.device()) + "; use Path::automatic");
    case Path::reference:
      return dcmha_reference(q, k, v, pre, post, options);
    case Path::chunked:
      return chunked(q, k, v, pre, post, options);
    case Path::automatic:
      break;
  }
  bool small = q.dim(1) <= options.chunk || q.numel() == 0;
  return small ? dcmha_reference(q, k, v, pre, post, options) : chunked(q, k, v, pre, post, options);
}

}  // namespace braid
