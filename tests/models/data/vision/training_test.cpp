// DC-ViT learns from a prepared folder by the trainer that language models have: its checkpoints, an exact resume with
// every change of images and every dropout, and validation.
#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/models/data/vision/batches.h"
#include "braid/models/data/vision/prepare.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/image_model.h"
#include "braid/models/registry.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "tests/support/compare.h"
#include "tests/support/idx_images.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models::vision;

BOOST_AUTO_TEST_SUITE(vision_training)

using models::text::Split;

namespace {

struct Run {
  explicit Run(const std::string& folder)
      : data(folder, Split::train), validation(folder, Split::val), sampler(data.size(), 5) {
    images.augment = {.crop_padding = 1, .erase = 0.1};
  }
  double step(int64_t number) {
    return trainer.step(step_batches(data, sampler, number * 16, 8, 2, {}, images), 3e-3).loss;
  }
  double accuracy() const {
    const auto& image = dynamic_cast<const models::ImageModel&>(*model);
    NoGrad off;
    int64_t right = 0, all = 0;
    for (const auto& indices : validation_images(validation, 8, 0, {})) {
      const models::Batch batch = read_batch(validation, indices);
      const Tensor best = argmax(image.logits(batch.at("pixel_values")));
      const auto got = best.to_vector<int64_t>(), want = batch.at("labels").to_vector<int64_t>();
      for (size_t i = 0; i < got.size(); ++i) right += got[i] == want[i], ++all;
    }
    return static_cast<double>(right) / static_cast<double>(all);
  }
  std::vector<std::vector<double>> weights() const {
    std::vector<std::vector<double>> all;
    for (const nn::NamedTensor& p : nn::parameters(*model)) all.push_back(p.value.to_vector<double>());
    return all;
  }

  ImageDataset data, validation;
  models::text::Sampler sampler;
  TrainingImages images{.seed = 5, .augment = {}, .label_smoothing = 0.1, .mixup = 0.2, .sample_keys = true};
  std::unique_ptr<models::Model> model = models::configure_model("dc-vit-28", {{"hidden_size", "32"},
                                                                               {"num_hidden_layers", "2"},
                                                                               {"intermediate_size", "64"},
                                                                               {"image_size", "8"},
                                                                               {"num_labels", "2"},
                                                                               {"drop_path_rate", "0.1"},
                                                                               {"compose_dropout", "0.2"},
                                                                               {"hidden_dropout_prob", "0.05"}})
                                             ->make({7, 0});
  models::Trainer trainer{*model, {}, 1.0};
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_dc_vit_learns_and_resumes_bit_for_bit) {
  const TempFolder scratch;
  const std::string train = write_idx_images(scratch.path, "train", 60),
                    val = write_idx_images(scratch.path, "t10k", 20);
  const std::string folder = scratch / "data";
  prepare_images({.inputs = {train}, .val_inputs = {val}, .output = folder});
  Run straight(folder);
  BOOST_TEST(straight.accuracy() <= 0.6);
  std::filesystem::create_directories(scratch / "run");
  for (int64_t i = 0; i < 150; ++i) {
    straight.step(i);
    if (i == 139)
      models::CheckpointWriter(scratch / "run", 2)
          .save(straight.trainer, nullptr, {140, 2240, 1.0, 5, 0, "pictures"}, "");
  }
  BOOST_TEST(straight.accuracy() >= 0.9);

  Run resumed(folder);
  models::load_checkpoint(scratch.path / "run/step-00000140", resumed.trainer);
  for (int64_t i = 140; i < 150; ++i) resumed.step(i);
  BOOST_TEST((resumed.weights() == straight.weights()));

  // A checkpoint is a folder of transformers' form with the keys of DC-ViT.
  const models::LoadedModel loaded = models::load_model(scratch / "run/step-00000140");
  BOOST_TEST(loaded.model->spec()->model_type() == "vit");
  BOOST_TEST((models::differing_settings(*loaded.model->spec(), *straight.model->spec()).empty()));
}

BOOST_AUTO_TEST_SUITE_END()
