// The command `braid train`.
#pragma once
#include "apps/cli/command.h"

namespace braid::apps {

// Trains, plans or prints the settings, by the flags. Returns the exit code; throws Error.
int run_train(const Arguments& arguments);

}  // namespace braid::apps
