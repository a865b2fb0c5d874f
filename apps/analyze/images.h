// braid analyze MODEL --pictures DATA: attention over images before and after Compose, and mistakes, as a page.
#pragma once
#include "apps/cli/command.h"

namespace braid::apps::analyze {

// Writes DIR/index.html and DIR/figures/*.csv. Returns the exit code.
int analyze_images(const Arguments& arguments);
std::vector<Flag> image_flags();

}  // namespace braid::apps::analyze
