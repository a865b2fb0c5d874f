// Images themselves: resizing against Pillow, PNG and JPEG files of every kind, and changes in training.
#include <png.h>
#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <set>

#include "braid/models/data/vision/augment.h"
#include "braid/models/data/vision/class_folder.h"
#include "braid/models/data/vision/decode.h"
#include "braid/models/data/vision/resize.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/models/data/vision/jpeg.h"
#include "tests/support/compare.h"
#include "tests/support/places.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models::vision;

BOOST_AUTO_TEST_SUITE(vision_image)

namespace {

// From and to rows of pixels (H, W, C).
Image from_rows(const Tensor& x) {
  Image p{x.dim(2), x.dim(0), x.dim(1), {}};
  const Tensor planes = x.permuted({2, 0, 1}).contiguous();
  p.pixels = planes.to_vector<uint8_t>();
  return p;
}

std::string png(int format, int64_t H, int64_t W, const std::vector<uint8_t>& rows, const void* colormap = nullptr) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(W), image.height = static_cast<png_uint_32>(H);
  image.format = static_cast<png_uint_32>(format);
  png_alloc_size_t size = 0;
  BOOST_REQUIRE(png_image_write_to_memory(&image, nullptr, &size, 0, rows.data(), 0, colormap) != 0);
  std::string bytes(size, '\0');
  BOOST_REQUIRE(png_image_write_to_memory(&image, bytes.data(), &size, 0, rows.data(), 0, colormap) != 0);
  bytes.resize(size);
  return bytes;
}

Image decoded(const std::string& bytes) { return decode_image(std::as_bytes(std::span(bytes)), "p"); }
std::string error_of(const std::string& bytes) {
  try {
    decoded(bytes);
  } catch (const Error& e) {
    return e.kind() == ErrorKind::input ? e.what() : std::string("another kind: ") + e.what();
  }
  return "no error";
}
void rejects(const std::string& bytes, const std::string& words) {
  const std::string error = error_of(bytes);
  BOOST_TEST(error.find("cannot decode image p") == 0u, error);
  BOOST_TEST(error.find(words) != std::string::npos, "'" << words << "' is not in '" << error << "'");
}

// Pixel (y, x) of the three channels.
std::vector<int> colour(const Image& p, int64_t y, int64_t x) {
  std::vector<int> c;
  for (int64_t i = 0; i < 3; ++i) c.push_back(p.pixels[static_cast<size_t>((i * p.height + y) * p.width + x)]);
  return c;
}

Image sample(int64_t C = 3, int64_t H = 12, int64_t W = 10) {
  Image p{C, H, W, {}};
  for (int64_t i = 0; i < C * H * W; ++i) p.pixels.push_back(static_cast<uint8_t>((i * 53 + i * i * 7) % 251));
  return p;
}

}  // namespace

BOOST_AUTO_TEST_CASE(resizing_is_that_of_pillow) {
  const io::SafetensorsFile cases(source_dir() + "/tests/golden/images/cases.safetensors");
  for (int i = 0; i < 6; ++i) {
    const Image in = from_rows(cases.load(std::to_string(i) + ".image"));
    const Image want = from_rows(cases.load(std::to_string(i) + ".resized"));
    const Image got = resized(in, want.height, want.width);
    BOOST_TEST((got.pixels == want.pixels), "case " << i);
  }
}

