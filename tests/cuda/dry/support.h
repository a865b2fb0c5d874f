// Training steps on the dry device. A test of the launches of anything else needs two lines:
//
//   DryDevice dry;                                   // before every tensor on it
//   ... ops on dry.device() ...;  BOOST_TEST(dry.log().size() <= 45);
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "braid/models/registry.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/dry/dry_device.h"

namespace braid::test {

inline constexpr double kGiB = 1 << 30;

struct DrySetup {
  std::string preset;
  int64_t batch = 8, length = 2048;
  models::SettingTexts settings = {};
  bool recompute = false;
};

// A model of a preset in bf16 with f32 masters, and its trainer.
struct DryTraining {
  DryDevice dry;
  std::unique_ptr<models::Model> model;
  std::unique_ptr<models::Trainer> trainer;
  models::Batch batch;

  explicit DryTraining(const DrySetup& setup, const DryGpu& gpu = {}) : dry(gpu) {
    model = models::configure_model(setup.preset, setup.settings)->make_shape_only();
    model->to(dry.device());
    model->set_recompute(setup.recompute);
    trainer = std::make_unique<models::Trainer>(*model, nn::OptimizerOptions{}, 1.0, dist::ProcessMesh{}, DType::bf16);
    trainer->capture_steps(true);
    const Tensor ids = zeros({setup.batch, setup.length}, DType::i64);
    batch = models::text_batch(ids, ids);
  }
  // The log of the next step: the first one is launched, the second one captured, the others are replayed.
  const std::vector<DryWork>& step() {
    dry.clear();
    trainer->step({batch}, 1e-4);
    return dry.log();
  }
  MemoryStats memory() const { return memory_stats(dry.device()); }
};

inline int64_t count(const std::vector<DryWork>& log, const std::function<bool(const DryWork&)>& f) {
  return std::count_if(log.begin(), log.end(), f);
}
inline bool is_attention(const DryWork& w) { return w.op == "dcmha_forward" || w.op == "dcmha_backward"; }

}  // namespace braid::test
