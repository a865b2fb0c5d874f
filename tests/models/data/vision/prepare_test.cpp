// IDX and CIFAR files through preparation into a data set and batches: the same pixels come out, equal inputs give
// equal folders, and every damaged or contradictory file is named.
#include "braid/models/data/vision/prepare.h"
#include "braid/autograd/ops.h"

#include <zlib.h>
#include <boost/test/unit_test.hpp>

#include "braid/models/data/vision/batches.h"
#include "braid/models/data/vision/cifar.h"
#include "braid/models/data/vision/idx.h"
#include "braid/models/image_model.h"
#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models::vision;

BOOST_AUTO_TEST_SUITE(vision_prepare)

using models::Batch, models::text::Split;

namespace {

std::string number(uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)};
}
uint8_t pixel(int64_t i, int64_t p) { return static_cast<uint8_t>(i * 37 + p * 11 + i * p); }

// n images of H x W; label i % 3.
struct Idx {
  std::string images, labels;
  explicit Idx(int64_t n, int64_t H = 4, int64_t W = 5) {
    images = std::string("\0\0\10\3", 4) + number(static_cast<uint32_t>(n)) + number(static_cast<uint32_t>(H)) +
             number(static_cast<uint32_t>(W));
    labels = std::string("\0\0\10\1", 4) + number(static_cast<uint32_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      labels += static_cast<char>(i % 3);
      for (int64_t p = 0; p < H * W; ++p) images += static_cast<char>(pixel(i, p));
    }
  }
  std::string write(const TempFolder& folder, const std::string& set) const {
    folder.write(set + "-labels-idx1-ubyte", labels);
    return folder.write(set + "-images-idx3-ubyte", images);
  }
};

std::string compressed(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  BOOST_REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()));
  gzclose(file);
  return path;
}

void rejects(const std::function<void()>& f, const std::vector<std::string>& words) {
  BOOST_CHECK_EXCEPTION(f(), Error, [&](const Error& e) { return says(e, ErrorKind::input, words); });
}
void ignore(Image, int64_t, const std::string&) {}

}  // namespace

BOOST_AUTO_TEST_CASE(images_come_out_as_they_went_in) {
  const TempFolder scratch;
  const Idx train(40), val(7);
  const std::string plain = train.write(scratch, "train");
  compressed(scratch / "t10k-labels-idx1-ubyte.gz", val.labels);
  const std::string packed = compressed(scratch / "t10k-images-idx3-ubyte.gz", val.images);
  PrepareImagesOptions options{.inputs = {plain}, .val_inputs = {packed}, .output = scratch / "data"};
  options.shard_tokens = 100;  // several shards
  const ImageManifest made = prepare_images(options).manifest;
  BOOST_TEST(made.train.documents == 40);
  BOOST_TEST(made.val.documents == 7);
  BOOST_TEST(made.train.shards.size() == 10u);
  BOOST_TEST((made.classes == std::vector<std::string>{"0", "1", "2"}));
  BOOST_TEST(read_image_manifest(scratch / "data").fingerprint == made.fingerprint);
  double sum = 0, squares = 0;
  const ImageDataset data(scratch / "data", Split::train), validation(scratch / "data", Split::val);
  BOOST_REQUIRE(data.size() == 40);
  for (int64_t i = 0; i < 40; ++i) {
    Image image;
    BOOST_TEST(data.read(i, image) == i % 3);
    BOOST_TEST(data.label(i) == i % 3);
    BOOST_REQUIRE(image.pixels.size() == 20u);
    for (int64_t p = 0; p < 20; ++p) {
      BOOST_REQUIRE(image.pixels[static_cast<size_t>(p)] == pixel(i, p));
      sum += pixel(i, p), squares += pixel(i, p) * pixel(i, p);
    }
  }
  BOOST_TEST(std::fabs(made.mean[0] - sum / 800 / 255) < 1e-12);
  BOOST_TEST(std::fabs(made.std[0] - std::sqrt(squares / 800 - sum / 800 * sum / 800) / 255) < 1e-12);
  // Normalised, and the same again from the same inputs.
  const Batch batch = read_batch(data, {3, 1});
  BOOST_TEST((batch.at("labels").to_vector<int64_t>() == std::vector<int64_t>{0, 1}));
  BOOST_TEST(std::fabs(batch.at("pixel_values").to_vector<double>()[1] -
                       (pixel(3, 1) / 255.0 - made.mean[0]) / made.std[0]) < 1e-5);
  BOOST_TEST(prepare_images(options).unchanged);
  options.seed = 2;
  BOOST_TEST(throws_with([&] { prepare_images(options); }, "set `replace`"));
  options.replace = true;
  BOOST_TEST(!prepare_images(options).unchanged);
}

