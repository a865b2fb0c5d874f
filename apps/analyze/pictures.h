// braid analyze MODEL --pictures DATA: attention over pictures before and after Compose, and mistakes, as a page.
#pragma once
#include "apps/cli/command.h"

namespace braid::apps::analyze {

// Writes DIR/index.html and DIR/figures/*.csv. Returns the exit code.
int analyze_pictures(const Arguments& arguments);
std::vector<Flag> picture_flags();

}  // namespace braid::apps::analyze
