// DCMHA: the checks, and the only choice between its paths.
#include "braid/autograd/attention.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

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

// The seventeen inputs of the op: q, k, v, then of pre and of post base, q_down, q_up, k_down, k_up, q_gate, k_gate.
using Inputs = std::vector<Tensor>;
enum class Along : uint8_t { neither, queries, keys };  // what axis 1 of an input runs over
constexpr Along kAlong[17] = {
    Along::queries, Along::keys,    Along::keys,                                                            //
    Along::neither, Along::queries, Along::queries, Along::keys, Along::keys, Along::queries, Along::keys,  // pre
    Along::neither, Along::queries, Along::queries, Along::keys, Along::keys, Along::queries, Along::keys,  // post
};

Tensor record_all(const Tensor& y, const Inputs& x, Backward backward_pass) {
  return record(
      "dcmha", y,
      {x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13], x[14], x[15], x[16]},
      std::move(backward_pass));
}

Tensor run_reference(const Inputs& x, const DcmhaOptions& options) {
  return dcmha_reference(x[0], x[1], x[2], {x[3], x[4], x[5], x[6], x[7], x[8], x[9]},
                         {x[10], x[11], x[12], x[13], x[14], x[15], x[16]}, options);
}

// Some samples, some of their query rows, and the keys that those rows can see.
struct Chunk {
  int64_t b0, b1, t0, t1, s0, s1;

  // The chunk's part of input i, or of its gradient, as a raw view; static terms belong to every chunk.
  Tensor part(const Tensor& x, size_t i) const {
    if (!x || kAlong[i] == Along::neither) return x;
    bool queries = kAlong[i] == Along::queries;
    return x.sliced(0, b0, b1).sliced(1, queries ? t0 : s0, queries ? t1 : s1);
  }
  DcmhaOptions options(DcmhaOptions whole) const {
    whole.visible.offset += t0 - s0;
    return whole;
  }
};

std::vector<Chunk> chunks_of(const Tensor& q, const Tensor& k, const DcmhaOptions& options) {
  int64_t B = q.dim(0), T = q.dim(1), S = k.dim(1);
  int64_t keys = options.visible.causal && options.visible.window > 0 ? std::min(S, options.visible.window) : S;
  int64_t row_bytes = std::max<int64_t>(1, q.dim(2) * keys * size_of(q.dtype()));
  int64_t rows = options.chunk > 0 ? options.chunk : std::clamp<int64_t>(kDcmhaChunkBytes / row_bytes, 16, 128);
  int64_t samples = std::clamp<int64_t>(kDcmhaChunkBytes / (row_bytes * std::min(rows, T)), 1, B);
  std::vector<Chunk> chunks;
  for (int64_t b0 = 0; b0 < B; b0 += samples) {
    for (int64_t t0 = 0; t0 < T; t0 += rows) {
      int64_t t1 = std::min(T, t0 + rows), s1 = options.visible.end(t1 - 1, S);
      chunks.push_back({b0, std::min(B, b0 + samples), t0, t1, std::min(options.visible.first(t0), s1), s1});
    }
  }
  return chunks;
}

// The reference chunk by chunk. Backward recomputes each chunk, so nothing but the inputs stays alive in between, and
// adds the chunk's gradients to their places in the whole ones.
Tensor chunked(const Inputs& x, const DcmhaOptions& options) {
  std::vector<Chunk> chunks = chunks_of(x[0], x[1], options);
  Tensor y = empty_like(x[0]);
  std::vector<bool> wanted;
  Inputs plain;  // without history, so that the closure keeps no graph alive
  for (const Tensor& input : x) {
    wanted.push_back(requires_grad(input));
    plain.push_back(input ? input.detach() : input);
  }
  for (const Chunk& chunk : chunks) {
    Inputs parts;
    for (size_t i = 0; i < plain.size(); ++i) parts.push_back(chunk.part(plain[i], i));
    chunk.part(y, 0).copy_(run_reference(parts, chunk.options(options)));
  }
  auto backward_pass = [plain, wanted, chunks, options](const Tensor& dy) -> Grads {
    Grads grads(plain.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      if (wanted[i]) grads[i] = zeros_like(plain[i]);
    }
    for (const Chunk& chunk : chunks) {
      Inputs leaves;
      for (size_t i = 0; i < plain.size(); ++i) {
        leaves.push_back(plain[i] ? chunk.part(plain[i], i).detach() : Tensor());
        if (wanted[i]) require_grad(leaves.back());
      }
      EnableGrad on;
      backward(run_reference(leaves, chunk.options(options)), chunk.part(dy, 0).contiguous());
      for (size_t i = 0; i < plain.size(); ++i) {
        if (wanted[i] && grad(leaves[i])) chunk.part(grads[i], i).add_(grad(leaves[i]));
      }
    }
    return grads;
  };
  return record_all(y, x, backward_pass);
}

