// The program `braid` as a function, of the library braid::program: a program of one's own registers families
// (models/registry.h), attention variants (nn/attention/variant.h), connections over depth (nn/transformer/depth.h) or
// optimizers (nn/optim/registry.h), and then has train, study, analyze, serve and every other command for them.
#pragma once

namespace braid {

// Runs the command of the arguments and returns the exit code, as main() of `braid` does. To be called once, from the
// main thread, before other threads are started: signals are handled by a thread of its own.
int braid_main(int argc, char** argv);

}  // namespace braid