BOOST_AUTO_TEST_CASE(a_share_validates_and_equal_images_stay_together) {
  const TempFolder scratch;
  Idx twice(300);
  const std::string one = twice.write(scratch, "a"), two = twice.write(scratch, "b");
  const auto split = [&](const std::vector<std::string>& inputs, uint64_t seed, const std::string& out) {
    return prepare_images({.inputs = inputs, .output = scratch / out, .val_fraction = 0.2, .seed = seed}).manifest;
  };
  const ImageManifest first = split({one}, 1, "first"), both = split({one, two}, 1, "both");
  BOOST_TEST(first.val.documents > 30);
  BOOST_TEST(first.val.documents < 90);
  BOOST_TEST(both.val.documents == 2 * first.val.documents);
  BOOST_TEST(split({one}, 7, "other").fingerprint != first.fingerprint);
}

BOOST_AUTO_TEST_CASE(damaged_idx_files_are_named) {
  const TempFolder scratch;
  int next = 0;
  const auto bad = [&](const std::function<void(Idx&)>& damage, const std::vector<std::string>& words) {
    Idx files(6);
    damage(files);
    const std::string path = files.write(scratch, "s" + std::to_string(next++));
    rejects([&] { read_idx(path, ignore); }, words);
  };
  bad([](Idx& f) { f.images.resize(f.images.size() - 1); }, {"images-idx3", "ends too early"});
  bad([](Idx& f) { f.labels.resize(f.labels.size() - 1); }, {"labels-idx1", "ends too early"});
  bad([](Idx& f) { f.images += 'x'; }, {"images-idx3", "continues behind its values"});
  bad([](Idx& f) { f.images[2] = 9; }, {"bad IDX header", "0 0 8 3", "0 0 9 3"});
  bad([](Idx& f) { f.labels[7] = 5; }, {"another number of labels", "expected 6", "found 5"});
  bad([](Idx& f) { f.images.replace(8, 4, number(0xFFFFFFFF)); }, {"bad size of images", "4294967295"});
  bad([](Idx& f) { f.images.replace(8, 8, number(16384) + number(16384)); }, {"bad size of images"});
  bad([](Idx& f) { f.images.resize(3); }, {"ends too early"});
  const std::string alone = scratch.write("alone-images-idx3-ubyte", Idx(2).images);
  rejects([&] { read_idx(alone, ignore); }, {"alone-labels-idx1-ubyte", "missing"});
}

BOOST_AUTO_TEST_CASE(cifar_files) {
  const TempFolder scratch;
  std::string ten, hundred;
  for (int i = 0; i < 3; ++i) {
    ten += static_cast<char>(i + 4);
    hundred += static_cast<char>(19);
    hundred += static_cast<char>(i + 90);
    for (int p = 0; p < 3072; ++p) ten += static_cast<char>(pixel(i, p)), hundred += static_cast<char>(pixel(i, p));
  }
  int64_t seen = 0;
  read_cifar(scratch.write("data_batch_1.bin", ten), [&](const Image& p, int64_t label, const std::string&) {
    BOOST_TEST(label == seen + 4);
    BOOST_TEST(p.channels == 3);
    BOOST_TEST(p.pixels[3071] == pixel(seen, 3071));
    ++seen;
  });
  read_cifar(scratch.write("train.bin", hundred),
             [&](const Image&, int64_t label, const std::string&) { BOOST_TEST(label == seen++ + 87); });
  BOOST_TEST(seen == 6);
  rejects([&] { read_cifar(scratch.write("test_batch.bin", ten + "x"), ignore); }, {"test_batch.bin", "3073"});
  ten[3073] = 10;
  rejects([&] { read_cifar(scratch.write("test_batch.bin", ten), ignore); }, {"bad label", "byte 3073", "found 10"});
  // Sizes must agree over all inputs.
  const std::string idx = Idx(3, 32, 32).write(scratch, "train");
  rejects(
      [&] {
        prepare_images({.inputs = {scratch / "data_batch_1.bin", idx}, .output = scratch / "mixed"});
      },
      {"image 0", "expected channels x height x width = 3 x 32 x 32", "found 1 x 32 x 32"});
  BOOST_TEST(!std::filesystem::exists(scratch / "mixed"));
  // Numbers of classes and names of classes cannot be compared.
  scratch.write("named/cat/a.png", "x");
  rejects([&] { prepare_images({.inputs = {idx}, .val_inputs = {scratch / "named"}, .output = scratch / "mixed"}); },
          {"cannot be compared", "whose classes have numbers", "named"});
  rejects([&] { prepare_images({.inputs = {scratch / "named"}, .output = scratch / "mixed"}); },
          {"cannot decode 1 of 1 image: ", "named/cat/a.png"});
  BOOST_TEST(!std::filesystem::exists(scratch / "mixed"));
}

