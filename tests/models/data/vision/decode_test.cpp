// Pixels of PNG and JPEG files against Pillow's, byte by byte: every depth and form of transparency, files that name a
// gamma, and the orientations of EXIF.
#include "braid/models/data/vision/decode.h"

#include <zlib.h>

#include <boost/test/unit_test.hpp>

#include "braid/models/data/vision/orientation.h"
#include "tests/models/data/vision/jpeg.h"

using namespace braid;
using namespace braid::models::vision;

BOOST_AUTO_TEST_SUITE(vision_decode)

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int v : values) text += static_cast<char>(v);
  return text;
}
std::string big(uint32_t n, int count) {
  std::string text;
  for (int i = count - 1; i >= 0; --i) text += static_cast<char>(n >> (8 * i));
  return text;
}
std::string words(std::initializer_list<uint32_t> values) {  // of 16 bits
  std::string text;
  for (const uint32_t v : values) text += big(v, 2);
  return text;
}

std::string chunk(const std::string& kind, const std::string& content) {
  const std::string text = kind + content;
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
  return big(static_cast<uint32_t>(content.size()), 4) + text + big(static_cast<uint32_t>(crc), 4);
}

struct Png {
  int width = 1, height = 1, depth = 8, type = 0;
  std::string rows;         // each behind its filter, 0
  std::string before = {};  // chunks before the pixels
  std::string after = {};
  int interlaced = 0;

  std::string file() const {
    std::string packed(rows.size() + 100, '\0');
    uLongf size = packed.size();
    BOOST_REQUIRE(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
                           rows.size()) == Z_OK);
    packed.resize(size);
    const std::string header = big(static_cast<uint32_t>(width), 4) + big(static_cast<uint32_t>(height), 4) +
                               bytes({depth, type, 0, 0, interlaced});
    return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + before + chunk("IDAT", packed) + after + chunk("IEND", "");
  }
};

Image decoded(const std::string& file) { return decode_image(std::as_bytes(std::span(file)), "p"); }

// Red, green and blue of each pixel, row by row.
std::vector<int> colours(const std::string& file) {
  const Image p = decoded(file);
  std::vector<int> all;
  for (int64_t y = 0; y < p.height; ++y)
    for (int64_t x = 0; x < p.width; ++x)
      for (int64_t c = 0; c < 3; ++c) all.push_back(p.pixels[p.at(c, y, x)]);
  return all;
}

constexpr int kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgba = 6;

void check_png(const Png& png, const std::vector<int>& wanted) {
  BOOST_TEST(colours(png.file()) == wanted, boost::test_tools::per_element());
}
// The same where the colours are grey.
void check_grey(const Png& png, const std::vector<int>& wanted) {
  std::vector<int> all;
  for (const int v : wanted) all.insert(all.end(), 3, v);
  check_png(png, all);
}

// A TIFF structure whose first directory has a width and the orientation as a value of this type.
std::string exif(int orientation, bool big_endian, int type = 3) {
  const auto number = [&](uint32_t n, int count) {
    std::string text = big(n, count);
    if (!big_endian) std::reverse(text.begin(), text.end());
    return text;
  };
  const int size = type == 4 ? 4 : type == 3 ? 2 : 1;
  const auto entry = [&](uint32_t tag, int kind, const std::string& value) {
    return number(tag, 2) + number(static_cast<uint32_t>(kind), 2) + number(1, 4) + value +
           std::string(4 - value.size(), '\0');
  };
  return (big_endian ? "MM" : "II") + number(42, 2) + number(8, 4) + number(2, 2) + entry(0x100, 3, number(7, 2)) +
         entry(0x112, type, number(static_cast<uint32_t>(orientation), size)) + number(0, 4);
}

// A bright upper left quarter, 8 x 16 pixels.
std::string jpeg_file() {
  std::vector<uint8_t> pixels(8 * 16, 10);
  for (size_t y = 0; y < 4; ++y) std::fill_n(pixels.begin() + static_cast<std::ptrdiff_t>(16 * y), 8, uint8_t{200});
  return test::jpeg(JCS_GRAYSCALE, 1, 8, 16, pixels);
}

