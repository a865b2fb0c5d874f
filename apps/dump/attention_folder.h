// braid dump of a folder that holds an attention alone.
#pragma once
#include <filesystem>

#include "apps/cli/command.h"
#include "braid/models/inspect/attention_case.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::apps {

// inputs.safetensors of the folder -> output, with --grad the gradients of the inputs, with --attention the maps.
// Error(input) names a tensor that is missing or does not have the shape that config.json describes.
io::NamedTensors dump_attention(const Arguments& arguments, const std::filesystem::path& folder,
                                const models::AttentionFolder& attention, DType dtype, Device device);

}  // namespace braid::apps
