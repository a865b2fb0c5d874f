#include "braid/models/eval/documents.h"

#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "tests/models/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models::eval;

namespace {

struct DocumentFiles {
  TempFolder folder;
  std::string write(const std::string& text, const std::string& name = "f.jsonl") const {
    const std::string path = folder / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
};

TaskTemplate choices() {
  return {.contexts = {FormatString("Q: {q}", "x")},
          .choices = {FormatString("{choices}", "x")},
          .choice_list = true,
          .gold = FormatString("{gold}", "x")};
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(eval_documents, DocumentFiles)

BOOST_AUTO_TEST_CASE(a_list_of_choices) {
  const auto d =
      read_documents(choices(), write("{\"q\": \"a\", \"choices\": [\"x\", \"y\"], \"gold\": 1}\n\n"
                                      "{\"q\": \"b\", \"choices\": [\"z\", \"w\", \"v\"], \"gold\": \"0\"}"));
  BOOST_REQUIRE(d.size() == 2u);
  BOOST_TEST(d[0].contexts == (std::vector<std::string>{"Q: a", "Q: a"}), boost::test_tools::per_element());
  BOOST_TEST(d[0].choices == (std::vector<std::string>{"x", "y"}), boost::test_tools::per_element());
  BOOST_TEST(d[0].gold == 1);
  BOOST_TEST(d[1].gold == 0);
  BOOST_TEST(d[1].location.line == 3);
  BOOST_TEST(!d[0].same(d[1]));
}

// The right choice as a boolean, a label and the text itself.
BOOST_AUTO_TEST_CASE(forms_of_the_right_choice) {
  const auto gold = [&](const std::string& value, const TaskTemplate& form) {
    return read_documents(form,
                          write(R"({"q": "a", "choices": ["x", "y"], "names": ["A", "1"], "gold": )" + value + "}"))
        .at(0)
        .gold;
  };
  BOOST_TEST(gold("true", choices()) == 1);
  BOOST_TEST(gold("false", choices()) == 0);
  BOOST_TEST(gold("\"y\"", choices()) == 1);
  TaskTemplate labelled = choices();
  labelled.labels = {"1", "2"};
  BOOST_TEST(gold("\"1\"", labelled) == 0);
  BOOST_TEST(gold("2", labelled) == 1);
  TaskTemplate listed = choices();
  listed.has_label_list = true;
  listed.label_list = FormatString("{names}", "x");
  BOOST_TEST(gold("\"A\"", listed) == 0);
  BOOST_TEST(gold("\"1\"", listed) == 1);
}

BOOST_AUTO_TEST_CASE(one_context_for_each_choice) {
  TaskTemplate form = choices();
  form.contexts = {FormatString("{q|before '_'}A", "x"), FormatString("{q|before '_'}B", "x")};
  form.choices = {FormatString("{q|after '_'|strip}", "x")};
  form.choice_list = false;
  const auto d = read_documents(form, write(R"({"q": "the _ runs", "gold": 1})"));
  BOOST_TEST(d[0].contexts == (std::vector<std::string>{"the A", "the B"}), boost::test_tools::per_element());
  BOOST_TEST(d[0].choices == (std::vector<std::string>{"runs", "runs"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(right_answers_of_a_text_that_is_generated) {
  TaskTemplate form{
      .kind = TaskKind::generate, .contexts = {FormatString("{q}", "x")}, .choices = {FormatString("{a}", "x")}};
  const auto answers = [&](const std::string& line) { return read_documents(form, write(line)).at(0).choices; };
  using Texts = std::vector<std::string>;
  BOOST_TEST(answers(R"({"q": "", "a": ["x", "y"]})") == (Texts{"x", "y"}), boost::test_tools::per_element());
  BOOST_TEST(answers(R"({"q": "", "a": 12})") == (Texts{"12"}), boost::test_tools::per_element());
  BRAID_CHECK_FAILS(answers(R"({"q": "", "a": []})"), ErrorKind::input,
                    "expected a right answer or more, found an empty");
  BRAID_CHECK_FAILS(answers(R"({"q": "", "a": [1]})"), ErrorKind::input, "expected a list of strings as choices");
  form.choices = {FormatString("{a}", "x"), FormatString("the {b}", "x")};
  BOOST_TEST(answers(R"({"q": "", "a": "x", "b": 2})") == (Texts{"x", "the 2"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(wrong_lines) {
  const std::string good = "{\"q\": \"a\", \"choices\": [\"x\", \"y\"], \"gold\": 1}\n";
  const auto rejects = [&](const std::string& line, const std::string& words) {
    const std::string path = write(good + line);
    BRAID_CHECK_FAILS(read_documents(choices(), path), ErrorKind::input, "bad line 2 in " + path, words);
  };
  rejects("{\"q\": 1", "cannot read JSON");
  rejects("[1]", "expected a JSON object, found [1]");
  rejects(R"({"q": "a", "choice": ["x"], "gold": 1})",
          "expected the field 'choices', found the fields choice, gold, q");
  rejects(R"({"q": "a", "choices": "x", "gold": 1})", "expected a list of strings as choices, found \"x\"");
  rejects(R"({"q": "a", "choices": ["x", 2], "gold": 1})", "expected a list of strings as choices");
  rejects(R"({"q": "a", "choices": ["x"], "gold": 0})", "expected two choices or more, found 1");
  rejects(R"({"q": "a", "choices": [], "gold": 0})", "expected two choices or more");
  rejects(R"({"q": "a", "choices": ["x", ""], "gold": 0})", "expected text as choice 1, found an empty one");
  rejects(R"({"q": "a", "choices": ["x", "y"], "gold": 2})", "the right choice as an index from 0 to 1, found 2");
  rejects(R"({"q": "a", "choices": ["x", "y"], "gold": -1})", "found -1");
  rejects(R"({"q": "a", "choices": ["x", "y"], "gold": "z"})", "found z");
  TaskTemplate labelled = choices();
  labelled.labels = {"A", "B"};
  BRAID_CHECK_FAILS(read_documents(labelled, write(good)), ErrorKind::input, "expected one of the labels A, B",
                    "found 1");
  BRAID_CHECK_FAILS(read_documents(choices(), write("")), ErrorKind::input, "found an empty file");
  BRAID_CHECK_FAILS(read_documents(choices(), write("\n \n")), ErrorKind::input, "no item in ");
  BRAID_CHECK_FAILS(read_documents(choices(), "nowhere.jsonl"), ErrorKind::input, "nowhere.jsonl");
}

BOOST_AUTO_TEST_CASE(texts_and_compressed_files) {
  TaskTemplate form{.kind = TaskKind::text, .text = FormatString("{page}", "x")};
  const auto whole = read_texts(form, write("{\"page\": 1}\nabc", "t.txt"));
  BOOST_REQUIRE(whole.size() == 1u);
  BOOST_TEST(whole[0].text == "{\"page\": 1}\nabc");
  const std::string path = folder / "p.jsonl.gz", lines = "{\"page\": \"a\"}\n{\"page\": \"\"}\n{\"page\": \"b\"}";
  const gzFile file = gzopen(path.c_str(), "wb");
  BOOST_REQUIRE(gzwrite(file, lines.data(), static_cast<unsigned>(lines.size())) > 0);
  gzclose(file);
  const auto pages = read_texts(form, path);
  BOOST_REQUIRE(pages.size() == 2u);
  BOOST_TEST(pages[1].text == "b");
  BOOST_TEST(pages[1].where == "line 3 of " + path);
  BRAID_CHECK_FAILS(read_texts(form, write("{\"page\": \"\"}")), ErrorKind::input, "found empty texts");
  form.text_filter = Filters("wikitext", "x");
  const auto filtered = read_texts(form, write("{\"page\": \"1 @-@ 2\"}"));
  BOOST_TEST(filtered[0].text == "1-2");
  BOOST_TEST(filtered[0].unfiltered.value() == "1 @-@ 2");
}

// What a file is, its bytes say.
BOOST_AUTO_TEST_CASE(files_of_any_name) {
  TaskTemplate form{.kind = TaskKind::text, .text = FormatString("{page}", "x")};
  for (const char* name : {"f.JSONL", "f.json", "f.txt", "f"}) {
    BOOST_TEST(read_texts(form, write("{\"page\": \"a\"}\n{\"page\": \"b\", \"x\": NaN}\n", name)).at(1).text == "b");
    BOOST_TEST(read_texts(form, write("[{\"page\": \"a\"},\n\n {\"page\": \"b\"}]\n", name))
                   .at(1)
                   .where.starts_with("line 3"));
  }
  BRAID_CHECK_FAILS(read_texts(form, write("%PDF-1.4", "f.txt")), ErrorKind::input, "found a PDF document");
  const auto listed = read_documents(choices(), write(R"([{"q": "a", "choices": ["x", "y"], "gold": 1}])", "f.txt"));
  BOOST_TEST(listed.at(0).gold == 1);
  BRAID_CHECK_FAILS(read_documents(choices(), write("only text", "f.txt")), ErrorKind::input, "found text");
  // Numbers as Python writes them.
  form.text = FormatString("{page} {x}", "x");
  BOOST_TEST(read_texts(form, write("{\"page\": NaN, \"x\": -Infinity}")).at(0).text == "nan -inf");
}

BOOST_AUTO_TEST_SUITE_END()
