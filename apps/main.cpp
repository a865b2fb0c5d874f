#include "apps/commands.h"

int main(int argc, char** argv) {
  using namespace braid::app;
  return run_program({prepare_command(), train_command(), generate_command(), info_command(), plot_command(),
                      dump_command(), bench_command()},
                     {argv + (argc > 0), argv + argc});
}
