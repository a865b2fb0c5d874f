// Runs a history and says whether its run ended as the undisturbed one.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "tests/simulation/random.h"
#include "tests/simulation/session.h"

namespace braid::simulation {

struct Count {
  uint64_t sessions = 0, harmed = 0;
  std::map<int, uint64_t> codes;
};

class Judge {
 public:
  explicit Judge(Folders folders) : folders_(std::move(folders)) {}

  // "": every session ended with a code that its disturbance explains, nothing that was saved was lost, and the run's
  // weights, moments and log are those of the undisturbed run. Else what was wrong.
  std::string judge(const History& history, bool trace = false);
  // The smallest history, made by leaving out from this one, that goes wrong too.
  History shrink(History history);

  // An undisturbed session: that of seed 0 until its disturbance.
  const SessionResult& undisturbed(const History& history) { return reference(history).session; }
  const std::array<Count, kHarms>& counts() const { return counts_; }

 private:
  struct Reference {
    SessionResult session;
    std::map<std::string, std::string> files;
  };
  const Reference& reference(const History& history);
  std::map<std::string, std::string> result_of(const History& history) const;
  void clear() const;
  // Flips a bit of a file of a checkpoint; the number of its checkpoints, 0: there is none.
  int rot(Random& random, bool trace) const;

  Folders folders_;
  std::map<std::string, Reference> references_;  // by settings
  std::array<Count, kHarms> counts_;
};

}  // namespace braid::simulation
