#include "apps/commands.h"

int main(int argc, char** argv) {
  using namespace braid::app;
  return run_program({plot_command()}, {argv + (argc > 0), argv + argc});
}
