#include "braid/program.h"

#include <csignal>

#include "apps/cli/commands.h"
#include "apps/cli/signals.h"

int braid::braid_main(int argc, char** argv) {
  using namespace braid::apps;
  start_signal_thread();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes then ends like a full disk: with a message and code 4
  return run_program(
      {prepare_command(), inspect_command(), train_command(), generate_command(), info_command(), plot_command(),
       status_command(), dump_command(), eval_command(), convert_command(), tokenize_command(), serve_command(),
       chat_command(), analyze_command(), study_command(), verify_command(), bench_command()},
      {argv + (argc > 0), argv + argc});
}
