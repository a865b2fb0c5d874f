#include "braid/models/model.h"

#include "braid/models/folders/lora.h"
#include "braid/models/model_spec.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

void Model::set_dropout(double p) {
  check(p == 0, ErrorKind::setting, [&] {
    return str("a model of type ", spec()->model_type(), " has no dropout by model.dropout: expected 0, found ",
               std::to_string(p));
  });
}

void Model::set_z_loss(double z) {
  check(z == 0, ErrorKind::setting, [&] {
    return str("a model of type ", spec()->model_type(), " has no z-loss: expected 0 for train.z_loss, found ",
               detail::shortest(z));
  });
}

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