Compose stage_of(const Inputs& x, size_t first) {
  return {x[first], x[first + 1], x[first + 2], x[first + 3], x[first + 4], x[first + 5], x[first + 6]};
}

DcmhaInputs arguments(const Inputs& x, const DcmhaOptions& options) {
  double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(x[0].dim(3)));
  return {x[0], x[1], x[2], stage_of(x, 3), stage_of(x, 10), options.groups, options.visible, scale, options.workspace};
}

// The device's kernels. Backward needs the inputs, the row statistics and, without a compose after softmax, y. For
// kernels that take no 16-bit inputs these are converted for each pass, so that what stays alive is 16 bits wide.
Tensor fused(const Inputs& x, const DcmhaOptions& options) {
  bool record_it = false;
  std::vector<bool> wanted;
  Inputs plain;  // without history, the last axis contiguous
  for (const Tensor& input : x) {
    wanted.push_back(requires_grad(input));
    record_it = record_it || recording({input});
    bool strided = input && input.dim(-1) > 1 && input.strides()[input.rank() - 1] != 1;
    plain.push_back(!input ? input : strided ? input.contiguous() : input.detach());
  }
  const Backend& device = backend(x[0].device());
  const DType dtype = x[0].dtype(), statistics = accumulate_type(dtype);
  const DType inside = device.attention.takes_16_bits ? dtype : statistics;
  auto converted = [](Inputs in, DType to) {
    for (Tensor& t : in) {
      if (t) t = t.to(to);
    }
    return in;
  };
  Tensor y = empty(x[0].shape(), inside, x[0].device()), lse;
  if (record_it) lse = empty({x[0].dim(0), x[0].dim(1), x[0].dim(2)}, statistics, x[0].device());
  device.attention.forward(arguments(converted(plain, inside), options), y, lse);
  y = y.to(dtype);
  auto backward_pass = [=, &device](const Tensor& dy) -> Grads {
    Inputs in = converted(plain, inside);
    Grads g(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
      if (wanted[i]) g[i] = empty_like(in[i]);
    }
    DcmhaGradients gradients{g[0], g[1], g[2], stage_of(g, 3), stage_of(g, 10)};
    device.attention.backward(arguments(in, options), y.to(inside), lse, dy.to(inside).contiguous(), gradients);
    return converted(g, dtype);
  };
  return record_all(y, x, backward_pass);
}

// "", or why the device has no kernel for these inputs.
std::string refusal(const Inputs& x, const DcmhaOptions& options) {
  const Backend& device = backend(x[0].device());
  if (!device.attention.forward) return "there is no fused kernel on " + str(x[0].device());
  return device.attention.unsupported_reason ? device.attention.unsupported_reason(arguments(x, options)) : "";
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
  check(options.chunk >= 0, "dcmha",
        [&] { return "the chunk must be positive, or 0 for automatic; got " + std::to_string(options.chunk); });
  check_compose("pre", pre, q, k.dim(1), G);
  check_compose("post", post, q, k.dim(1), G);

  check(options.workspace >= 0, "dcmha",
        [&] { return "the workspace must be positive, or 0 for automatic; got " + std::to_string(options.workspace); });

  Inputs inputs{q,          k,           v,          pre.base,    pre.q_down, pre.q_up,
                pre.k_down, pre.k_up,    pre.q_gate, pre.k_gate,  post.base,  post.q_down,
                post.q_up,  post.k_down, post.k_up,  post.q_gate, post.k_gate};
  Path path = options.path;
  if (path == Path::fused || path == Path::automatic) {
    const std::string reason = refusal(inputs, options);
    check(reason.empty() || path == Path::automatic, "dcmha",
          [&] { return reason + "; or use Path::automatic, which then takes the composed way"; });
    path = reason.empty() ? Path::fused : Path::chunked;
  }
  if (q.numel() == 0 || k.numel() == 0) path = Path::reference;
  if (path == Path::reference) return dcmha_reference(q, k, v, pre, post, options);
  return path == Path::chunked ? chunked(inputs, options) : fused(inputs, options);
}

}  // namespace braid
