// A history: a training run, or the preparation of a data set, whose sessions are disturbed, one after the other, and a
// last one that is not. It follows from its seed alone.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::simulation {

enum class Harm : uint8_t {
  none,
  kill,
  power_loss,
  signal,
  kill_rank,
  freeze_rank,
  cut_link,
  disk,
  short_write,
  bit_rot
};
inline constexpr int kHarms = 10;
const char* name(Harm harm);

// What happens to a session, or for bit_rot before it.
struct Disturbance {
  Harm harm = Harm::none;
  double moment = 0;        // share of the points of an undisturbed session, [0, 1)
  int rank = 0, other = 0;  // kill_rank, freeze_rank; the ends of cut_link; -1: the one that calls, and the next
  double seconds = 0;       // of freeze_rank and cut_link; kill_rank: until the job is ended
  int error = 0;            // disk: errno
  std::string call;         // disk: of which calls; "": of any
  int count = 0;            // disk, short_write: so many calls in a row, or those of so many
  std::string text() const;
};

struct History {
  uint64_t seed = 0;
  bool prepare = false;                   // braid prepare, in one process, instead of braid train
  int clients = 0;                        // braid serve with so many of them, and one more
  std::optional<int> alone = {};          // the only request of the only client
  int data = 1, context = 1, tensor = 1;  // the mesh
  bool composed = false;                  // the heads of the model
  int steps = 5, interval = 2, keep = 2;
  bool best = false, async = false;   // checkpoint.best, checkpoint.async
  std::vector<Disturbance> sessions;  // the last, undisturbed one not included
  int ranks() const { return data * context * tensor; }
  std::vector<std::string> settings() const;  // of braid train, without folders
  std::string text() const;
};

History history_of(uint64_t seed);

}  // namespace braid::simulation
