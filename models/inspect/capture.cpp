#include "braid/models/inspect/capture.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "braid/autograd/record.h"
#include "braid/models/inspect/token_losses.h"

namespace braid::models {

namespace {

constexpr std::string_view kStream = "hidden.", kLayer = "layers.", kRequest = ".attention_maps";

int64_t number_behind(std::string_view prefix, const std::string& name) {
  return std::stoll(name.substr(prefix.size()));
}

class Observed {
 public:
  explicit Observed(const CaptureRequest& what) : what_(what) {
    if (!what.scales.empty()) scope_.emplace();
  }
  // `pass` computes with an observer.
  Capture run(const std::function<Tensor(const nn::ActivationObserver&)>& pass) {
    result_.out = pass({[&](const std::string& name, const Tensor& value) { receive(name, value); },
                        [&](const std::string& name) {
                          return what_.maps && name.starts_with(kLayer) && name.ends_with(kRequest) &&
                                 what_.maps(number_behind(kLayer, name));
                        }});
    return std::move(result_);
  }

 private:
  void receive(const std::string& name, const Tensor& value) {
    if (name.starts_with(kStream)) next_layer(number_behind(kStream, name), value);
    if (!what_.stream && !what_.layer)
      result_.tensors.emplace_back(name, value.detach().to(kCpu));
    else if (what_.layer && name.starts_with(kLayer))
      layer_[name.substr(name.find('.', kLayer.size()) + 1)] = value.detach().to(kCpu);
  }
  void next_layer(int64_t i, const Tensor& x) {
    if (what_.layer && i > 0) what_.layer(i - 1, layer_);
    layer_.clear();
    if (what_.stream) what_.stream(i, x);
    const auto at = static_cast<size_t>(i);
    if (scope_) scope_->set(at < what_.scales.size() ? what_.scales[at] : nn::CompositionScale());
  }

  const CaptureRequest& what_;
  std::optional<nn::CompositionScaleScope> scope_;
  LayerTensors layer_;
  Capture result_;
};

}  // namespace

Capture capture(const LanguageModel& model, const Tensor& ids, const CaptureRequest& what) {
  return Observed(what).run([&](const nn::ActivationObserver& o) { return model.hidden(ids, nullptr, &o); });
}

Capture capture(const ImageModel& model, const Tensor& pixel_values, const CaptureRequest& what) {
  return Observed(what).run([&](const nn::ActivationObserver& o) { return model.logits(pixel_values, &o); });
}

Tensor scaled_hidden(const LanguageModel& model, const Tensor& ids, const std::vector<nn::CompositionScale>& scales) {
  return capture(model, ids, {.scales = scales, .stream = [](int64_t, const Tensor&) {}}).out;
}

bool mixes_heads(const LayerTensors& tensors) {
  return std::ranges::any_of(tensors, [](const auto& t) { return t.first.starts_with("dyn."); });
}

bool mixes_heads(const LanguageModel& model) {
  const NoGrad off;
  bool found = false;
  capture(model, token_ids(model, std::vector<int32_t>{0}),
          {.layer = [&](int64_t, const LayerTensors& tensors) { found |= mixes_heads(tensors); }});
  return found;
}

}  // namespace braid::models
