// braid dump of a model that reads images.
#pragma once
#include <set>

#include "apps/cli/command.h"
#include "braid/models/image_model.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::apps {

// Results for pixel_values (B, C, H, W) and, where it has them, labels (B) of the file of --ids; `maps` are the
// layers of --attention. The names are those of names.md.
io::NamedTensors dump_images(const Arguments& arguments, models::ImageModel& model, Device device,
                             const std::set<int64_t>& maps);

}  // namespace braid::apps
