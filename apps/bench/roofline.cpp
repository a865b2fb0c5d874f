#include "apps/bench/roofline.h"

#include <algorithm>
#include <cmath>

namespace braid::apps {

namespace {

// A block of threads of a product computes a tile of the result; tiles are spread over the multiprocessors in waves,
// the last of which may leave some idle. Small tiles reuse less of what they load.
double product_seconds(const DryWork& w, const Roofline& r) {
  struct Tile {
    double rows, columns, share;
  };
  double best = INFINITY;
  for (const Tile& t : {Tile{128, 256, 1.0}, {128, 128, 0.9}, {64, 128, 0.75}, {64, 64, 0.5}}) {
    const auto tiles = [&](int64_t rows, int64_t columns) {
      return std::ceil(static_cast<double>(rows) / t.rows) * std::ceil(static_cast<double>(columns) / t.columns);
    };
    const double count = static_cast<double>(w.batch) * std::min(tiles(w.rows, w.columns), tiles(w.columns, w.rows));
    const double tile = 2 * t.rows * t.columns * static_cast<double>(w.inner) * r.multiprocessors / (r.flops * t.share);
    // cuBLASLt splits the inner axis where there are fewer tiles than multiprocessors.
    const double pieces = count < r.multiprocessors ? std::min(std::floor(r.multiprocessors / count),
                                                               std::ceil(static_cast<double>(w.inner) / 512))
                                                    : 1;
    best = std::min(best, std::ceil(count * pieces / r.multiprocessors) * tile / pieces);
  }
  return best;
}

// Kernels of attention that compute more than they move: picoseconds per score on a GPU of 132 multiprocessors,
// measured on an H200 (dry_step.md: the larger one of 16 and 32 heads).
struct ScoreRate {
  std::string_view kernel;
  double picoseconds;
};
constexpr ScoreRate score_rates[] = {{"dcmha_one_pass", 5.8},
                                     {"dcmha_log_sum", 1.6},
                                     {"dcmha_weights", 2.6},
                                     {"dcmha_backward_post", 5.7},
                                     {"dcmha_backward_pre", 4.2}};

double score_seconds(const DryWork& w, const Roofline& r) {
  for (const ScoreRate& rate : score_rates)
    if (rate.kernel == w.name)
      return static_cast<double>(w.scores) * rate.picoseconds * 1e-12 * 132 / r.multiprocessors;
  return 0;
}

}  // namespace

double Roofline::seconds(const DryWork& w) const {
  double arithmetic = w.flops / (kAttentionShare * flops);
  if (w.kind == DryWork::Kind::product) arithmetic = product_seconds(w, *this);
  if (w.scores > 0) arithmetic = score_seconds(w, *this);
  return std::max(arithmetic, static_cast<double>(w.bytes) / bandwidth) + launch;
}

Roofline roofline_of(const std::string& gpu, DType arithmetic) {
  const Machine machine = machine_elsewhere({.name = gpu}, arithmetic);
  return {.gpu = machine.name,
          .memory = machine.memory,
          .peak_flops = machine.flops,
          .flops = kProductShare * machine.flops,
          .bandwidth = kBandwidthShare * machine.bandwidth,
          .multiprocessors = machine.multiprocessors,
          .major = machine.major,
          .shared_kib = machine.shared_kib};
}

}  // namespace braid::apps
