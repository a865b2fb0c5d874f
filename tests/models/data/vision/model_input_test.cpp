// Images of one folder before a model of another: classes by name, pixels by the model's preprocessor_config.json.
#include "braid/models/data/vision/model_input.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/models/data/vision/dataset.h"
#include "braid/models/data/vision/prepare.h"
#include "braid/models/registry.h"
#include "tests/support/compare.h"
#include "tests/support/idx_images.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models::vision;

BOOST_AUTO_TEST_SUITE(vision_model_input)

using Names = std::vector<std::string>;
using Labels = std::vector<int64_t>;

namespace {

Preprocessing processor(const TempFolder& folder, const std::string& text) {
  folder.write("model/preprocessor_config.json", text);
  return read_preprocessing(folder / "model").value();
}

void check_values(const std::vector<double>& found, const std::vector<double>& wanted) {
  BOOST_REQUIRE(found.size() == wanted.size());
  for (size_t i = 0; i < found.size(); ++i) BOOST_TEST(std::fabs(found[i] - wanted[i]) < 1e-12, i);
}

// A small grey ViT for images of 8 x 8; without names of its classes it has two.
std::unique_ptr<models::ImageModel> vit(const Names& names) {
  const auto spec =
      models::configure_model("vit-28", {{"hidden_size", "8"},
                                         {"num_hidden_layers", "1"},
                                         {"intermediate_size", "8"},
                                         {"image_size", "8"},
                                         {"num_labels", std::to_string(names.empty() ? 2 : names.size())}});
  return models::as_image_model(
      dynamic_cast<const models::ImageModelSpec&>(*spec).with_class_names(names)->make({1, 0}));
}

}  // namespace

BOOST_AUTO_TEST_CASE(classes_are_compared_by_name) {
  const auto match = [](const Names& data, const Names& names) {
    return match_classes(data, names, std::ssize(names), "d", ErrorKind::input);
  };
  BOOST_TEST((match({"1", "10", "2"}, {"1", "2", "10"}) == Labels{0, 2, 1}));
  BOOST_TEST((match({"cat"}, {"ant", "bee", "cat"}) == Labels{2}));
  BOOST_TEST((match({"a", "a"}, {"a", "a"}) == Labels{0, 1}));  // the same list
  BOOST_TEST((match({"b"}, {"a", "b", "a"}) == Labels{1}));
  BOOST_TEST((match_classes({"x", "y"}, {}, 2, "d", ErrorKind::input) == Labels{0, 1}));
  BOOST_TEST(throws_with(
      [&] {
        match({"a", "B", "cow"}, {"a", "b"});
      },
      "expected classes of its id2label, a, b (2), "
      "found also B, cow (2)"));
  BOOST_TEST(throws_with([&] { match({"a", "b"}, {"a", "b", "a"}); }, "found more than once a (1)"));
  BOOST_TEST(throws_with([&] { match_classes({"x"}, {}, 2, "d", ErrorKind::input); }, "expected 2, found 1"));
}

BOOST_AUTO_TEST_CASE(a_data_set_has_the_labels_and_pixels_of_the_model) {
  const TempFolder scratch;
  const std::string images = write_idx_images(scratch.path, "train", 8);
  prepare_images({.inputs = {images}, .classes = {"left", "upper"}, .output = scratch / "d", .val_fraction = 0});
  ImageDataset data(scratch / "d", models::text::Split::train);
  Image image;
  BOOST_TEST(data.read(3, image) == 1);
  const auto model = vit({"upper", "right", "left"});
  Names notes;
  const Preprocessing p = processor(scratch, R"({"image_mean": 0.25, "image_std": [0.5], "rescale_factor": 0.01})");
  data.take_as(model_input(data.manifest(), "d", *model, p, notes));
  BOOST_TEST(notes.empty());
  BOOST_TEST(data.read(3, image) == 0);
  BOOST_TEST(data.label(2) == 2);
  BOOST_TEST((data.input().classes == Names{"upper", "right", "left"}));
  check_values(data.input().factor, {0.02});
  check_values(data.input().offset, {-0.5});
  // What is not known of the model is said.
  const ModelInput own = model_input(data.manifest(), "d", *vit({}), std::nullopt, notes);
  BOOST_REQUIRE(notes.size() == 2u);
  BOOST_TEST(notes[0].find("no names of its classes (id2label in config.json)") != std::string::npos, notes[0]);
  BOOST_TEST(notes[1].find("no preprocessor_config.json") != std::string::npos, notes[1]);
  check_values(own.factor, own_input(data.manifest()).factor);
  BOOST_TEST((own.classes == Names{"left", "upper"}));
  ImageManifest wide = data.manifest();
  wide.width = 9;
  BOOST_TEST(throws_with([&] { model_input(wide, "d", *model, p, notes); }, "the images in d do not fit the model"));
}