std::string with_marker(const std::string& jpeg, const std::string& content) {
  return jpeg.substr(0, 2) + bytes({0xFF, 0xE1}) + big(static_cast<uint32_t>(content.size() + 2), 2) + content +
         jpeg.substr(2);
}

const std::string kExif("Exif\0\0", 6);

}  // namespace

BOOST_AUTO_TEST_CASE(every_depth_gives_its_coded_values) {
  check_grey({.width = 8, .depth = 1, .rows = bytes({0, 0xA5})}, {255, 0, 255, 0, 0, 255, 0, 255});
  check_grey({.width = 4, .depth = 2, .rows = bytes({0, 0x1B})}, {0, 85, 170, 255});
  check_grey({.width = 4, .depth = 4, .rows = bytes({0, 0x1F, 0x80})}, {17, 255, 136, 0});
  check_grey({.width = 3, .rows = bytes({0, 9, 128, 255})}, {9, 128, 255});
  const auto wide = words({0, 255, 256, 32767, 32768, 32896, 65279, 65535});
  const std::vector<int> high = {0, 0, 1, 127, 128, 128, 254, 255};
  check_grey({.width = 8, .depth = 16, .rows = bytes({0}) + wide}, high);
  check_png({.width = 2, .depth = 16, .type = kRgb, .rows = bytes({0}) + words({0, 256, 32768, 65535, 32767, 255})},
            {0, 1, 128, 255, 127, 0});
  check_png({.width = 2,
             .depth = 2,
             .type = kPalette,
             .rows = bytes({0, 0x60}),
             .before = chunk("PLTE", bytes({0, 1, 2, 50, 60, 70, 200, 210, 220}))},
            {50, 60, 70, 200, 210, 220});
  // Adam7: the first column is one pass, the second another.
  check_png({.width = 2, .type = kRgb, .rows = bytes({0, 1, 2, 3, 0, 4, 5, 6}), .interlaced = 1}, {1, 2, 3, 4, 5, 6});
}

BOOST_AUTO_TEST_CASE(transparent_pixels_are_laid_on_white) {
  check_png({.width = 4, .type = kRgba, .rows = bytes({0, 0, 0, 0, 128, 0, 0, 0, 64, 40, 50, 60, 255, 9, 9, 9, 0})},
            {127, 127, 127, 191, 191, 191, 40, 50, 60, 255, 255, 255});
  check_grey({.width = 2, .type = kGreyAlpha, .rows = bytes({0, 0, 128, 100, 200})}, {127, 133});
  check_grey({.width = 2, .depth = 16, .type = kGreyAlpha, .rows = bytes({0}) + words({32768, 65535, 0, 0x80FF})},
             {128, 127});
  check_png({.depth = 16, .type = kRgba, .rows = bytes({0}) + words({0, 32768, 65535, 0x8000})}, {127, 191, 255});
  check_png({.width = 3,
             .depth = 2,
             .type = kPalette,
             .rows = bytes({0, 0x18}),
             .before = chunk("PLTE", bytes({0, 0, 0, 10, 20, 30, 200, 210, 220})) + chunk("tRNS", bytes({128, 0}))},
            {127, 127, 127, 255, 255, 255, 200, 210, 220});
  // One colour is transparent: all bits of it count.
  check_png({.width = 2, .type = kRgb, .rows = bytes({0, 1, 2, 3, 4, 5, 6}), .before = chunk("tRNS", words({4, 5, 6}))},
            {1, 2, 3, 255, 255, 255});
  check_grey({.width = 4, .depth = 4, .rows = bytes({0, 0x1F, 0x80}), .before = chunk("tRNS", words({8}))},
             {17, 255, 255, 0});
  check_grey(
      {.width = 2, .depth = 16, .rows = bytes({0}) + words({32768, 32769}), .before = chunk("tRNS", words({32768}))},
      {255, 128});
}

