// The sub-commands of `braid`, one file each.
#pragma once
#include "apps/common/command.h"

namespace braid::app {

Command plot_command();

}  // namespace braid::app
