// braid prepare --images: images with their classes in, a data folder out.
#pragma once
#include "apps/cli/command.h"

namespace braid::apps {

int prepare_images(const Arguments& arguments);
std::vector<Flag> image_flags();

}  // namespace braid::apps