BOOST_AUTO_TEST_CASE(chunks_about_colour_change_nothing) {
  const std::string gamma = chunk("gAMA", big(100000, 4)), small = chunk("gAMA", big(30000, 4)),
                    srgb = chunk("sRGB", bytes({0})), bits = chunk("sBIT", bytes({5, 6, 5})),
                    white = chunk("bKGD", words({9, 9, 9}));
  const std::string chroma = chunk("cHRM", big(31270, 4) + big(32900, 4) + big(70000, 4) + big(20000, 4) +
                                               big(17000, 4) + big(79700, 4) + big(13100, 4) + big(4600, 4));
  for (const std::string& before : {gamma, small, srgb, bits, white, gamma + chroma, chunk("iCCP", "p")}) {
    check_png({.type = kRgb, .rows = bytes({0, 128, 17, 201}), .before = before}, {128, 17, 201});
    check_grey({.depth = 16,
                .type = kGreyAlpha,
                .rows = bytes({0}) + words({0, 0x8000}),
                .before = before == bits    ? chunk("sBIT", bytes({5, 5}))
                          : before == white ? ""
                                            : before},
               {127});
  }
}

BOOST_AUTO_TEST_CASE(a_png_that_ends_early_is_damaged) {
  const std::string file = Png{.rows = bytes({0, 7})}.file();
  BOOST_CHECK_NO_THROW(decoded(file));
  for (const size_t lost : {1ul, 12ul, 13ul, 30ul})
    BOOST_CHECK_THROW(decoded(file.substr(0, file.size() - lost)), BadImage);
}

BOOST_AUTO_TEST_CASE(eight_orientations) {
  const std::vector<std::vector<int>> wanted = {
      {10, 20, 30, 40, 50, 60}, {30, 20, 10, 60, 50, 40}, {60, 50, 40, 30, 20, 10}, {40, 50, 60, 10, 20, 30},
      {10, 40, 20, 50, 30, 60}, {40, 10, 50, 20, 60, 30}, {60, 30, 50, 20, 40, 10}, {30, 60, 20, 50, 10, 40}};
  const std::string jpeg = jpeg_file();
  const Image lying = decoded(jpeg);
  for (int o = 1; o <= 8; ++o) {
    for (const bool big_endian : {false, true}) {
      const std::string block = exif(o, big_endian);
      for (const std::string& content : {block, kExif + block})
        for (const bool before : {true, false}) {
          Png png{.width = 3, .height = 2, .rows = bytes({0, 10, 20, 30, 0, 40, 50, 60})};
          (before ? png.before : png.after) = chunk("eXIf", content);
          check_grey(png, wanted[static_cast<size_t>(o - 1)]);
          BOOST_TEST(decoded(png.file()).height == (o < 5 ? 2 : 3));
        }
      // A JPEG is turned as the PNG is, also behind a marker of another kind.
      for (const std::string& first : {std::string(), std::string("XMP\0Exif", 8)}) {
        std::string file = with_marker(jpeg, kExif + block);
        if (!first.empty()) file = with_marker(file, first);
        const Image turned = decoded(file), same = upright(lying, o);
        BOOST_TEST(turned.height == (o < 5 ? 8 : 16));
        BOOST_TEST((turned.height == same.height && turned.pixels == same.pixels), o);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(exif_without_a_usable_orientation_turns_nothing) {
  const auto of = [](const std::string& text) { return exif_orientation(std::as_bytes(std::span(text))); };
  for (const int type : {1, 3, 4})
    for (const bool big_endian : {false, true}) BOOST_TEST(of(exif(6, big_endian, type)) == 6);
  for (const int o : {0, 9, 255}) BOOST_TEST(of(exif(o, true)) == 1);
  BOOST_TEST(of(exif(6, true, 2)) == 1);  // a text
  const std::string good = exif(6, false);
  for (size_t n = 0; n + 6 < good.size(); ++n) BOOST_TEST(of(good.substr(0, n)) == 1, n);  // 4 of the value, 4 behind
  BOOST_TEST(of("XX" + good.substr(2)) == 1);
  std::string far = good;
  far[5] = far[6] = far[7] = '\xff';
  BOOST_TEST(of(far) == 1);
}

BOOST_AUTO_TEST_SUITE_END()
