#include "braid/nn/sample_random.h"

#include "braid/autograd/ops.h"
#include "braid/tensor/parallel.h"

namespace braid::nn {

SampleRandom SampleRandom::child(uint64_t index) const {
  SampleRandom part(*this);
  for (RandomKey& key : part.keys_) key = braid::child(key, index);
  return part;
}

SampleRandom SampleRandom::child(const char* name) const {
  SampleRandom part(*this);
  for (RandomKey& key : part.keys_) key = braid::child(key, name);
  return part;
}

SampleRandom SampleRandom::of_rows(std::vector<int64_t> rows) const {
  SampleRandom part(*this);
  part.rows_ = std::make_shared<const std::vector<int64_t>>(std::move(rows));
  return part;
}

Tensor SampleRandom::dropout(const Tensor& x, double p) const {
  const std::vector<int64_t> rows = rows_ ? *rows_ : std::vector<int64_t>{0};
  return omitted(x, p, rows, x.numel() == 0 ? 0 : x.numel() / (x.dim(0) * std::ssize(rows)));
}

Tensor SampleRandom::drop_path(const Tensor& x, double p) const { return omitted(x, p, {0}, 1); }

Tensor SampleRandom::omitted(const Tensor& x, double p, const std::vector<int64_t>& rows, int64_t parts) const {
  check(p >= 0 && p < 1, "dropout", [&] { return "the probability must lie in [0, 1), got " + std::to_string(p); });
  if (keys_.empty() || p == 0 || x.numel() == 0) return x;
  const int64_t B = x.dim(0), R = std::ssize(rows);
  check(std::ssize(keys_) == B, "dropout",
        [&] { return str(keys_.size(), " keys do not match a batch of shape ", x.shape()); });
  check(R == 1 || (x.rank() > 1 && x.dim(1) == R), "dropout",
        [&] { return str(R, " rows do not match a batch of shape ", x.shape()); });
  Tensor factors = empty({B, R * parts});
  float* out = factors.mutable_data<float>();
  const auto kept = static_cast<float>(1 / (1 - p));
  parallel_for(B * R, 1 + 4096 / parts, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const RandomKey key = keys_[static_cast<size_t>(i / R)];
      const int64_t first = rows[static_cast<size_t>(i % R)] * parts, last = first + parts;  // of the sample's elements
      float* row = out + i * parts;
      for (int64_t e = first; e < last;) {
        const Philox4 bits = philox(static_cast<uint64_t>(e / 4), key);
        for (int64_t j = e % 4; j < 4 && e < last; ++j, ++e) row[e - first] = unit(bits.v[j]) < p ? 0.0F : kept;
      }
    }
  });
  Shape shape = x.shape();
  if (R * parts == 1)
    for (int a = 1; a < shape.rank(); ++a) shape[a] = 1;
  return mul(x, factors.reshaped(shape).to(x.dtype()).to(x.device()));
}

}  // namespace braid::nn