BOOST_AUTO_TEST_CASE(a_processor_file_says_how_pixels_are_scaled) {
  const TempFolder scratch;
  BOOST_TEST(!read_preprocessing(scratch / "model"));
  const auto values = [](const Preprocessing& p, double rescale, std::vector<double> mean, std::vector<double> std) {
    BOOST_TEST(p.rescale == rescale);
    check_values(p.mean, mean), check_values(p.std, std);
  };
  values(processor(scratch, "{}"), 1.0 / 255, {0.5}, {0.5});  // as ViTImageProcessor
  values(processor(scratch, R"({"do_normalize": false, "image_mean": [1, 2, 3], "do_rescale": null})"), 1.0 / 255, {0},
         {1});
  values(
      processor(scratch, R"({"do_rescale": false, "rescale_factor": 0.1, "image_mean": [1, 2], "image_std": [3, 4]})"),
      1, {1, 2}, {3, 4});
  const auto sizing = [&](const std::string& text, const Sizing& wanted) {
    BOOST_TEST((processor(scratch, text).sizing == wanted), text << ": " << describe(processor(scratch, text).sizing));
  };
  sizing(R"({"size": 16})", {.height = 16, .width = 16});
  sizing(R"({"size": {"height": 8, "width": 9}, "resample": 3})", {.height = 8, .width = 9, .filter = Filter::bicubic});
  sizing(R"({"size": {"shortest_edge": 10}, "do_center_crop": true, "crop_size": {"height": 8, "width": 8}})",
         {.shorter = 10, .crop_height = 8, .crop_width = 8});
  sizing(R"({"size": 16, "do_resize": false, "crop_size": 8})", {});
  const auto rejects = [&](const std::string& text, const std::string& words) {
    BOOST_TEST(throws_with([&] { processor(scratch, text); }, words), text);
  };
  rejects("[]", "bad value for the file");
  rejects(R"({"image_std": [0.5, 0]})", "bad value for image_std");
  rejects(R"({"image_mean": []})", "bad value for image_mean");
  rejects(R"({"image_mean": "x"})", "expected a number");
  rejects(R"({"rescale_factor": -1})", "bad value for rescale_factor");
  rejects(R"({"do_resize": 1})", "expected true or false");
  rejects(R"({"size": {"longest_edge": 3}})", "expected height and width, or shortest_edge");
  rejects(R"({"size": 0})", "expected an integer from 1");
  rejects(R"({"resample": 9})", "bad value for resample");
  rejects(R"({"do_center_crop": true, "crop_size": {"shortest_edge": 3}})", "bad value for crop_size");
  ImageManifest three;
  three.channels = 3, three.height = three.width = 8, three.classes = {"a", "b"};
  Names notes;
  const auto colour = models::as_image_model(models::configure_model("vit-32", {{"hidden_size", "8"},
                                                                                {"num_hidden_layers", "1"},
                                                                                {"intermediate_size", "8"},
                                                                                {"image_size", "8"},
                                                                                {"num_labels", "2"}})
                                                 ->make({1, 0}));
  BOOST_TEST(
      throws_with([&] { model_input(three, "d", *colour, processor(scratch, R"({"image_mean": [1, 2]})"), notes); },
                  "bad value for image_mean in preprocessor_config.json"));
}

// Data that were prepared as a model says get the same file back, and no note; others get one.
BOOST_AUTO_TEST_CASE(images_are_sized_as_a_model_says) {
  const TempFolder scratch;
  const std::string images = write_idx_images(scratch.path, "train", 8);
  const auto model = vit({"0", "1"});
  const std::string like = R"({"size": {"shortest_edge": 10}, "resample": 3, "do_center_crop": true, "crop_size": 8})";
  const Preprocessing p = processor(scratch, like);
  const auto notes_of = [&](const ImageManifest& m) {
    Names notes;
    model_input(m, "d", *model, p, notes);
    return notes;
  };
  const ImageManifest as_asked =
      prepare_images({.inputs = {images}, .output = scratch / "a", .val_fraction = 0, .sizing = p.sizing}).manifest;
  BOOST_TEST((read_image_manifest(scratch / "a").sizing == p.sizing));
  BOOST_TEST(notes_of(as_asked).empty());
  BOOST_TEST((processor(scratch, preprocessor_config(as_asked)).sizing == p.sizing));
  const ImageManifest plain =
      prepare_images({.inputs = {images}, .output = scratch / "b", .val_fraction = 0, .size = 8}).manifest;
  BOOST_TEST(!read_image_manifest(scratch / "b").sizing);
  BOOST_REQUIRE(notes_of(plain).size() == 1u);
  BOOST_TEST(notes_of(plain)[0].find("asks for images the shorter side resized to 10 (bicubic), 8 x 8 cut out of the "
                                     "centre, those in d are resized to 8 x 8 (bilinear)") != std::string::npos,
             notes_of(plain)[0]);
  const Preprocessing own = processor(scratch, preprocessor_config(plain));
  check_values(own.mean, plain.mean), check_values(own.std, plain.std);
  BOOST_TEST((own.sizing == Sizing{.height = 8, .width = 8}));
  Names notes;
  model_input(plain, "d", *model, own, notes);
  BOOST_TEST(notes.empty());
}

BOOST_AUTO_TEST_SUITE_END()
