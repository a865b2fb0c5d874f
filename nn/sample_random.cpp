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

Tensor SampleRandom::dropout(const Tensor& x, double p) const {
  return omitted(x, p, x.dim(0) == 0 ? 0 : x.numel() / x.dim(0));
}

Tensor SampleRandom::drop_path(const Tensor& x, double p) const { return omitted(x, p, 1); }

// x times 0 or 1 / (1-p), chosen for each of `elements` parts of a sample.
Tensor SampleRandom::omitted(const Tensor& x, double p, int64_t elements) const {
  check(p >= 0 && p < 1, "dropout", [&] { return "the probability must lie in [0, 1), got " + std::to_string(p); });
  if (keys_.empty() || p == 0 || x.numel() == 0) return x;
  const int64_t B = x.dim(0);
  check(std::ssize(keys_) == B, "dropout",
        [&] { return str(keys_.size(), " keys do not match a batch of shape ", x.shape()); });
  Tensor factors = empty({B, elements});
  float* out = factors.mutable_data<float>();
  const auto kept = static_cast<float>(1 / (1 - p));
  parallel_for(B, 1 + 4096 / elements, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const RandomKey key = keys_[static_cast<size_t>(b)];
      float* row = out + b * elements;
      for (int64_t i = 0; i < elements; i += 4) {
        const Philox4 bits = philox(static_cast<uint64_t>(i / 4), key);
        for (int64_t j = i; j < std::min(i + 4, elements); ++j) row[j] = unit(bits.v[j - i]) < p ? 0.0F : kept;
      }
    }
  });
  Shape shape = x.shape();
  if (elements == 1)
    for (int a = 1; a < shape.rank(); ++a) shape[a] = 1;
  return mul(x, factors.reshaped(shape).to(x.dtype()).to(x.device()));
}

}  // namespace braid::nn