// The values are those of Pillow 11, which resizes rows first; Pillow 13 chooses the order, and differs by 1.
BOOST_AUTO_TEST_CASE(filters_and_sizes) {
  Image p{1, 5, 7, {}};
  for (int i = 0; i < 35; ++i) p.pixels.push_back(static_cast<uint8_t>((i * 53 + i * i * 7) % 251));
  const std::pair<Filter, std::vector<uint8_t>> wanted[] = {
      {Filter::nearest, {0,   60, 60, 134, 222, 73,  189, 189, 68, 106, 111, 111, 130, 163,
                         210, 20, 20, 95,  195, 145, 145, 109, 87, 79,  85,  85,  105}},
      {Filter::lanczos, {90,  94,  71, 121, 235, 136, 140, 153, 89, 162, 115, 91, 118, 146,
                         216, 126, 44, 82,  192, 120, 109, 123, 54, 104, 111, 69, 58}},
      {Filter::bilinear, {91,  87,  89, 123, 224, 140, 144, 141, 88, 147, 113, 104, 122, 148,
                          185, 120, 67, 80,  190, 129, 111, 113, 64, 109, 101, 78,  63}},
      {Filter::bicubic, {90,  87,  81, 118, 230, 134, 145, 148, 87, 155, 112, 98, 120, 147,
                         204, 121, 54, 80,  194, 125, 109, 119, 59, 111, 105, 74, 60}}};
  for (const auto& [filter, pixels] : wanted)
    BOOST_TEST(resized(p, 3, 9, filter).pixels == pixels, boost::test_tools::per_element());
  Sizing sizing{.shorter = 4, .crop_height = 2, .crop_width = 3, .filter = Filter::bicubic};
  BOOST_TEST((sized(p, sizing, "p").pixels == std::vector<uint8_t>{88, 190, 149, 108, 116, 136}));
  BOOST_TEST((sized(p, {.crop_height = 1, .crop_width = 1}, "p").pixels == std::vector<uint8_t>{p.pixels[17]}));
  BOOST_TEST((sized(p, {}, "p").pixels == p.pixels));
  BOOST_TEST(describe(sizing) == "the shorter side resized to 4 (bicubic), 2 x 3 cut out of the centre");
  sizing.crop_height = 9;
  BOOST_TEST(throws_with([&] { sized(p, sizing, "p"); }, "p is too small: expected at least 9 x 3"));
  BOOST_TEST(throws_with([&] { sized(p, {.shorter = 16384}, "p"); }, "p would be too large"));
}

BOOST_AUTO_TEST_CASE(png_files) {
  const std::vector<uint8_t> rgb = {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 8, 7};  // 2 x 2
  const Image plain = decoded(png(PNG_FORMAT_RGB, 2, 2, rgb));
  BOOST_TEST((colour(plain, 0, 1) == std::vector<int>{0, 255, 0}));
  BOOST_TEST((colour(plain, 1, 1) == std::vector<int>{9, 8, 7}));
  const Image grey = decoded(png(PNG_FORMAT_GRAY, 1, 2, {10, 200}));
  BOOST_TEST((colour(grey, 0, 1) == std::vector<int>{200, 200, 200}));
  const Image clear = decoded(png(PNG_FORMAT_RGBA, 1, 2, {40, 50, 60, 255, 40, 50, 60, 0}));  // laid on white
  BOOST_TEST((colour(clear, 0, 0) == std::vector<int>{40, 50, 60}));
  BOOST_TEST((colour(clear, 0, 1) == std::vector<int>{255, 255, 255}));
  const std::vector<uint8_t> map = {1, 2, 3, 70, 80, 90};
  png_image palette{};
  palette.version = PNG_IMAGE_VERSION, palette.width = 2, palette.height = 1, palette.format = PNG_FORMAT_RGB_COLORMAP;
  palette.colormap_entries = 2;
  std::string bytes(4096, '\0');
  png_alloc_size_t size = bytes.size();
  const uint8_t ids[] = {1, 0};
  BOOST_REQUIRE(png_image_write_to_memory(&palette, bytes.data(), &size, 0, ids, 0, map.data()) != 0);
  BOOST_TEST((colour(decoded(bytes.substr(0, size)), 0, 0) == std::vector<int>{70, 80, 90}));
  std::vector<uint8_t> wide(12);  // 16 bits
  for (size_t i = 6; i < 12; ++i) wide[i] = 255;
  const Image sixteen = decoded(png(PNG_FORMAT_LINEAR_RGB, 1, 2, wide));
  BOOST_TEST((colour(sixteen, 0, 0) == std::vector<int>{0, 0, 0}));
  BOOST_TEST((colour(sixteen, 0, 1) == std::vector<int>{255, 255, 255}));
}

BOOST_AUTO_TEST_CASE(bad_png_files) {
  const std::string good = png(PNG_FORMAT_RGB, 8, 8, std::vector<uint8_t>(192, 77));
  for (const size_t length : {9ul, 20ul, 33ul, good.size() / 2, good.size() - 20})
    rejects(good.substr(0, length), "damage");
  std::string flipped = good;
  flipped[good.size() - 20] = static_cast<char>(flipped[good.size() - 20] ^ 0x55);
  rejects(flipped, "damage");
  // A header that claims 65535 x 65535 is rejected by its size, with a checksum that is right.
  std::string bomb = good;
  for (const size_t at : {16ul, 20ul}) bomb.replace(at, 4, std::string("\0\0\xff\xff", 4));
  const uint32_t crc = static_cast<uint32_t>(crc32(0, reinterpret_cast<const unsigned char*>(bomb.data()) + 12, 17));
  for (int i = 0; i < 4; ++i) bomb[static_cast<size_t>(29 + i)] = static_cast<char>(crc >> (24 - 8 * i));
  rejects(bomb, "found 3 x 65535 x 65535");
  std::string animated = good;
  animated.insert(33, std::string("\0\0\0\x8"
                                  "acTL\0\0\0\2\0\0\0\0\0\0\0\0",
                                  20));
  rejects(animated, "an animated PNG");
  rejects("GIF89a", "a GIF file");
  rejects("", "an empty file");
  rejects("hello", "another kind of file");
}

