#include "braid/models/data/vision/batches.h"

#include <cmath>

#include "braid/models/data/local_samples.h"
#include "braid/models/data/random_stream.h"
#include "braid/models/image_model.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/strict.h"

namespace braid::models::vision {

namespace {

// Adds a share of the pixels as the model takes them.
void add_normalised(const Image& p, const ModelInput& input, double share, float* out) {
  const int64_t plane = p.height * p.width;
  for (int64_t c = 0; c < p.channels; ++c) {
    const auto factor = static_cast<float>(share * input.factor[static_cast<size_t>(c)]);
    const auto offset = static_cast<float>(share * input.offset[static_cast<size_t>(c)]);
    for (int64_t i = c * plane; i < (c + 1) * plane; ++i)
      out[i] += static_cast<float>(p.pixels[static_cast<size_t>(i)]) * factor + offset;
  }
}

// A number from Gamma(a, 1), a >= 1 (Marsaglia and Tsang 2000).
double gamma_draw(RandomStream& stream, double a) {
  const double d = a - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double u = stream.unit(), v = stream.unit();
    const double x = std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v), cube = std::pow(1 + c * x, 3);
    if (cube > 0 && std::log(stream.unit()) < 0.5 * x * x + d - d * cube + d * std::log(cube)) return d * cube;
  }
}

// A number from Beta(a, a), a > 0: x / (x + y) of two from Gamma(a, 1). For a < 1 these are x = g u^(1/a) and
// y = h v^(1/a), g and h from Gamma(a + 1, 1). Where a is so small that both are 0 in f64, y / x is not.
double beta_draw(RandomStream& stream, double a) {
  const double u = a < 1 ? stream.unit() : 1, g = gamma_draw(stream, a < 1 ? a + 1 : a);
  const double v = a < 1 ? stream.unit() : 1, h = gamma_draw(stream, a < 1 ? a + 1 : a);
  const double x = g * std::pow(u, 1 / a), y = h * std::pow(v, 1 / a);
  return x + y > 0 ? x / (x + y) : 1 / (1 + h / g * std::exp((std::log(v) - std::log(u)) / a));
}

// An image of a step: which one, and the key of all that happens to it.
struct Drawn {
  int64_t image;
  RandomKey key;
};

class StepImages {
 public:
  StepImages(const ImageDataset& data, const TrainingImages& options) : data_(data), options_(options) {}

  // Places [begin, end) of the micro-batch `all`.
  Batch batch(const std::vector<Drawn>& all, int64_t begin, int64_t end) const {
    const ImageManifest& m = data_.manifest();
    const int64_t B = end - begin, K = std::ssize(data_.input().classes), elements = m.channels * m.height * m.width;
    Tensor pixels = zeros({B, m.channels, m.height, m.width}), weights = zeros({B, K});
    Tensor labels = empty({B}, DType::i64), keys = empty({B}, DType::i64);
    float *x = pixels.mutable_data<float>(), *w = weights.mutable_data<float>();
    auto *label = labels.mutable_data<int64_t>(), *key = keys.mutable_data<int64_t>();
    parallel_for(B, 1, [&](int64_t from, int64_t to) {
      for (int64_t b = from; b < to; ++b) {
        const int64_t place = begin + b, n = std::ssize(all);
        const Drawn& own = all[static_cast<size_t>(place)];
        const Drawn& partner = all[static_cast<size_t>(n - 1 - place)];
        double share = 1;
        if (options_.mixup > 0) {  // of the pair, so that both have the same
          const Drawn& first = place < n - 1 - place ? own : partner;
          RandomStream stream(child(first.key, "mixup"));
          share = beta_draw(stream, options_.mixup);
        }
        label[b] = add(own, share, x + b * elements, w + b * K);
        if (share < 1) add(partner, 1 - share, x + b * elements, w + b * K);
        for (int64_t k = 0; k < K; ++k)
          w[b * K + k] = static_cast<float>((1 - options_.label_smoothing) * w[b * K + k] +
                                            options_.label_smoothing / static_cast<double>(K));
        const RandomKey of_model = child(own.key, "model");
        key[b] = static_cast<int64_t>(uint64_t{random_bits(0, of_model)} << 32 | random_bits(1, of_model));
      }
    });
    const bool soft = options_.mixup > 0 || options_.label_smoothing > 0;
    if (soft && options_.sample_keys)
      return {{"pixel_values", pixels}, {"labels", labels}, {"label_weights", weights}, {kSampleKeys, keys}};
    if (soft) return {{"pixel_values", pixels}, {"labels", labels}, {"label_weights", weights}};
    if (options_.sample_keys) return {{"pixel_values", pixels}, {"labels", labels}, {kSampleKeys, keys}};
    return {{"pixel_values", pixels}, {"labels", labels}};
  }

 private:
  // Adds a share of the changed image and of its label's weight; returns the label.
  int64_t add(const Drawn& drawn, double share, float* pixels, float* weights) const {
    Image image;
    const int64_t label = data_.read(drawn.image, image);
    add_normalised(options_.augment.none() ? image : augmented(image, options_.augment, drawn.key), data_.input(),
                   share, pixels);
    weights[label] += static_cast<float>(share);
    return label;
  }

  const ImageDataset& data_;
  const TrainingImages& options_;
};

}  // namespace

std::vector<Batch> step_batches(const ImageDataset& data, const text::Sampler& sampler, int64_t first,
                                int64_t batch_size, int64_t count, const dist::ProcessMesh& mesh,
                                const TrainingImages& options) {
  if (strict_bits()) batch_size *= count, count = 1;
  const StepImages step(data, options);
  const RandomKey run = child({options.seed, 0}, "pictures");
  std::vector<Batch> batches;
  for (int64_t m = 0; m < count; ++m) {
    std::vector<Drawn> all;
    for (int64_t b = 0; b < batch_size; ++b, ++first) {
      const int64_t image = sampler.at(first);
      const RandomKey epoch = child(run, first / sampler.size());
      all.push_back({image, child(epoch, image)});
    }
    const dist::Range mine = dist::even_partition(batch_size, mesh.data.size()).single(mesh.data.rank());
    batches.push_back(step.batch(all, mine.begin, mine.end));
  }
  return batches;
}

std::vector<std::vector<int64_t>> validation_images(const ImageDataset& data, int64_t batch_size, int64_t max_images,
                                                    const dist::ProcessMesh& mesh) {
  return text::validation_samples(data.size(), batch_size, max_images, mesh);
}

Batch read_batch(const ImageDataset& data, const std::vector<int64_t>& images) {
  const ImageManifest& m = data.manifest();
  const auto B = std::ssize(images);
  Tensor pixels = zeros({B, m.channels, m.height, m.width}), labels = empty({B}, DType::i64);
  float* x = pixels.mutable_data<float>();
  auto* label = labels.mutable_data<int64_t>();
  parallel_for(B, 1, [&](int64_t begin, int64_t end) {
    Image image;
    for (int64_t b = begin; b < end; ++b) {
      label[b] = data.read(images[static_cast<size_t>(b)], image);
      add_normalised(image, data.input(), 1, x + b * std::ssize(image.pixels));
    }
  });
  return {{"pixel_values", pixels}, {"labels", labels}};
}

}  // namespace braid::models::vision
