#include "braid/models/training/hold_in_16_bits.h"

#include <map>

#include "braid/models/training/trainer.h"

namespace braid::models {

void hold_in_16_bits(Model& model) {
  nn::replace_parameters(model, [&](const std::string& name, const Tensor& p) {
    return model.keeps_f32(name) ? p : p.detach().to(DType::bf16);
  });
}

void Trainer::round_stochastically(RandomKey key) {
  std::map<std::string, std::vector<nn::ElementSpan>> of_name;
  for (const nn::NamedTensor& p : parameters_)
    for (const dist::Span& s : spans(p, parallel_.owned_range(p.name)))
      of_name[p.name].push_back({s.full, s.local, s.count});
  std::vector<std::vector<nn::ElementSpan>> all;
  for (const nn::NamedTensor& p : optimizer_->parameters()) all.push_back(of_name[p.name]);
  optimizer_->round_stochastically(key, std::move(all));
}

}  // namespace braid::models
