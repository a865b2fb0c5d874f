#include "braid/models/folders/stored_parameter.h"

#include <cstring>

namespace braid::models {

StoredParameter stored_whole(const std::string& name, const Shape& shape) {
  return {{{name, shape}}, {{0, 0, numel(shape)}}, {}};
}

Tensor join_stored(const StoredParameter& stored, const Shape& shape, const std::vector<Tensor>& tensors) {
  if (stored.whole()) return tensors[0].reshaped(shape);
  Tensor value = empty(shape, tensors[0].dtype());
  const int64_t size = size_of(value.dtype());
  std::vector<Tensor> dense;
  for (const Tensor& t : tensors) dense.push_back(t.contiguous());
  auto* into = static_cast<char*>(value.mutable_raw());
  for (const StoredParameter::Run& run : stored.runs) {
    const auto* from = static_cast<const char*>(dense[run.tensor].raw()) + run.first * size;
    std::memcpy(into, from, static_cast<size_t>(run.count * size));
    into += run.count * size;
  }
  return value;
}

void copy_stored(const StoredParameter& stored, size_t index, const Tensor& value, Tensor& into) {
  const Tensor from = value.detach().to(kCpu).to(into.dtype()).contiguous();
  const int64_t size = size_of(into.dtype());
  const auto* source = static_cast<const char*>(from.raw());
  auto* target = static_cast<char*>(into.mutable_raw());
  for (const StoredParameter::Run& run : stored.runs) {
    const int64_t bytes = run.count * size;
    if (run.tensor == index) std::memcpy(target + run.first * size, source, static_cast<size_t>(bytes));
    source += bytes;
  }
}

std::vector<nn::NamedTensor> split_stored(const StoredParameter& stored, const Tensor& parameter) {
  const Tensor value = parameter.detach().to(kCpu).contiguous();
  if (stored.whole()) return {{stored.tensors[0].name, value.reshaped(stored.tensors[0].shape)}};
  std::vector<nn::NamedTensor> parts;
  for (const StoredParameter::Stored& t : stored.tensors) {
    parts.push_back({t.name, empty(t.shape, value.dtype())});
    copy_stored(stored, parts.size() - 1, value, parts.back().value);
  }
  return parts;
}

}  // namespace braid::models
