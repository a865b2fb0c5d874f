#include "braid/models/batch.h"

#include "braid/tensor/base/strings.h"

namespace braid::models {

bool Batch::has(const std::string& name) const {
  for (const nn::NamedTensor& t : tensors_)
    if (t.name == name) return true;
  return false;
}

Tensor Batch::at(const std::string& name) const {
  for (const nn::NamedTensor& t : tensors_)
    if (t.name == name) return t.value;
  std::vector<std::string> names;
  for (const nn::NamedTensor& t : tensors_) names.push_back(t.name);
  fail(ErrorKind::input, "the batch has no tensor '" + name + "': expected by this model, found " +
                             (names.empty() ? "an empty batch" : detail::join(names, ", ")));
}

int64_t Batch::samples() const { return tensors_.empty() ? 0 : tensors_[0].value.dim(0); }

Batch Batch::slice(int64_t begin, int64_t end) const {
  Batch out;
  for (const nn::NamedTensor& t : tensors_) out.tensors_.push_back({t.name, t.value.sliced(0, begin, end).clone()});
  return out;
}

Batch Batch::to(Device device) const {
  Batch out;
  for (const nn::NamedTensor& t : tensors_) {
    const bool stays = t.name == kPositions || t.name == kSourceLengths || t.name == kSampleKeys || t.name == kSources;
    out.tensors_.push_back({t.name, stays ? t.value : t.value.to(device)});
  }
  return out;
}

nn::SampleRandom sample_random(const Batch& batch) {
  std::vector<RandomKey> keys;
  if (batch.has(kSampleKeys))
    for (const int64_t key : batch.at(kSampleKeys).to_vector<int64_t>())
      keys.push_back({static_cast<uint64_t>(key), 0});
  return nn::SampleRandom(std::move(keys));
}

void check_keys_and_sources(const Batch& batch) {
  for (const nn::NamedTensor& t : batch.tensors()) {
    if (t.name != kSampleKeys && t.name != kSources) continue;
    const int64_t B = batch.samples();
    check(t.value.rank() == 1 && t.value.dim(0) == B && t.value.dtype() == DType::i64, ErrorKind::input,
          [&] { return str(t.name, " must be i64 (", B, "), found ", t.value.dtype(), " ", t.value.shape()); });
  }
}

Batch text_batch(const Tensor& input_ids, const Tensor& targets, const Tensor& positions) {
  for (auto& [name, value] : {std::pair{"targets", &targets}, {kPositions, &positions}}) {
    check(!*value || value->shape() == input_ids.shape(), "text_batch", [&, name = name, value = value] {
      return str(name, " ", value->shape(), " do not match input_ids ", input_ids.shape());
    });
  }
  if (!positions) return {{"input_ids", input_ids}, {"targets", targets}};
  return {{"input_ids", input_ids}, {"targets", targets}, {kPositions, positions}};
}

}  // namespace braid::models
