#include "tests/simulation/history.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "braid/tensor/error.h"
#include "tests/simulation/random.h"

namespace braid::simulation {

namespace {

constexpr std::array<const char*, kHarms> kNames = {"undisturbed", "killed",      "power loss", "signal",
                                                    "rank killed", "rank frozen", "link cut",   "disk error",
                                                    "short write", "bit rot"};

bool needs_ranks(Harm h) { return h == Harm::kill_rank || h == Harm::freeze_rank || h == Harm::cut_link; }
bool needs_run(Harm h) { return h == Harm::bit_rot || h == Harm::signal; }
bool needs_disk(Harm h) { return h == Harm::bit_rot || h == Harm::power_loss; }

Disturbance any_disturbance(Random& random, const History& of) {
  Disturbance d;
  const int ranks = of.ranks();
  const bool alone = ranks == 1;
  do d.harm = static_cast<Harm>(1 + random.below(kHarms - 1));
  while ((alone && needs_ranks(d.harm)) || (of.prepare && needs_run(d.harm)) ||
         (of.clients > 0 && needs_disk(d.harm)) || (of.sessions.empty() && d.harm == Harm::bit_rot));
  d.moment = random.seconds(1);
  d.rank = static_cast<int>(random.below(static_cast<uint64_t>(ranks)));
  if (!alone) d.other = (d.rank + 1 + static_cast<int>(random.below(static_cast<uint64_t>(ranks - 1)))) % ranks;
  d.seconds = random.one_in(2) ? random.seconds(3) : random.seconds(30);
  d.count = random.one_in(3) ? 1'000'000 : static_cast<int>(1 + random.below(4));
  if (of.clients > 0) {
    d.count = static_cast<int>(1 + random.below(6));
    d.error = random.any_of(std::array{EINTR, EMFILE, ECONNRESET, ECONNABORTED});
    d.call = random.any_of(std::array{"", "accept", "recv", "send", "epoll"});
  } else if (d.harm == Harm::disk) {
    d.error = random.any_of(std::array{ENOSPC, EIO, EDQUOT, EINTR, EMFILE});
    if (d.error == EINTR) d.count = static_cast<int>(1 + random.below(4));
    d.call =
        random.any_of(std::array{"", "write", "pwrite", "fsync", "rename", "open", "remove", "fallocate", "pread"});
  }
  return d;
}

}  // namespace

const char* name(Harm harm) { return kNames[static_cast<size_t>(harm)]; }

std::string Disturbance::text() const {
  std::string what = name(harm);
  if (harm != Harm::none && harm != Harm::bit_rot) what += str(" at ", static_cast<int>(moment * 1000), " per mille");
  if (harm == Harm::kill_rank || harm == Harm::freeze_rank) what += str(", rank ", rank);
  if (harm == Harm::cut_link) what += str(", ranks ", rank, " and ", other);
  if (harm == Harm::freeze_rank || harm == Harm::cut_link)
    what += str(", for ", static_cast<int>(seconds * 1000), " ms");
  if (harm == Harm::disk) what += str(", ", call.empty() ? "any call" : call.c_str(), ": ", std::strerror(error));
  if (harm == Harm::disk || harm == Harm::short_write) what += str(", ", count, " times");
  return what;
}

std::vector<std::string> History::settings() const {
  return {str("parallel.data=", data),
          str("parallel.context=", context),
          str("parallel.tensor=", tensor),
          "parallel.timeout=5",
          str("train.steps=", steps),
          str("checkpoint.interval=", interval),
          str("checkpoint.keep=", keep),
          str("checkpoint.best=", best ? "true" : "false"),
          str("checkpoint.async=", async ? "true" : "false"),
          str("model.use_dcmha=", composed ? "true" : "false"),
          "model.dim=8",
          "model.n_layer=1",
          "model.n_head=2",
          "model.block_size=8",
          str("train.batch_size=", std::max(data, 2)),
          "train.dtype=f64",
          "schedule.warmup=2",
          "schedule.name=constant",
          "eval.interval=3",
          "eval.samples=2",
          "log.interval=1",
          "guard.spike=0",
          "log.peak_tflops=1",  // not measured: it would take most of the time
          "run.threads=1",
          "run.device=cpu"};
}

std::string History::text() const {
  std::string all = str("seed ", seed, ": ");
  if (clients > 0)
    all += str("serve with ", clients, " clients");
  else
    all += prepare ? "prepare"
                   : str(data, " x ", context, " x ", tensor, " ranks, ", composed ? "composed heads, " : "", steps,
                         " steps, a checkpoint every ", interval, ", ", keep, " kept", best ? ", and the best" : "",
                         async ? ", written beside the steps" : "");
  for (const Disturbance& d : sessions) all += "; " + d.text();
  return all;
}

History history_of(uint64_t seed) {
  Random random(seed);
  History h{.seed = seed};
  struct Mesh {
    int data, context, tensor;
  };
  Mesh mesh{1, 1, 1};
  if (random.one_in(3)) mesh = random.any_of(std::array<Mesh, 3>{{{2, 1, 1}, {1, 2, 1}, {1, 1, 2}}});
  if (random.one_in(32)) mesh = random.one_in(4) ? Mesh{2, 2, 2} : Mesh{2, 1, 2};
  h.data = mesh.data, h.context = mesh.context, h.tensor = mesh.tensor;
  // Most are small: their number finds more than their size.
  h.composed = random.one_in(8);
  h.steps = h.composed ? 6 : 4;
  h.interval = static_cast<int>(1 + random.below(3));
  h.keep = h.interval == 1 ? 3 : 2;
  h.best = random.one_in(3);
  h.async = random.one_in(3);
  if (random.one_in(5)) h.prepare = true, h.data = h.context = h.tensor = 1;
  if (!h.prepare && random.one_in(5))
    h.clients = static_cast<int>(1 + random.below(5)), h.data = h.context = h.tensor = 1, h.async = false;
  for (uint64_t n = 1 + random.below(3); n > 0; --n) h.sessions.push_back(any_disturbance(random, h));
  return h;
}

}  // namespace braid::simulation
