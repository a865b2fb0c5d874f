#include "braid/models/batch.h"

#include "braid/models/image_model.h"
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
  for (const nn::NamedTensor& t : tensors_)
    out.tensors_.push_back({t.name, t.name == kPositions || t.name == kSampleKeys ? t.value : t.value.to(device)});
  return out;
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
