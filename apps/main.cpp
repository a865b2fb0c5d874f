#include "braid/program.h"

int main(int argc, char** argv) { return braid::braid_main(argc, argv); }
