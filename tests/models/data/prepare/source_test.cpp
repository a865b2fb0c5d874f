#include "braid/models/data/prepare/source.h"

#include <zlib.h>
#include <zstd.h>

#include <boost/test/unit_test.hpp>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(text_source)

namespace {

std::string gzip(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string random_text(size_t n) {
  std::string text;
  uint32_t state = 1;
  for (size_t i = 0; i < n; ++i) text += static_cast<char>('a' + (state = state * 1664525 + 1013904223) % 29 / 2);
  return text;
}

// All documents, pieces joined.
std::vector<std::string> documents(models::text::TextSource& source) {
  std::vector<std::string> all, notes = {};
  models::text::Piece piece;
  bool open = false;
  int64_t bytes_read = 0;
  while (source.next(piece)) {
    BOOST_TEST(piece.first == !open);
    BOOST_TEST((piece.jsonl || piece.size <= static_cast<size_t>(models::text::piece_bytes)));
    if (piece.first) all.emplace_back();
    std::string storage;
    all.back() += source.text_of(piece, storage);
    if (all.back().empty()) all.pop_back();
    open = !piece.last;
    BOOST_TEST(piece.bytes_read >= bytes_read);
    bytes_read = piece.bytes_read;
    notes.insert(notes.end(), piece.notes.begin(), piece.notes.end());
  }
  BOOST_TEST(!open);
  BOOST_TEST(bytes_read <= source.bytes_total());
  source.notes.insert(source.notes.begin(), notes.begin(), notes.end());
  return all;
}

std::vector<std::string> documents(const std::vector<std::string>& inputs,
                                   models::text::TextSource::Options options = {}) {
  models::text::TextSource source(inputs, options);
  return documents(source);
}

using Texts = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(empty_files_of_a_folder_are_left_out) {
  TempFolder folder;
  folder.write("in/a.txt", "text");
  for (const char* name : {"in/b.txt", "in/c.gz", "in/d.zst", "in/e.jsonl.gz"}) folder.write(name, "");
  models::text::TextSource source({folder / "in"}, {});
  BOOST_TEST((documents(source) == Texts{"text"}));
  BOOST_TEST(source.notes.size() == 4u);
  BOOST_TEST(source.notes[1].ends_with("in/c.gz is empty: left out"));
}

BOOST_AUTO_TEST_CASE(text_files_of_every_awkward_size_plain_and_compressed) {
  TempFolder folder;
  const auto p = static_cast<size_t>(models::text::piece_bytes);
  for (const size_t n : {size_t{1}, size_t{8191}, size_t{8193}, p - 1, p, p + 1, 2 * p, 3 * p + 7}) {
    const std::string text = random_text(n);
    const auto all = documents(
        {folder.write("a.txt", text), folder.write("b.txt.gz", gzip(text)), folder.write("c.md.zst", zstd(text))});
    BOOST_REQUIRE(all.size() == 3u);
    for (const auto& d : all) BOOST_TEST((d == text), "size " << n);
  }
}

BOOST_AUTO_TEST_CASE(several_members_and_frames_in_one_file) {
  TempFolder folder;
  const Texts expected{"onetwo", "onetwo"};
  BOOST_TEST(documents({folder.write("a.gz", gzip("one") + gzip("") + gzip("two")),
                        folder.write("a.zst", zstd("one") + zstd("") + zstd("two"))}) == expected,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(folders_are_sorted_and_hidden_empty_and_binary_files_left_out) {
  TempFolder folder;
  folder.write("in/b.txt", "second");
  folder.write("in/a/z.md", "first");
  folder.write("in/c.jsonl", "{\"text\": \"third\"}\n{\"text\": \"fourth\"}");
  folder.write("in/.git/config", "hidden");
  folder.write("in/.hidden", "hidden");
  folder.write("in/empty.txt", "");
  folder.write("in/image.png", std::string("P\0N", 3));
  std::filesystem::create_symlink("nowhere", folder / "in/dangling");
  models::text::TextSource source({folder / "in"}, {});
  const Texts expected{"first", "second", "third", "fourth"};
  BOOST_TEST(documents(source) == expected, boost::test_tools::per_element());
  BOOST_REQUIRE(source.notes.size() == 2u);
  BOOST_TEST(source.notes[0].find("empty.txt is empty") != std::string::npos);
  BOOST_TEST(source.notes[1].find("image.png is not text") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(jsonl_lines_of_any_length) {
  TempFolder folder;
  const std::string big = random_text(static_cast<size_t>(models::text::piece_bytes) * 2 + 5);
  std::string file = "\n{\"id\": [1, {\"text\": 2}], \"text\": \"\\u00e4\\n\\ud83d\\ude00\"}\r\n  \n";
  file += "{\"text\": \"" + big + "\", \"x\": null}\n{\"text\": \"\"}\n{\"text\": \"end\"}";
  const Texts expected{"ä\n😀", big, "end"};
  BOOST_TEST((documents({folder.write("a.jsonl", file)}) == expected));
  BOOST_TEST((documents({folder.write("a.jsonl.gz", gzip(file))}) == expected));
  BOOST_TEST((documents({folder.write("a.ndjson.zst", zstd(file + "\n"))}) == expected));
  BOOST_TEST((documents({folder.write("a.txt", file)}) == expected));  // what a file is, its bytes say
  BOOST_TEST((documents({folder.write("A.NDJSON.GZ", gzip(file))}) == expected));
  models::text::TextSource::Options body;
  body.text_field = "body";
  BOOST_TEST(documents({folder.write("b.jsonl", "{\"body\": \"x\", \"text\": 3}\n")}, body) == Texts{"x"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(jsonl_mistakes_name_the_line) {
  TempFolder folder;
  const auto fails = [&](const std::string& line, const std::string& part) {
    const std::string path = folder.write("a.jsonl", "{\"text\": \"fine\"}\n\n" + line + "\n");
    BRAID_CHECK_FAILS(documents({path}), ErrorKind::input, path + " at line 3", part);
  };
  fails("{\"txt\": \"a\"}", "a field \"text\" that holds the document, found none");
  fails(
      R"({"n": {"no": "x"}, "a": "x", "b": "x", "c": "x", "d": "x", "e": "x", "f": "x", "g": "x", "h": "x", "i": "x"})",
      R"(found none but text in "a", "b", "c", "d", "e", "f", "g", "h"; name the field with `text_field` a,)");
  fails("{\"text\": 5}", "a string in the field \"text\", found a number");
  fails("{\"text\": [\"a\"]}", "found an array");
  fails("{\"text\": \"a\", \"text\": \"b\"}", "found it twice");
  fails("[\"text\"]", "a JSON object, found an array");
  fails("\"text\"", "a JSON object, found a string");
  fails("{\"text\": \"a\"", "a mistake at column 13 (syntax error while parsing object - unexpected end of input");
  fails("{\"text\": \"a\"} {}", "a mistake at column 15");
  fails("{\"text\": \"\xff\"}", "a mistake at column 11");
  fails("{\"text\": \"a\"}" + std::string("\0x", 2), "a NUL byte at column 14");
  fails("{\"text\": NaN}", "a string in the field \"text\", found a number");
  fails("{\"x\": " + std::string(100000, '['), "64 nested levels");
}

// As the json module of Python writes and reads them.
BOOST_AUTO_TEST_CASE(numbers_of_fields_that_are_not_read) {
  TempFolder folder;
  const Texts expected{"a", "b: NaN"};
  const std::string lines =
      "{\"score\": NaN, \"text\": \"a\"}\n"
      "{\"text\": \"b: NaN\", \"x\": [Infinity, {\"y\": -Infinity}, 1e999, -1e999]}\n";
  BOOST_TEST(documents({folder.write("a.jsonl", lines)}) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_list_of_objects) {
  TempFolder folder;
  const std::string big = random_text(static_cast<size_t>(models::text::piece_bytes) * 3 + 5);
  const std::string list = "\xEF\xBB\xBF [ {\"text\": \"a ]},[\\\"\"}\n,\n\n{\"n\": [{}, NaN],\n\"text\": \"" + big +
                           "\"},{\"text\": \"c\"}\n]\n";
  const Texts expected{"a ]},[\"", big, "c"};
  for (const char* name : {"a.json", "a.jsonl", "a.txt"})
    BOOST_TEST((documents({folder.write(name, list)}) == expected));
  BOOST_TEST((documents({folder.write("a.json.gz", gzip(list))}) == expected));
  const auto fails = [&](const std::string& rest, const std::string& words) {
    const std::string path = folder.write("b.json", "[{\"text\": \"a\"}\n" + rest);
    BRAID_CHECK_FAILS(documents({path}), ErrorKind::input, "cannot read " + path + " at line 2: expected " + words);
  };
  fails("", "a comma or ] behind an object, found the end of the file");
  fails("{\"text\": \"b\"}]", "a comma or ] behind an object, found {");
  fails(",]", "an object, found ]");
  fails(",3]", "an object, found 3");
  fails(",{\"text\": \"b\"", "the end of the object, found the end of the file");
  fails("] x", "nothing behind the list, found x");
  fails(",{\"txt\": \"b\"}]", "a field \"text\" that holds the document, found none but text in \"txt\"");
}

// In a folder JSON without text is there for something else; nothing that is no text is taken for text.
BOOST_AUTO_TEST_CASE(files_of_other_kinds_are_left_out_of_folders_and_errors_when_named) {
  TempFolder folder;
  folder.write("in/a.txt", "text");
  folder.write("in/b.json", R"([{"text": "listed"}])");
  const std::string settings = folder.write("in/c.json", R"({"name": "x", "private": true})"),
                    object = folder.write("in/d.json", "{\n  \"name\": \"x\"\n}"),
                    pdf = folder.write("in/e.txt", "%PDF-1.4 text"), twice = folder.write("in/f.gz", gzip(gzip("x")));
  models::text::TextSource source({folder / "in"}, {});
  BOOST_TEST((documents(source) == Texts{"text", "listed"}));
  BOOST_REQUIRE(source.notes.size() == 4u);
  BOOST_TEST(source.notes[0] == settings + " is JSON without text in the field \"text\": left out");
  BOOST_TEST(source.notes[1] == object + " is not text (a JSON object): left out");
  BOOST_TEST(source.notes[2] == pdf + " is not text (a PDF document): left out");
  BRAID_CHECK_FAILS(documents({settings}), ErrorKind::input, "found none but text in \"name\"");
  BRAID_CHECK_FAILS(documents({object}), ErrorKind::input, "cannot use " + object,
                    "found a JSON object; write its items");
  BRAID_CHECK_FAILS(documents({pdf}), ErrorKind::input, "found a PDF document");
  BRAID_CHECK_FAILS(documents({twice}), ErrorKind::input, "compressed twice");
  BRAID_CHECK_FAILS(documents({folder.write("g.PARQUET", "x")}), ErrorKind::input, "columns (parquet)");
  models::text::TextSource latin({folder.write("l.txt", "na\xEFve")}, {});
  BOOST_TEST(documents(latin).size() == 1u);
  BOOST_TEST(latin.notes.at(0).ends_with("l.txt is no UTF-8 (byte 2): its bytes are used as they are"));
}

BOOST_AUTO_TEST_CASE(what_the_tools_of_the_formats_read) {
  TempFolder folder;
  const std::string text = random_text(300'000), skipped = std::string("\x5A\x2A\x4D\x18\x03\0\0\0abc", 11);
  const Texts expected{text + "two"};
  const std::string padded = gzip(text) + std::string(1000, '\0') + gzip("two") + std::string(200'000, '\0');
  BOOST_TEST((documents({folder.write("a.txt", padded)}) == expected));  // a gzip file, whatever its name
  BOOST_TEST((documents({folder.write("a.txt", skipped + zstd(text) + skipped + zstd("two") + skipped)}) == expected));
  BRAID_CHECK_FAILS(documents({folder.write("a.gz", gzip(text) + "garbage")}), ErrorKind::input, "damaged gzip");
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  ZSTD_inBuffer from{text.data(), text.size(), 0};
  BOOST_REQUIRE(ZSTD_compressStream2(context, &to, &from, ZSTD_e_continue) != 0 || from.pos == from.size);
  BOOST_REQUIRE(ZSTD_compressStream2(context, &to, &from, ZSTD_e_end) == 0);
  ZSTD_freeCCtx(context);
  out.resize(to.pos);
  // Bits 7 to 3 of the byte behind the descriptor are the exponent of the window: 2^10 bytes, twice as many, ...
  for (const int exponent : {27, 28}) {
    out[5] = static_cast<char>((exponent - 10) << 3);
    BOOST_TEST((documents({folder.write("a.zst", out)}) == Texts{text}), exponent);
  }
  out[5] = '\xF8';
  BRAID_CHECK_FAILS(documents({folder.write("a.zst", out)}), ErrorKind::input, "a window of at most 2 GiB");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_utf8_as_asked) {
  using models::text::InvalidText;
  TempFolder folder;
  const std::string file = folder.write("l.txt", "na\xEFve \xE2\x82"), clean = folder.write("c.txt", "naïve");
  const std::string lines = folder.write("l.jsonl", "{\"text\": \"\xEF\\ud83d\\ude00 \\ud83d \\\\ud83d \\uDE00\"}\n");
  const auto read = [&](InvalidText invalid, const std::string& path) {
    models::text::TextSource source({path}, {.require_utf8 = true, .invalid = invalid});
    models::text::Piece piece;
    BOOST_REQUIRE(source.next(piece));
    std::string storage;
    models::text::Repairs repairs;
    const std::string text(source.text_of(piece, storage, &repairs));
    return text + " " + std::to_string(repairs.count);
  };
  BOOST_TEST(read(InvalidText::replace, file) == "na\uFFFDve \uFFFD 2");
  BOOST_TEST(read(InvalidText::skip, file) == "nave  2");
  BRAID_CHECK_FAILS(read(InvalidText::error, file), ErrorKind::input, file + " at byte 2",
                    "`invalid` to replace or skip");
  BOOST_TEST(read(InvalidText::replace, clean) == "naïve 0");
  BOOST_TEST(read(InvalidText::replace, lines) == "\uFFFD😀 \uFFFD \\ud83d \uFFFD 3");
  BOOST_TEST(read(InvalidText::skip, lines) == "😀  \\ud83d  3");
  BRAID_CHECK_FAILS(read(InvalidText::by_input, lines), ErrorKind::input, "l.jsonl at line 1");
}

BOOST_AUTO_TEST_CASE(damaged_compression_is_noticed) {
  TempFolder folder;
  const std::string text = random_text(300'000), g = gzip(text), z = zstd(text);
  for (const size_t cut : {size_t{1}, size_t{12}, g.size() / 2, g.size() - 1}) {
    const std::string path = folder.write("a.txt.gz", g.substr(0, cut));
    BRAID_CHECK_FAILS(documents({path}), ErrorKind::input, "damaged gzip data in " + path, "end of the file");
  }
  for (const size_t cut : {size_t{1}, size_t{12}, z.size() / 2, z.size() - 1}) {
    const std::string path = folder.write("a.txt.zst", z.substr(0, cut));
    BRAID_CHECK_FAILS(documents({path}), ErrorKind::input, "damaged zstd data in " + path, "end of the file");
  }
  std::string flipped = g;
  flipped[g.size() - 6] ^= 1;  // in the checksum
  BRAID_CHECK_FAILS(documents({folder.write("a.gz", flipped)}), ErrorKind::input, "damaged gzip");
  BRAID_CHECK_FAILS(documents({folder.write("a.zst", "this is no zstd file")}), ErrorKind::input, "damaged zstd");
  BRAID_CHECK_FAILS(documents({folder.write("a.gz", "")}), ErrorKind::input, "damaged gzip");
  BRAID_CHECK_FAILS(documents({folder.write("a.zst", "")}), ErrorKind::input, "damaged zstd");
}

BOOST_AUTO_TEST_CASE(bad_inputs_get_a_sentence) {
  TempFolder folder;
  models::text::TextSource::Options strict{.require_utf8 = true};
  BRAID_CHECK_FAILS(documents({folder / "none"}), ErrorKind::input, "no such file or folder");
  std::filesystem::create_directory(folder / "void");
  BRAID_CHECK_FAILS(documents({folder / "void"}), ErrorKind::input, "holds no file");
  BRAID_CHECK_FAILS(documents({folder.write("e.txt", "")}), ErrorKind::input, "found an empty file");
  BRAID_CHECK_FAILS(documents({folder.write("e.txt.gz", gzip(""))}), ErrorKind::input, "found an empty file");
  const std::string nul = folder.write("n.bin", std::string("ab\0c", 4));
  BRAID_CHECK_FAILS(documents({nul}, strict), ErrorKind::input, nul + " at byte 2", "NUL", "byte tokenizer");
  const std::string latin = folder.write("l.txt", "na\xEFve");
  BRAID_CHECK_FAILS(documents({latin}, strict), ErrorKind::input, latin + " at byte 2", "UTF-8", "iconv");
  const std::string p(static_cast<size_t>(models::text::piece_bytes) - 1, 'x');
  BOOST_TEST(documents({folder.write("u.txt", p + "ä")}, strict).size() == 1u);  // cut inside a character is fine
  BRAID_CHECK_FAILS(documents({folder.write("u.txt", p + "\xC3")}, strict), ErrorKind::input, "at byte 1048575");
  folder.write("in/l.txt", "na\xEFve");
  BOOST_TEST((documents({folder / "in"}, strict) == Texts{"na\xEF\xBF\xBDve"}));  // not named
  BRAID_CHECK_FAILS(documents({folder.write("u.jsonl", "{\"text\": \"\\u0000\"}")}, strict), ErrorKind::input, "line 1",
                    "NUL");
}

BOOST_AUTO_TEST_CASE(the_byte_view_takes_anything_named) {
  TempFolder folder;
  models::text::TextSource source({folder.write("n.bin", std::string("a\0\xff", 3))}, {});
  BOOST_TEST((documents(source) == Texts{std::string("a\0\xff", 3)}));
}

BOOST_AUTO_TEST_CASE(patterns_match_sorted_and_formats_of_columns_are_rejected_by_name) {
  TempFolder folder;
  folder.write("in/b.txt", "second");
  folder.write("in/a.txt", "first");
  folder.write("in/c.md", "other");
  BOOST_TEST((documents({folder / "in/*.txt"}) == Texts{"first", "second"}));
  BRAID_CHECK_FAILS(documents({folder / "in/*.json"}), ErrorKind::input, "no file matches the pattern");
  BOOST_TEST((documents({folder.write("in/[x].txt", "brackets")}) == Texts{"brackets"}));  // a name, no pattern
  const std::string columns = folder.write("in/d.parquet", "PAR1");
  BRAID_CHECK_FAILS(documents({columns}), ErrorKind::input, columns, "columns (parquet)", "read_parquet", "to_json");
  BRAID_CHECK_FAILS(documents({folder / "in"}), ErrorKind::input, columns, "name the other files");
  BRAID_CHECK_FAILS(documents({folder.write("a.txt.xz", "x")}), ErrorKind::input, "found .xz", "unpack");
  models::text::TextSource twice({folder / "in/a.txt", folder / "in/../in/a.txt"}, {});
  BOOST_TEST((documents(twice) == Texts{"first", "first"}));
  BOOST_REQUIRE(twice.notes.size() == 1u);
  BOOST_TEST(twice.notes[0].find("in/a.txt is given twice") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(text_in_another_field_is_named) {
  TempFolder folder;
  const std::string path =
      folder.write("a.jsonl", "{\"id\": 7, \"content\": \"a\", \"meta\": {\"x\": \"y\"}, \"url\": \"b\"}\n");
  BRAID_CHECK_FAILS(documents({path}), ErrorKind::input, "found none but text in \"content\", \"url\"",
                    "`text_field` content");
}

BOOST_AUTO_TEST_CASE(another_source_goes_on_behind_any_piece) {
  TempFolder folder;
  const std::string big = random_text(static_cast<size_t>(models::text::piece_bytes) * 2 + 5);
  const std::string lines = "{\"text\": \"a\"}\n\n{\"text\": \"b\"}\n{\"text\": \"c\"}";
  const std::string list =
      "[{\"text\": \"a\"},\n\n{\"text\": \"" + std::string(10'000, 'b') + "\"}, {\"text\": \"c\"}]\n";
  const Texts inputs{folder.write("a.txt", big), folder.write("b.txt.gz", gzip(big)), folder.write("c.jsonl", lines),
                     folder.write("d.jsonl.zst", zstd(lines)), folder.write("e.json", list)};
  std::vector<models::text::Piece> all;
  models::text::TextSource source(inputs, {});
  for (models::text::Piece piece; source.next(piece);) all.push_back(piece);
  BOOST_TEST(all.size() == 15u);
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    models::text::TextSource other(inputs, {});
    other.go_to(all[i].after);
    models::text::Piece piece;
    for (size_t k = i + 1; k < all.size(); ++k) {
      BOOST_REQUIRE(other.next(piece));
      BOOST_TEST((piece.bytes == all[k].bytes && piece.size == all[k].size && piece.file == all[k].file));
      BOOST_TEST((piece.line == all[k].line && piece.offset == all[k].offset && piece.first == all[k].first));
    }
    BOOST_TEST(!other.next(piece));
  }
}

BOOST_AUTO_TEST_CASE(long_text_is_cut_where_words_end) {
  using models::text::part_of;
  BOOST_TEST(part_of("short", 10) == 5u);
  BOOST_TEST(part_of("one\ntwo\nthree", 9) == 8u);     // behind the last line end that fits
  BOOST_TEST(part_of("one\ntwo\n\nthree", 10) == 4u);  // but between other characters only
  BOOST_TEST(part_of("one\ntwo\r\n three", 10) == 4u);
  BOOST_TEST(part_of("one\ntwo\xc2\xa0\nthree", 12) == 4u);  // a no-break space
  BOOST_TEST(part_of("one\ntw\xc3\xa4\nthree", 10) == 9u);
  BOOST_TEST(part_of("one two three", 9) == 7u);  // before a blank
  BOOST_TEST(part_of("one  two, three", 12) == 12u);
  BOOST_TEST(part_of("\xc3\xa4\xc3\xa4", 3) == 2u);  // behind a character
}

BOOST_AUTO_TEST_CASE(hashes_are_those_of_the_published_function) {
  // The first vectors of the authors of SipHash: key 00 ... 0f, message 00 01 ... of increasing length.
  const auto hash = [](size_t n, size_t cut) {
    std::string message;
    for (size_t i = 0; i < n; ++i) message += static_cast<char>(i);
    models::text::DocumentHasher hasher;
    hasher.add(std::string_view(message).substr(0, cut));
    hasher.add(std::string_view(message).substr(cut));
    return hasher.finish();
  };
  BOOST_TEST((hash(0, 0) == models::text::Hash128{0xe6a825ba047f81a3, 0x930255c71472f66d}));
  BOOST_TEST((hash(1, 0) == models::text::Hash128{0x44af996bd8c187da, 0x45fc229b11597634}));
  for (size_t cut = 0; cut <= 40; ++cut) BOOST_TEST((hash(40, cut) == hash(40, 0)));
}

BOOST_AUTO_TEST_SUITE_END()
