// The sub-commands of `braid`, one file each.
#pragma once
#include "apps/common/command.h"

namespace braid::app {

Command bench_command();
Command convert_command();
Command dump_command();
Command generate_command();
Command info_command();
Command plot_command();
Command prepare_command();
Command train_command();

}  // namespace braid::app
