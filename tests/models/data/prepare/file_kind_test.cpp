#include "braid/models/data/prepare/file_kind.h"

#include <boost/test/unit_test.hpp>

using namespace braid::models::text;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(text_file_kind)

namespace {

// "lines", "list", "text", or what it is.
std::string kind(const std::string& name, const std::string& bytes) {
  const FoundKind found = kind_of_file(name, bytes);
  const char* names[] = {"text", "lines", "list"};
  return found.kind == FileKind::other ? found.what : names[static_cast<int>(found.kind)];
}

}  // namespace

BOOST_AUTO_TEST_CASE(json_by_its_bytes) {
  const std::string object = R"({"text": "a}\"[", "n": [{}, NaN]})",
                    long_object = R"({"text": ")" + std::string(20000, 'x');
  for (const char* name : {"f.txt", "f.json", "f", "F.JSONL", "f.Ndjson.GZ"}) {
    BOOST_TEST(kind(name, object) == "lines", name);
    BOOST_TEST(kind(name, "\n " + object + "\r\n\n" + object + "\n") == "lines", name);
    BOOST_TEST(kind(name, long_object) == "lines", name);
    BOOST_TEST(kind(name, "\xEF\xBB\xBF[" + object + ",\n" + object + "]\n") == "list", name);
    BOOST_TEST(kind(name, "[\n  " + long_object) == "list", name);
  }
  BOOST_TEST(kind("f.jsonl", "no JSON") == "lines");  // an error with its line
  BOOST_TEST(kind("f.jsonl", "[1]\n") == "lines");
  BOOST_TEST(kind("f.json", "{\n  \"data\": [" + object + "]\n}\n") == "a JSON object");
  BOOST_TEST(kind("f.txt", "{\n\"a\": 1}\n{\n\"a\": 2}") == "a JSON object");
  BOOST_TEST(kind("f.JSON", R"(["a", "b"])") == "JSON without objects");
}

BOOST_AUTO_TEST_CASE(text_that_only_begins_like_json) {
  for (const std::string text :
       {"[Verse 1]\nA line", "[{not JSON}]", "{ int x; }", "{\"a\": 1}\nand text", "{\"a\": 1} {\"b\": 2}",
        "[1] A reference", "{}", "[]", "\"quoted\"", "{\"a\": 'x'}", "{\n\"a\": 1}\ntext"})
    BOOST_TEST(kind("f.txt", text) == "text", text);
  BOOST_TEST(kind("f.json", "// comment\n{}") == "text");
  // A name that promises JSON: reading finds the mistake.
  BOOST_TEST(kind("f.json", "{\"a\": 1}\nand text") == "lines");
  BOOST_TEST(kind("f.txt", "[{\"a\": 1} mistake") == "list");
}

BOOST_AUTO_TEST_CASE(other_formats_by_their_first_bytes) {
  const std::pair<std::string, const char*> formats[] = {{"PAR1\x15\0"s, "a file of columns (Parquet)"},
                                                         {"\x1F\x8B\x08"s, "data that were compressed twice"},
                                                         {"\x28\xB5\x2F\xFD"s, "data that were compressed twice"},
                                                         {"BZh91AY&SY"s, "bzip2 data"},
                                                         {"\xFD\x37zXZ\0"s, "xz data"},
                                                         {"PK\3\4"s, "a zip archive"},
                                                         {std::string(257, 'a') + "ustar\0"s, "a tar archive"},
                                                         {"\x89PNG\r\n\x1A\n"s, "a PNG image"},
                                                         {"%PDF-1.7"s, "a PDF document"},
                                                         {"\x80\4\x95"s, "a pickle of Python"},
                                                         {"\xFF\xFE!\0"s, "text in UTF-16"},
                                                         {"\x93NUMPY"s, "an array of NumPy"},
                                                         {"BRAIDTOK"s, "a token shard"}};
  for (const auto& [bytes, what] : formats)
    for (const char* name : {"f.txt", "f.jsonl"}) BOOST_TEST(kind(name, bytes) == what, what);
  for (const std::string text :
       {"PARTS", "BZh is short", "BZh", "PKs", "LZIP is a program", "GIFs", "\xEF\xBB\xBFtext", "\xFF"})
    BOOST_TEST(kind("f.txt", text) == "text", text);
}

BOOST_AUTO_TEST_SUITE_END()
