#include "apps/eval/templates.h"

#include <boost/test/unit_test.hpp>

#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;
using namespace braid::test;
using models::eval::TaskKind;

namespace {

struct TemplateFile {
  Scratch scratch;
  models::eval::Document first(const std::string& name, const std::string& line) const {
    const TemplateText* text = find_template(name);
    BOOST_REQUIRE(text != nullptr);
    write(scratch / "f.jsonl", line + "\n");
    return models::eval::read_documents(parse_template(*text), (scratch / "f.jsonl").string()).at(0);
  }
};

void rejects(const std::string& toml, const std::string& words) {
  BRAID_CHECK_FAILS(parse_template({"t.toml", toml}), ErrorKind::setting, words);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(eval_templates, TemplateFile)

// A line of each data set's shape.
BOOST_AUTO_TEST_CASE(each_template_reads_its_data_set) {
  models::eval::Document d = first("choices", R"({"context": "c", "choices": ["x", "y"], "gold": 1})");
  BOOST_TEST(d.contexts[0] == "c");
  BOOST_TEST(d.gold == 1);
  d = first("last_word", R"({"context": "a b", "target": " c"})");
  BOOST_TEST(d.choices[0] == " c");
  d = first("lambada", R"({"text": "a b c"})");
  BOOST_TEST(d.contexts[0] == "a b");
  BOOST_TEST(d.choices[0] == " c");
  d = first("lambada", R"({"text": "alone"})");
  BOOST_TEST(d.contexts[0] == "");
  BOOST_TEST(d.choices[0] == " alone");
  d = first("arc", R"({"question": "Q?", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answerKey": "B"})");
  BOOST_TEST(d.contexts[1] == "Question: Q?\nAnswer:");
  BOOST_TEST(d.gold == 1);
  d = first("openbookqa",
            R"({"question_stem": "Q", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answerKey": " A"})");
  BOOST_TEST(d.contexts[0] == "Q");
  BOOST_TEST(d.gold == 0);
  d = first("piqa", R"({"goal": "G", "sol1": "x", "sol2": "y", "label": 1})");
  BOOST_TEST(d.contexts[0] == "Question: G\nAnswer:");
  BOOST_TEST(d.choices[1] == "y");
  d = first("hellaswag", R"({"activity_label": "Run", "ctx_a": "[header] Go.", "ctx_b": "he IS", "label": "3",)"
                         R"( "endings": ["a [title] b", " b", "c", "d [step] e"]})");
  BOOST_TEST(d.contexts[0] == "Run: Go. He is");
  d = first("hellaswag",
            R"({"activity_label": "\u00a0Run", "ctx_a": "a [b\nc]", "ctx_b": "\u00e9lan HE\u3000", "label": "3",)"
            R"( "endings": ["a [title] b", " b", "c", "d [step] e"]})");
  BOOST_TEST(d.contexts[0] == "Run: a [b\nc] \u00c9lan he");
  BOOST_TEST(d.choices[0] == "a. b");
  BOOST_TEST(d.choices[3] == "d e");
  BOOST_TEST(d.gold == 3);
  d = first("winogrande", R"({"sentence": "The _ ran off.", "option1": "ox", "option2": "ax", "answer": "2"})");
  BOOST_TEST(d.contexts[1] == "The ax");
  BOOST_TEST(d.choices[1] == "ran off.");
  BOOST_TEST(d.gold == 1);
  d = first("boolq", R"({"passage": "P", "question": "is it", "label": 0})");
  BOOST_TEST(d.contexts[0] == "P\nQuestion: is it?\nAnswer:");
  BOOST_TEST(d.gold == 0);
  d = first("sciq", R"({"support": " S", "question": "Q", "distractor1": "a", "distractor2": "b", "distractor3": "c",)"
                    R"( "correct_answer": "d"})");
  BOOST_TEST(d.contexts[0] == "S\nQuestion: Q\nAnswer:");
  BOOST_TEST(d.choices[static_cast<size_t>(d.gold)] == "d");
  d = first("mmlu",
            R"({"question": " Q ", "subject": "us_foreign_policy", "choices": ["a", "b", "c", "d"], "answer": 2})");
  BOOST_TEST(d.description ==
             "The following are multiple choice questions (with answers) about us foreign policy.\n\n");
  BOOST_TEST(d.contexts[0] == "Q\nA. a\nB. b\nC. c\nD. d\nAnswer:");
  BOOST_TEST(d.choices[2] == "C");
  d = first("generate", R"({"context": "c", "target": ["x", "y"]})");
  BOOST_TEST(d.choices[1] == "y");
  d = first("gsm8k", R"({"question": "Q?", "answer": "3 + 1\n#### 4"})");
  BOOST_TEST(d.contexts[0] == "Question: Q?\nAnswer:");
  BOOST_TEST(d.choices[0] == "3 + 1\n#### 4");
  const auto gsm8k = parse_template(*find_template("gsm8k")).generate;
  BOOST_TEST(gsm8k.filter.find("so\n#### -1,234.5.\n#### 7").value() == "-1234.5");
  BOOST_TEST(gsm8k.target_filter("x\n#### $1,200", {}) == "1200");
  BOOST_TEST(gsm8k.stops.size() == 3u);
  BOOST_TEST(gsm8k.max_tokens == 256);
  for (const TemplateText& text : built_in_templates()) BOOST_CHECK_NO_THROW(parse_template(text));
  BOOST_TEST((parse_template(*find_template("wikitext")).kind == TaskKind::text));
}

BOOST_AUTO_TEST_CASE(wrong_templates) {
  rejects("kind = \"choices\"\ncontxt = \"a\"\n",
          "unknown task field 'contxt' in t.toml line 2: expected one of kind, text, context,");
  rejects("contxt = \"a\"\n", "did you mean 'context'?");
  rejects("kind = \"choice\"",
          "bad value for kind in t.toml line 1: expected one of text, last_word, choices, generate, found 'choice'");
  rejects("context = \"a\"", "bad task t.toml: expected the field 'kind', found none");
  rejects("kind = \"choices\"\ncontext = \"a\"\nchoices = \"{c}\"", "expected the field 'gold'");
  rejects("kind = \"choices\"\ncontext = 3\nchoices = \"{c}\"\ngold = \"0\"",
          "bad value for context in t.toml line 2: expected a text, found 3");
  rejects(
      "kind = \"choices\"\ncontext = \"a\"\nchoices = [\"{c}\", 1]\ngold = \"0\"",
      "bad value for choices in t.toml line 3: expected a list of only integers or only strings, found a mixed one");
  rejects("kind = \"choices\"\ncontext = \"a\"\ncontexts = [\"a\"]\nchoices = \"{c}\"\ngold = \"0\"",
          "no field 'context'");
  rejects("kind = \"last_word\"\ncontext = \"a\"\ntarget = \"b\"\ngold = \"0\"",
          "a task of kind last_word has no field 'gold'");
  rejects("kind = \"text\"\ntext = \"{a\"", "bad text for text in t.toml line 2: expected a } behind every {");
  rejects("kind = \"text\"\ntext = \"{a}\"\ntarget = \"b\"", "a task of kind text has no field 'target'");
  rejects("kind = \"choices\"\ncontext = \"a\"\nchoices = \"{c}\"\ngold = \"0\"\ntext_filter = \"strip\"",
          "a task of kind choices has no field 'text_filter'");
  rejects("kind = \"text\"\ntext = \"{a}\"\ndescription = \"b\"", "a task of kind text has no field 'description'");
  const std::string generate = "kind = \"generate\"\ncontext = \"a\"\ntarget = \"{b}\"\n";
  BOOST_CHECK_NO_THROW(parse_template({"t.toml", generate + "samples = 2\ntemperature = 0.8\ntop_p = 1\n"}));
  rejects("kind = \"text\"\ntext = \"{a}\"\nstop = \"b\"", "a task of kind text has no field 'stop'");
  rejects(generate + "gold = \"0\"", "a task of kind generate has no field 'gold'");
  rejects(generate + "max_tokens = 0",
          "bad value for max_tokens in t.toml line 4: expected an integer from 1 to 1048576, found 0");
  rejects(generate + "max_tokens = 1.5", "expected an integer from 1 to 1048576, found 1.5");
  rejects(generate + "temperature = \"x\"",
          "bad value for temperature in t.toml line 4: expected a number from 0 to 100");
  rejects(generate + "samples = 2",
          "bad task t.toml: samples above 1 expect a temperature above 0, found 0, which makes them equal");
  rejects(generate + "match = \"exakt\"",
          "bad value for match in t.toml line 4: expected one of exact, contains, regex, found 'exakt'; did you mean");
  rejects(generate + "ignore = [\"case\", \"dots\"]", "expected one of case, punctuation, commas, found 'dots'");
  rejects(generate + "match = \"regex\"\nignore = \"commas\"", "match = \"regex\" expects ignore = \"case\" or none");
  rejects(generate + "stop = [\"a\", \"\"]", "an empty string among the stop strings");
  rejects(generate + "filter = \"first_match '('\"",
          "bad text for first_match of filter in t.toml line 4: expected a regular expression, found '('");
  rejects("kind = ", "cannot read t.toml line 1");
}

BOOST_AUTO_TEST_SUITE_END()
