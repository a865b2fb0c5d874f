// dataset.json and the files that it vouches for.
#include "braid/models/data/text/manifest.h"

#include <boost/test/unit_test.hpp>

#include "tests/models/data/prepare/support.h"
#include "tests/support/throws.h"

BOOST_AUTO_TEST_SUITE(text_manifest)

// tests/simulation/corruption.cpp flips every bit.
BOOST_AUTO_TEST_CASE(a_changed_file_beside_the_shards_is_noticed) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("a.txt", thousand_lines()), folder.write("b.txt", thousand_lines())},
                   .output = folder / "out",
                   .val_fraction = 0.1};
  models::text::prepare(o);
  const auto with = [&](const std::string& name, const std::string& from, const std::string& to) {
    const std::string before = folder.read("out/" + name);
    std::string text = before;
    BOOST_REQUIRE(text.find(from) != std::string::npos);
    folder.write("out/" + name, text.replace(text.find(from), from.size(), to));
    return [&folder, name, before] { folder.write("out/" + name, before); };
  };
  const auto fails = [&](const std::string& words, const auto& restore) {
    BRAID_CHECK_FAILS(models::text::read_manifest(o.output), ErrorKind::input, words);
    restore();
    models::text::read_manifest(o.output);
  };
  fails("a file that belongs to the data has changed", with("tokenizer_config.json", "{", "{ "));
  fails("a file that belongs to the data has changed", with("tokenizer.json", "{", "{ "));
  fails("bad field \"crc32c\"", with("dataset.json", "a.txt", "c.txt"));  // no part of the fingerprint
  fails("bad field \"crc32c\"", with("dataset.json", "crc32c", "crc32d"));
}

BOOST_AUTO_TEST_SUITE_END()