BOOST_AUTO_TEST_CASE(jpeg_files) {
  std::vector<uint8_t> red;
  for (int i = 0; i < 256; ++i) red.insert(red.end(), {200, 30, 40});
  const std::string good = jpeg(JCS_RGB, 3, 16, 16, red);
  const auto near = [](const Image& p, int r, int g, int b) {
    const std::vector<int> c = colour(p, 8, 8);
    return std::abs(c[0] - r) <= 3 && std::abs(c[1] - g) <= 3 && std::abs(c[2] - b) <= 3;
  };
  BOOST_TEST(near(decoded(good), 200, 30, 40));
  BOOST_TEST(near(decoded(jpeg(JCS_GRAYSCALE, 1, 16, 16, std::vector<uint8_t>(256, 99))), 99, 99, 99));
  std::vector<uint8_t> inks;  // inverted, as the marker of Adobe says: light left of cyan, magenta, yellow, black
  for (int i = 0; i < 256; ++i) inks.insert(inks.end(), {250, 100, 50, 128});
  BOOST_TEST(near(decoded(jpeg(JCS_CMYK, 4, 16, 16, inks)), 250 * 128 / 255, 100 * 128 / 255, 50 * 128 / 255));
  for (const size_t length : {4ul, 40ul, good.size() / 2, good.size() - 2}) rejects(good.substr(0, length), "damage");
  std::string bomb = good;
  const size_t frame = bomb.find("\xff\xc0");
  BOOST_REQUIRE(frame != std::string::npos);
  bomb.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  rejects(bomb, "found 3 x 65500 x 65500");
}

BOOST_AUTO_TEST_CASE(folders_of_classes) {
  const TempFolder scratch;
  const std::string one = png(PNG_FORMAT_RGB, 1, 1, {1, 2, 3});
  scratch.write("in/dog/b.png", one), scratch.write("in/dog/a.png", one), scratch.write("in/cat/c.png", one);
  scratch.write("in/.hidden", "x");
  std::vector<std::string> classes, names;
  std::vector<int64_t> labels;
  BadImages bad;
  const auto note = [&](const Image&, int64_t label, const std::string& name) {
    names.push_back(name), labels.push_back(label);
  };
  read_class_folder(scratch / "in", classes, note, bad);
  bad.raise();
  BOOST_TEST((classes == std::vector<std::string>{"cat", "dog"}));
  BOOST_TEST((labels == std::vector<int64_t>{0, 1, 1}));
  BOOST_TEST((names ==
              std::vector<std::string>{scratch / "in/cat/c.png", scratch / "in/dog/a.png", scratch / "in/dog/b.png"}));
  const auto rejects_folder = [&](const std::string& words) {
    BOOST_TEST(throws_with([&] { read_class_folder(scratch / "in", classes, note, bad); }, words));
  };
  scratch.write("in/notes.txt", "x"), scratch.write("in/odd.txt", "x");
  rejects_folder("one folder of images for each class, found notes.txt, odd.txt (2)");
  std::filesystem::remove(scratch / "in/notes.txt"), std::filesystem::remove(scratch / "in/odd.txt");
  std::filesystem::create_directory(scratch / "in/cow");
  scratch.write("in/emu/e.png", one);
  rejects_folder("expected some of cat, dog (2), found cow, emu (2)");
  classes.clear();
  rejects_folder("found none in cow");
}

