#include "braid/models/stored_parameter.h"

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

std::vector<nn::NamedTensor> split_stored(const StoredParameter& stored, const Tensor& parameter) {
  const Tensor value = parameter.detach().to(kCpu).contiguous();
  if (stored.whole()) return {{stored.tensors[0].name, value.reshaped(stored.tensors[0].shape)}};
  std::vector<nn::NamedTensor> parts;
  for (const StoredParameter::Stored& t : stored.tensors) parts.push_back({t.name, empty(t.shape, value.dtype())});
  const int64_t size = size_of(value.dtype());
  const auto* from = static_cast<const char*>(value.raw());
  for (const StoredParameter::Run& run : stored.runs) {
    auto* into = static_cast<char*>(parts[run.tensor].value.mutable_raw()) + run.first * size;
    std::memcpy(into, from, static_cast<size_t>(run.count * size));
    from += run.count * size;
  }
  return parts;
}

}  // namespace braid::models