BOOST_AUTO_TEST_CASE(a_damaged_folder_is_noticed) {
  const TempFolder scratch;
  prepare_images({.inputs = {Idx(9).write(scratch, "train")}, .output = scratch / "d", .val_fraction = 0});
  BOOST_TEST(holds_images(scratch / "d"));
  rejects([&] { ImageDataset(scratch / "d", Split::val); }, {"val split", "no image"});
  std::string shard = scratch.read("d/train-00000.tok");
  shard[100] ^= 1;
  scratch.write("d/train-00000.tok", shard);
  Image image;
  rejects([&] { ImageDataset(scratch / "d", Split::train).read(0, image); }, {"train-00000.tok", "block 0"});
  std::string manifest = scratch.read("d/dataset.json");
  const size_t at = manifest.find("\"pictures\": 9");
  BOOST_REQUIRE(at != std::string::npos);
  scratch.write("d/dataset.json", manifest.replace(at, 13, "\"pictures\": 8"));
  rejects([&] { read_image_manifest(scratch / "d"); }, {"train.pictures", "expected 9", "found 8"});
}

// A step's images do not depend on how many processes share them, nor on where a run was resumed.
BOOST_AUTO_TEST_CASE(batches_of_a_step) {
  const TempFolder scratch;
  prepare_images({.inputs = {Idx(50, 6, 6).write(scratch, "train")}, .output = scratch / "d", .val_fraction = 0});
  const ImageDataset data(scratch / "d", Split::train);
  const models::text::Sampler sampler(data.size(), 3);
  TrainingImages options{.seed = 3, .label_smoothing = 0.1, .mixup = 0.4, .sample_keys = true};
  options.augment = {.crop_padding = 2, .flip = true, .randaugment_ops = 2, .erase = 0.5};
  const auto step = [&](int64_t first, int64_t count) {
    return step_batches(data, sampler, first, 8, count, {}, options);
  };
  const std::vector<Batch> two = step(48, 2), second = step(56, 1);  // over the end of an epoch
  for (const nn::NamedTensor& t : two[1].tensors()) BOOST_TEST(is_close(t.value, second[0].at(t.name), 0), t.name);
  const Tensor weights = two[0].at("label_weights");
  for (const double total : sum(weights, {1}).to_vector<double>()) BOOST_TEST(std::fabs(total - 1) < 1e-5);
  double largest = 0;
  for (const double w : weights.to_vector<double>()) largest = std::fmax(largest, w);
  BOOST_TEST(largest <= 0.9 + 0.1 / 3 + 1e-6);
  options.seed = 4;
  BOOST_TEST(!is_close(step(48, 1)[0].at("pixel_values"), two[0].at("pixel_values"), 0));
  BOOST_TEST(!is_close(step(48, 1)[0].at(models::kSampleKeys), two[0].at(models::kSampleKeys), 0));
  // Without options an image is what is in the file.
  options = {};
  const Batch plain = step(0, 1)[0];
  BOOST_TEST(plain.tensors().size() == 2u);
  const Batch read = read_batch(data, {sampler.at(0)});
  BOOST_TEST(is_close(plain.at("pixel_values").sliced(0, 0, 1), read.at("pixel_values"), 0));
}

BOOST_AUTO_TEST_CASE(mixup_of_a_small_alpha_hardly_mixes) {
  const TempFolder scratch;
  prepare_images({.inputs = {Idx(50).write(scratch, "train")}, .output = scratch / "d", .val_fraction = 0});
  const ImageDataset data(scratch / "d", Split::train);
  const models::text::Sampler sampler(data.size(), 3);
  const auto weights = [&](double alpha) {
    const TrainingImages options{.seed = 3, .mixup = alpha};
    return step_batches(data, sampler, 0, 8, 1, {}, options)[0].at("label_weights").to_vector<double>();
  };
  for (const double alpha : {1e-300, 1e-4})
    for (const double w : weights(alpha)) BOOST_TEST(std::fmin(w, 1 - w) < 1e-6);
  // Larger ones draw what earlier versions drew: a run resumes with it.
  BOOST_TEST(std::fabs(weights(0.4)[5] - 0.0339600655) < 1e-6);
  BOOST_TEST(std::fabs(weights(1.5)[5] - 0.0751516155) < 1e-6);
}

BOOST_AUTO_TEST_SUITE_END()
