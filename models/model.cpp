#include "braid/models/model.h"

#include "braid/models/folders/lora.h"

namespace braid::models {

const dist::Shard* Model::shard_of(const std::string& parameter) const {
  if (!is_lora(parameter)) {
    const auto part = shards_of_parts_.find(parameter);
    return part == shards_of_parts_.end() ? nullptr : &part->second;
  }
  const size_t end = parameter.rfind(".lora_");
  const dist::Shard* shard = shard_of(parameter.substr(0, end) + ".weight");
  const int axis = parameter.ends_with(".lora_A.weight") ? 1 : 0;  // A has the inputs of the weight, B its outputs
  return shard && shard->axis == axis ? shard : nullptr;
}

}  // namespace braid::models
