// From images of a data set to the batches of an image model (models/image_model.h).
#pragma once
#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/batch.h"
#include "braid/models/data/sampler.h"
#include "braid/models/data/vision/augment.h"
#include "braid/models/data/vision/dataset.h"

namespace braid::models::vision {

struct TrainingImages {
  uint64_t seed = 0;
  AugmentOptions augment;
  double label_smoothing = 0;  // share of the label's weight that all classes get
  double mixup = 0;            // alpha of mixup (Zhang et al. 2017): two images of a batch, mixed by Beta(a, a)
  bool sample_keys = false;    // for the dropout of the model
};

// The micro-batches of one step, `count` of `batch_size` images each, from position `first` of the sampler's order on.
// This data rank's images of each; every image is the same whatever the number of ranks, since what happens to it
// is a function of the seed, the epoch and the image alone, and its partner in mixup is the one that mirrors its
// place in the micro-batch. Under StrictBits (tensor/strict.h) the step is one micro-batch.
std::vector<Batch> step_batches(const ImageDataset& data, const text::Sampler& sampler, int64_t first,
                                int64_t batch_size, int64_t count, const dist::ProcessMesh& mesh,
                                const TrainingImages& options);
// At most `max_images` images, spread evenly over the data set: the same at every validation, unchanged but for the
// normalisation. This data rank's images of each batch, which may be none. 0: all.
std::vector<std::vector<int64_t>> validation_images(const ImageDataset& data, int64_t batch_size, int64_t max_images,
                                                    const dist::ProcessMesh& mesh);
// These images, as the data set's input() says.
Batch read_batch(const ImageDataset& data, const std::vector<int64_t>& images);

}  // namespace braid::models::vision
