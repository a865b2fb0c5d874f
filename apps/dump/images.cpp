#include "apps/dump/images.h"

#include <iterator>

#include "apps/dump/gradients.h"
#include "braid/autograd.h"
#include "braid/models/inspect/capture.h"

namespace braid::apps {

namespace {

models::Batch read_images(const Arguments& arguments, const models::ImageModel& model) {
  for (const char* name : {"prompt", "text", "decode"}) {
    check(!arguments.has(name), ErrorKind::setting, [&] {
      return str("--", name,
                 " is for language models: this one reads images; give --ids FILE.safetensors "
                 "with pixel_values (B, C, H, W)");
    });
  }
  const io::SafetensorsFile file(arguments.get("ids"));
  check(file.find("pixel_values"), ErrorKind::input, [&] {
    return "no pixel_values in " + file.path() + ": expected images (B, C, H, W) for a model that reads images";
  });
  const Tensor pixels = file.load("pixel_values");
  const int64_t B = pixels.rank() > 0 ? pixels.dim(0) : 0;
  const Tensor labels = file.find("labels") ? file.load("labels") : full({B}, -1, DType::i64);
  models::Batch batch{{"pixel_values", pixels}, {"labels", labels}};
  model.check_batch(batch);
  return batch;
}

}  // namespace

io::NamedTensors dump_images(const Arguments& arguments, models::ImageModel& model, Device device,
                             const std::set<int64_t>& maps) {
  const models::Batch batch = read_images(arguments, model), here = batch.to(device);
  const bool with_grad = arguments.has("grad");
  io::NamedTensors out;
  for (const NamedTensor& t : batch.tensors())
    if (t.name != "labels" || model.count_targets(batch) > 0) out.emplace_back(t.name, t.value);
  if (!with_grad) nn::freeze(model);
  models::Capture seen = models::capture(model, here.at("pixel_values"),  //
                                         {.maps = [&](int64_t i) { return maps.contains(i); }});
  std::ranges::move(seen.tensors, std::back_inserter(out));
  const Tensor logits = seen.out;
  out.emplace_back("logits", logits.detach());
  if (model.count_targets(batch) == 0) {
    check(!with_grad, ErrorKind::input, [&] {
      return "--grad needs a loss: expected labels (B) beside pixel_values in " + arguments.get("ids") + ", found none";
    });
    return out;
  }
  const Tensor loss = cross_entropy(logits, here.at("labels"));
  out.emplace_back("loss", loss.detach().reshaped({1}));
  if (with_grad) add_gradients(model, loss, out);
  return out;
}

}  // namespace braid::apps
