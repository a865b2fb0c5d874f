// braid prepare --images: pictures with their classes in, a data folder out.
#pragma once
#include "apps/cli/command.h"

namespace braid::apps {

int prepare_pictures(const Arguments& arguments);
std::vector<Flag> picture_flags();

}  // namespace braid::apps
