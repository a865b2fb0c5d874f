// The sub-commands of `braid`, one file each.
#pragma once
#include "apps/cli/command.h"

namespace braid::apps {

Command analyze_command();
Command bench_command();
Command chat_command();
Command convert_command();
Command dump_command();
Command eval_command();
Command generate_command();
Command info_command();
Command inspect_command();
Command plot_command();
Command study_command();
Command prepare_command();
Command serve_command();
Command status_command();
Command tokenize_command();
Command train_command();
Command verify_command();

}  // namespace braid::apps