// All damaged files are named in one error, and how many there are beyond the first twenty.
BOOST_AUTO_TEST_CASE(damaged_files_are_named_together) {
  const TempFolder scratch;
  const std::string one = png(PNG_FORMAT_RGB, 1, 1, {1, 2, 3});
  scratch.write("in/a/good.png", one), scratch.write("in/b/good.png", one);
  scratch.write("in/a/1.png", ""), scratch.write("in/b/2.png", one.substr(0, 40)), scratch.write("in/b/3.png", "hello");
  std::filesystem::create_directory(scratch / "in/b/folder");
  const auto error_of_folder = [&] {
    std::vector<std::string> classes;
    BadImages bad;
    int64_t good = 0;
    read_class_folder(
        scratch / "in", classes, [&](const Image&, int64_t, const std::string&) { ++good; }, bad);
    BOOST_TEST(good == 2);
    try {
      bad.raise();
    } catch (const Error& e) {
      BOOST_TEST((e.kind() == ErrorKind::input));
      return std::string(e.what());
    }
    return std::string("no error");
  };
  const std::string few = error_of_folder();
  for (const char* words : {"cannot decode 4 of 6 images: ", "in/a/1.png: expected a PNG or JPEG file, found an empty",
                            "in/b/2.png: expected a whole PNG", "in/b/3.png: ", "in/b/folder", "; fix or remove these"})
    BOOST_TEST(few.find(words) != std::string::npos, "'" << words << "' is not in '" << few << "'");
  for (int i = 0; i < 21; ++i) scratch.write("in/b/z" + std::to_string(i), "x");
  const std::string many = error_of_folder();
  for (const char* words : {"cannot decode 25 of 27 images: ", "in/a/1.png", "; and 5 more; fix"})
    BOOST_TEST(many.find(words) != std::string::npos, "'" << words << "' is not in '" << many << "'");
  BOOST_TEST(many.find("in/b/z9") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(changes_are_functions_of_the_key) {
  const Image p = sample();
  const AugmentOptions all{.crop_padding = 3, .flip = true, .randaugment_ops = 2, .erase = 0.5};
  std::set<std::vector<uint8_t>> seen;
  for (uint64_t k = 0; k < 20; ++k) {
    const Image a = augmented(p, all, {k, 1}), b = augmented(p, all, {k, 1});
    BOOST_TEST((a.pixels == b.pixels));
    BOOST_TEST(a.pixels.size() == p.pixels.size());
    seen.insert(a.pixels);
  }
  BOOST_TEST(seen.size() >= 18u);
  BOOST_TEST((augmented(p, {}, {1, 1}).pixels == p.pixels));
  // Flips: one of two images, about as often.
  int flips = 0;
  for (uint64_t k = 0; k < 200; ++k) {
    const Image f = augmented(p, {.flip = true}, {k, 1});
    const bool mirrored = f.pixels != p.pixels;
    flips += mirrored;
    for (int64_t x = 0; mirrored && x < p.width; ++x) BOOST_REQUIRE(colour(f, 3, x) == colour(p, 3, p.width - 1 - x));
  }
  BOOST_TEST(flips > 70);
  BOOST_TEST(flips < 130);
  // Crops: the image moved by at most the padding, zeros beside it.
  std::set<std::vector<uint8_t>> crops;
  for (uint64_t k = 0; k < 100; ++k) crops.insert(augmented(p, {.crop_padding = 1}, {k, 2}).pixels);
  BOOST_TEST(crops.size() == 9u);
  BOOST_TEST(crops.contains(p.pixels));
}

BOOST_AUTO_TEST_CASE(operations_of_randaugment) {
  for (const int64_t channels : {1, 3}) {
    const Image p = sample(channels, 24, 24);
    for (int64_t op = 0; op < kRandAugmentOps; ++op) {
      const Image none = randaugment_op(p, op, 0), some = randaugment_op(p, op, 1.0 / 3);
      // Automatic contrast and equalisation have no strength; colour does nothing to grey.
      if (op != 1 && op != 2) BOOST_TEST((none.pixels == p.pixels), op);
      if (op > 0 && !(op == 6 && channels == 1)) BOOST_TEST((some.pixels != p.pixels), op);
      BOOST_TEST(some.pixels.size() == p.pixels.size());
    }
  }
  const Image flat{1, 1, 3, {50, 100, 150}};
  BOOST_TEST((randaugment_op(flat, 1, 1).pixels == std::vector<uint8_t>{0, 128, 255}));
  BOOST_TEST((randaugment_op(flat, 4, 0.5).pixels == std::vector<uint8_t>{50, 100, 105}));  // from 128 on inverted
  BOOST_TEST((randaugment_op(flat, 5, 1).pixels == std::vector<uint8_t>{48, 96, 144}));     // four bits
  BOOST_TEST((randaugment_op(flat, 8, 1).pixels == std::vector<uint8_t>{95, 190, 255}));    // 1.9 times as bright
  BOOST_TEST((randaugment_op(flat, 7, -1).pixels == std::vector<uint8_t>{95, 100, 105}));   // a tenth of the contrast
  BOOST_TEST((randaugment_op(flat, 12, 1).pixels == std::vector<uint8_t>{100, 150, 128}));  // one pixel from the right
  BOOST_TEST(throws_with([&] { randaugment_op(flat, 14, 1); }, "no operation 14"));
}

BOOST_AUTO_TEST_SUITE_END()
