// One session of a run: the program from its start to its end, in a process of its own, in a simulated world.
#pragma once
#include <bitset>
#include <functional>
#include <string>

#include "tests/simulation/history.h"

namespace braid::simulation {

inline constexpr int kKilled = 137, kPowerLost = 200, kHung = 201, kWrong = 202;

struct Folders {
  std::string texts;  // inputs of prepare
  std::string data;   // a prepared data set
  std::string model;  // of serve
  std::string answers;
  std::string root;  // the simulated disk
  std::string run() const { return root + "/run"; }
  std::string prepared() const { return root + "/data"; }
};

// What is known of a session: all but `code` is what it has written itself, in memory that it shares with its parent.
struct SessionResult {
  int code = 0;                  // exit code, 128 + signal, or one of the above
  uint64_t points = 0;           // system calls on the disk and messages
  std::bitset<1 << 15> on_disk;  // which of them are calls
  int64_t resumed = -1;          // the step before its first one; -1: it made none
  int64_t last = -1;             // its last step
  int64_t safe = 0;              // the step of a checkpoint that it had finished
  bool harmed = false;           // the disturbance came in time
  char message[1024] = {};       // of the error that ended it
};

// seed: of the order of ranks and of what a power loss leaves. points: of an undisturbed session, which the moment of
// the disturbance is a share of. trace: prints each point.
SessionResult run_session(const Folders& folders, const History& history, const Disturbance& disturbance, uint64_t seed,
                          uint64_t points, bool trace);

// Trains the model of serve, in this process, which makes tables that each session, forked from it, would make.
void make_model(const Folders& folders);

// What `braid prepare` does, in shards of so many tokens.
void prepare_data(const std::string& texts, const std::string& output, int64_t shard_tokens);

// Runs `body` in a child process and gives its exit code, or 128 + the signal that ended it.
int in_child(const std::function<int()>& body);

}  // namespace braid::simulation
