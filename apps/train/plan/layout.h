// Which rank holds what: the shards of every parameter, and the samples and positions of a step.
#pragma once
#include <string>

#include "braid/distributed/comm/counting_mesh.h"
#include "braid/models/model_spec.h"

namespace braid::apps {

// Lines of text: the share of each rank in a batch, then a row for every parameter; layers whose parameters are sharded
// alike share a row ("layers.*."). Entries of an axis are counted from 0, ends are included: "0-127 256-383".
std::string layout_table(const models::ModelSpec& model, const dist::MeshShape& mesh, int64_t sequence_length);

}  // namespace braid::apps
