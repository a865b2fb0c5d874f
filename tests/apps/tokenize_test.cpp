// braid tokenize through the real program.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/apps/support.h"
#include "tests/models/data/tokenizers/fixtures.h"

using namespace braid::test;

BOOST_AUTO_TEST_SUITE(tokenize)

BOOST_AUTO_TEST_CASE(tokens_of_a_text_one_per_line) {
  const Scratch scratch;
  write(scratch / "tokenizer.json", golden_text("llama2/tokenizer.json"));
  Outcome result = run("tokenize " + scratch.path.string() + " 'the\n</s>' --special");
  BOOST_TEST(result.code == 0);
  for (const char* part : {"      1  <s>  (special)\n", " the\n", "\\n", "      2  </s>  (special)\n", " tokens\n"})
    BOOST_TEST(result.output.find(part) != std::string::npos, result.output);
  result = run("tokenize " + (scratch / "tokenizer.json").string() + " '</s>' --as-text");
  BOOST_TEST(result.output.find("(special)") == std::string::npos);
  result = run("tokenize " + scratch.path.string(), "printf 'the' |");
  BOOST_TEST(result.output.find(" the\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(lines_in_and_lines_out) {
  const Scratch scratch;
  write(scratch / "tokenizer.json", golden_text("llama3/tokenizer.json"));
  std::string in, expected;
  for (const nlohmann::json& line : golden_lines("llama3/modes.jsonl")) {
    in += nlohmann::json{{"text", line["t"]}}.dump() + "\n";
    expected += line["special"].dump() + "\n";
  }
  write(scratch / "in.jsonl", in);
  const std::string files = (scratch / "in.jsonl").string() + " " + (scratch / "out.jsonl").string();
  const Outcome result = run("tokenize " + scratch.path.string() + " --jsonl " + files + " --special --stats");
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(result.output.find(" lines in ") != std::string::npos);
  BOOST_TEST(result.output.find(" MB/s") != std::string::npos);
  std::string found;
  for (const std::string& line : braid::detail::split(slurp(scratch / "out.jsonl"), '\n'))
    if (!line.empty()) found += nlohmann::json::parse(line)["ids"].dump() + "\n";
  BOOST_TEST((found == expected));
}

BOOST_AUTO_TEST_CASE(the_lines_are_not_replaced_by_their_tokens) {
  const Scratch scratch;
  write(scratch / "tokenizer.json", golden_text("llama3/tokenizer.json"));
  write(scratch / "in.jsonl", "{\"text\": \"a\"}\n");
  const std::string in = (scratch / "in.jsonl").string(), command = "tokenize " + scratch.path.string() + " --jsonl ";
  const Outcome same = run(command + in + " " + in), dash = run(command + in + " -");
  BOOST_TEST((same.code == 2 && has(same, "--jsonl would replace " + in)), same.output);
  BOOST_TEST((dash.code == 2 && has(dash, "--jsonl - is no name")), dash.output);
  BOOST_TEST(slurp(in) == "{\"text\": \"a\"}\n");
}

BOOST_AUTO_TEST_CASE(the_field_of_the_text) {
  const Scratch scratch;
  write(scratch / "tokenizer.json", golden_text("llama3/tokenizer.json"));
  write(scratch / "in.jsonl",
        "{\"t\": \"of earlier versions\"}\n{\"t\": 1, \"text\": \"the default\", \"body\": \"b\"}\n");
  const std::string files = (scratch / "in.jsonl").string() + " " + (scratch / "out.jsonl").string();
  const auto texts = [&] {
    std::vector<std::string> found;
    for (const std::string& line : braid::detail::split(slurp(scratch / "out.jsonl"), '\n'))
      if (!line.empty()) found.push_back(nlohmann::json::parse(line)["d"].get<std::string>());
    return found;
  };
  Outcome result = run("tokenize " + scratch.path.string() + " --jsonl " + files);
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(texts() == std::vector<std::string>({"of earlier versions", "the default"}),
             boost::test_tools::per_element());
  result = run("tokenize " + scratch.path.string() + " --text-field body --jsonl " + files);
  BOOST_TEST(result.code == 3);
  BOOST_TEST(result.output.find("bad line 1 in ") != std::string::npos, result.output);
  BOOST_TEST(result.output.find("expected {\"body\": text}") != std::string::npos, result.output);
  write(scratch / "in.jsonl", "{\"t\": 1, \"text\": \"the default\", \"body\": \"b\"}\n");
  BOOST_TEST(run("tokenize " + scratch.path.string() + " --text-field body --jsonl " + files).code == 0);
  BOOST_TEST(texts() == std::vector<std::string>{"b"}, boost::test_tools::per_element());
  result = run("tokenize " + scratch.path.string() + " --text-field body text");
  BOOST_TEST(result.code == 2);
  BOOST_TEST(result.output.find("expected --jsonl IN OUT beside it") != std::string::npos, result.output);
}

// What other forms of tokenizers are converted with, in every command that reads one.
BOOST_AUTO_TEST_CASE(a_tokenizer_of_another_form_is_converted_once) {
  const Scratch scratch;
  for (const char* file : {"tokenizer.model", "merges.txt", "vocab.txt"}) {
    const std::filesystem::path folder = scratch / file;
    std::filesystem::create_directories(folder);
    write(folder / file, "x");
    for (const std::string& command :
         {"tokenize " + folder.string() + " text",
          "prepare " + folder.string() + " --tokenizer " + folder.string() + " -o " + (scratch / "data").string()}) {
      const Outcome result = run(command);
      BOOST_TEST(result.code == 3, result.output);
      for (const char* part :
           {"no tokenizer.json in ", file, "which Braid does not read", "from_pretrained('.').save_pretrained('.')"})
        BOOST_TEST(result.output.find(part) != std::string::npos, result.output);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_it_cannot_read) {
  const Scratch scratch;
  BOOST_TEST(run("tokenize " + scratch.path.string() + " text").code == 3);
  write(scratch / "tokenizer.json", golden_text("llama3/tokenizer.json"));
  write(scratch / "in.jsonl", "{\"t\": \"a\"}\n{\"body\": \"b\"}\n");
  const std::string files = (scratch / "in.jsonl").string() + " " + (scratch / "out.jsonl").string();
  Outcome result = run("tokenize " + scratch.path.string() + " --jsonl " + files);
  BOOST_TEST(result.code == 3);
  BOOST_TEST(result.output.find("line 2 in ") != std::string::npos, result.output);
  BOOST_TEST(!std::filesystem::exists(scratch / "out.jsonl"));
  result = run("tokenize " + scratch.path.string() + " text --jsonl " + files);
  BOOST_TEST(result.code == 2);
}

BOOST_AUTO_TEST_SUITE_END()
