#include "braid/models/data/tasks/tasks.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <sstream>

#include "braid/models/data/tasks/words.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(text_tasks)

using models::text::ByteSpan;
using models::text::TaskSample;
using models::text::TaskWords;
using models::text::Vocabulary;

namespace {

// A second reading of the task texts, by a person's rules: it parses the sentences, tries every candidate and says
// which answers fit. It shares only the word lists with the generator.
std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  size_t begin = 0, at;
  while ((at = text.find(by, begin)) != std::string::npos) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + by.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string bare(std::string phrase) {
  for (const std::string article : {"a ", "an ", "A ", "An ", "the ", "The "})
    if (phrase.starts_with(article) && !std::isdigit(static_cast<unsigned char>(phrase[article.size()]))) {
      phrase = phrase.substr(article.size());
      break;
    }
  if (phrase.starts_with("The 1")) phrase[0] = 't';
  return phrase;
}

struct Fact {
  std::string person, value;
};

class Solver {
 public:
  explicit Solver(const TaskWords& words) : words_(words) {}

  // All answers that fit a line whose answer is cut off.
  std::set<std::string> solve(const std::string& line) const {
    return line.starts_with("There are ") ? solve_odd(line) : solve_persons(line);
  }

 private:
  // The value as a question with these words names it; empty when it has no such form.
  std::string related(const std::string& question, const std::string& value) const {
    if (question.find("a kind of") != std::string::npos) return label(words_.things, value);
    if (question.find("a city in") != std::string::npos || question.find("A city in") != std::string::npos)
      return label(words_.cities, value);
    if (question.find("thing that can") != std::string::npos) return label(words_.tools, value);
    if (question.find("A kind of") != std::string::npos) return label(words_.things, value);
    if (question.find("opposite of") != std::string::npos) {
      for (const auto& [a, b] : words_.opposites) {
        if (a == value) return b;
        if (b == value) return a;
      }
      return "";
    }
    const bool before = question.find("just before") != std::string::npos;
    if (before || question.find("just after") != std::string::npos) {
      for (const auto& line : words_.times)
        for (size_t i = 0; i < line.values.size(); ++i)
          if (line.values[i] == value && question.find(" " + line.unit + " ") != std::string::npos) {
            const size_t n = line.values.size();
            if (!line.round && (i == 0 || i == n - 1)) return "";
            return line.values[before ? (i + 1) % n : (i + n - 1) % n];
          }
      return "";
    }
    return value;
  }
  static std::string label(const std::vector<models::text::WordGroup>& groups, const std::string& value) {
    for (const auto& g : groups)
      for (const auto& m : g.members) {
        std::string word = bare(m), expected = value;
        if (word == expected) return g.label;
      }
    return "";
  }
  static std::string lower_first(std::string s, const TaskWords& words) {
    // "Tea belongs to": a mass noun at the beginning of a sentence.
    std::string low = s;
    low[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(low[0])));
    for (const auto& g : words.things)
      for (const auto& m : g.members)
        if (bare(m) == low) return low;
    return s;
  }
  Fact parse(const std::string& sentence) const {
    const auto cut = [&](const std::string& by) { return split(sentence, by); };
    if (sentence.starts_with("People call ")) {
      const std::string rest = sentence.substr(12);
      const size_t at = rest.find(' ');
      return {rest.substr(0, at), rest.substr(at + 1)};
    }
    if (const auto p = cut(" belongs to "); p.size() == 2) return {p[1], lower_first(bare(p[0]), words_)};
    if (const auto p = cut(" attracts "); p.size() == 2) return {p[1], p[0]};
    if (const auto p = cut(" has "); p.size() == 2) return {p[0], bare(p[1])};
    if (const auto p = cut(" likes "); p.size() == 2) return {p[0], p[1]};
    if (const auto p = cut(" is "); p.size() == 2) return {p[0], p[1]};
    for (const std::string preposition : {"on", "in", "at"}) {
      if (const auto p = cut(" arrived " + preposition + " "); p.size() == 2) return {p[0], p[1]};
      std::string first = preposition + " ";
      first[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(first[0])));
      if (sentence.starts_with(first) && sentence.ends_with(" arrived")) {
        const std::string middle = sentence.substr(3, sentence.size() - 3 - 8);
        const size_t at = middle.rfind(' ');
        return {middle.substr(at + 1), middle.substr(0, at)};
      }
    }
    BOOST_FAIL("no rule reads: " << sentence);
    return {};
  }
  std::set<std::string> solve_persons(const std::string& line) const {
    BOOST_REQUIRE(line.starts_with("< "));
    const auto halves = split(line, ". >. ");
    BOOST_REQUIRE_EQUAL(halves.size(), 2u);
    std::vector<Fact> facts;
    for (const auto& s : split(halves[0].substr(2), ". ")) facts.push_back(parse(s));
    BOOST_REQUIRE_EQUAL(facts.size(), 3u);
    const std::string& question = halves[1];
    const bool negated = question.find(" not ") != std::string::npos;
    std::map<std::string, std::set<std::string>> has;  // person -> related values
    std::set<std::string> all;
    for (const auto& f : facts) {
      const std::string r = related(question, f.value);
      BOOST_REQUIRE_MESSAGE(!r.empty(), line << " / " << f.value);
      has[f.person].insert(r);
      all.insert(r);
    }
    std::set<std::string> fitting;
    if (question.starts_with("Who ")) {
      const size_t mark = question.find('?');
      BOOST_REQUIRE(mark != std::string::npos);
      int mentioned = 0;
      for (const auto& value : all)
        if (question.substr(0, mark).ends_with(" " + value)) {
          ++mentioned;
          for (const auto& [person, values] : has)
            if (values.contains(value) != negated) fitting.insert(person);
        }
      BOOST_REQUIRE_EQUAL(mentioned, 1);
    } else {
      const std::string person = question.substr(0, question.find(' '));
      BOOST_REQUIRE(has.contains(person));
      for (const auto& value : all)
        if (has.at(person).contains(value) != negated) fitting.insert(value);
    }
    return fitting;
  }
  std::set<std::string> solve_odd(const std::string& line) const {
    const size_t stop = line.find(". Which");
    BOOST_REQUIRE(stop != std::string::npos);
    std::map<std::string, int> count;
    for (const auto& item : split(line.substr(10, stop - 10), ", ")) ++count[item];
    BOOST_REQUIRE_EQUAL(count.size(), 2u);
    const std::string question = line.substr(stop + 2);
    std::set<std::string> fitting;
    for (const auto& [item, times] : count) {
      const std::string asked = "Which is not " + item + "?";
      if (question.starts_with("Which is not ")) {
        if (!question.starts_with(asked)) fitting.insert(related(question, bare(item)));
      } else if (times == 1) {
        fitting.insert(related(question, bare(item)));
      }
    }
    // The class of the odd one must also not be the class of the others.
    for (const auto& [item, times] : count)
      if (times == 2) BOOST_REQUIRE(!fitting.contains(related(question, bare(item))));
    return fitting;
  }

  const TaskWords& words_;
};

std::set<std::string> all_words(const TaskWords& w) {
  std::set<std::string> all(w.names.begin(), w.names.end());
  const auto add = [&](const std::string& s) {
    for (const auto& word : split(bare(s), " "))
      if (word != "the" && word != "o'clock") BOOST_CHECK_MESSAGE(all.insert(word).second, word << " is listed twice");
  };
  for (const auto* groups : {&w.things, &w.cities, &w.tools})
    for (const auto& g : *groups) {
      add(g.label);
      for (const auto& m : g.members) add(m);
    }
  for (const auto& [a, b] : w.opposites) add(a), add(b);
  for (const auto& t : w.times) {
    add(t.unit);
    for (const auto& v : t.values) add(v);
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_answer_is_the_only_one_that_fits) {
  for (const Vocabulary vocabulary : {Vocabulary::train, Vocabulary::held_out}) {
    const Solver solver(models::text::task_words(vocabulary));
    for (int64_t i = 0; i < 40 * models::text::task_count(); ++i) {
      const TaskSample s = models::text::make_task_sample(vocabulary, 7, i);
      BOOST_REQUIRE(s.text.ends_with('\n'));
      const auto lines = split(s.text.substr(0, s.text.size() - 1), "\n");
      BOOST_REQUIRE_EQUAL(lines.size(), 8u);
      BOOST_REQUIRE_EQUAL(std::set<std::string>(lines.begin(), lines.end()).size(), 8u);
      BOOST_REQUIRE_EQUAL(s.answers.size(), 6u);
      size_t line_end = lines[0].size() + 1 + lines[1].size();
      for (size_t k = 2; k < 8; ++k) {
        line_end += 1 + lines[k].size();
        const ByteSpan a = s.answers[k - 2];
        BOOST_REQUIRE_EQUAL(a.end, static_cast<int64_t>(line_end));
        const auto length = static_cast<size_t>(a.end - a.begin);
        BOOST_REQUIRE(length > 0 && length < lines[k].size());
        const std::string answer = lines[k].substr(lines[k].size() - length);
        const auto fitting = solver.solve(lines[k].substr(0, lines[k].size() - length));
        BOOST_REQUIRE_MESSAGE(fitting == std::set<std::string>{answer}, s.task << ": " << lines[k]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_vocabularies_are_disjoint_and_without_repetition) {
  const auto train = all_words(models::text::task_words(Vocabulary::train));
  const auto held_out = all_words(models::text::task_words(Vocabulary::held_out));
  for (const auto& word : held_out) BOOST_TEST(!train.contains(word), word);
  // And what is generated uses nothing else: the words that both series share are the rules' own.
  const auto used = [](Vocabulary vocabulary) {
    std::set<std::string> all;
    for (int64_t i = 0; i < 20 * models::text::task_count(); ++i) {
      std::string t = models::text::make_task_sample(vocabulary, 3, i).text;
      for (char& c : t)
        if (c == '.' || c == ',' || c == '?' || c == '\n') c = ' ';
      std::istringstream in(t);
      for (std::string word; in >> word;) all.insert(word);
    }
    return all;
  };
  const auto used_train = used(Vocabulary::train);
  for (const auto& word : used(Vocabulary::held_out)) {
    if (held_out.contains(word)) BOOST_TEST(!used_train.contains(word), word);
  }
}

BOOST_AUTO_TEST_CASE(half_of_the_person_tasks_say_not_and_names_are_distinct) {
  std::set<std::string> names;
  int with_not = 0, persons = 0;
  for (int i = 0; i < models::text::task_count(); ++i) {
    const std::string& name = models::text::task_name(i);
    names.insert(name);
    if (name.starts_with("odd/")) continue;
    ++persons;
    const bool negated = name.find("/not/") != std::string::npos;
    with_not += negated;
    const std::string t = models::text::make_task_sample(Vocabulary::train, 1, i).text;
    BOOST_TEST((t.find(" not ") != std::string::npos) == negated, name);
  }
  BOOST_TEST(names.size() == static_cast<size_t>(models::text::task_count()));
  BOOST_TEST(with_not * 2 == persons);
  BOOST_TEST(models::text::task_count() == 82);
}

BOOST_AUTO_TEST_CASE(a_sample_is_a_function_of_seed_and_index) {
  std::set<std::string> texts;
  for (int64_t i = 0; i < 2000; ++i) texts.insert(models::text::make_task_sample(Vocabulary::train, 1, i).text);
  BOOST_TEST(texts.size() == 2000u);
  BOOST_TEST(models::text::make_task_sample(Vocabulary::train, 1, 123).text ==
             models::text::make_task_sample(Vocabulary::train, 1, 123).text);
  BOOST_TEST(models::text::make_task_sample(Vocabulary::train, 1, 123).text !=
             models::text::make_task_sample(Vocabulary::train, 2, 123).text);
  BOOST_TEST(models::text::make_task_sample(Vocabulary::train, 1, 5).task == models::text::task_name(5));
  BRAID_CHECK_FAILS(models::text::make_task_sample(Vocabulary::train, 1, -1), ErrorKind::misuse, "negative");
}

BOOST_AUTO_TEST_CASE(answer_tokens_hold_exactly_the_answers) {
  const models::text::ByteTokenizer t;
  const TaskSample s = models::text::make_task_sample(Vocabulary::train, 1, 20);
  const auto tokens = models::text::tokenize_task(t, s);
  BOOST_REQUIRE_EQUAL(tokens.answers.size(), 6u);
  for (size_t i = 0; i < 6; ++i) BOOST_TEST((tokens.answers[i] == s.answers[i]));  // one token per byte
}

BOOST_AUTO_TEST_CASE(grading_averages_per_task_then_over_tasks) {
  models::text::TaskGrader g;
  BOOST_TEST(std::isnan(g.accuracy()));
  const std::vector<ByteSpan> answers{{1, 3}, {4, 5}};
  g.add("a", answers, std::vector<uint8_t>{0, 1, 1, 0, 1});  // both right
  g.add("a", answers, std::vector<uint8_t>{0, 1, 0, 0, 0});  // only the first token of the first
  g.add("b", answers, std::vector<uint8_t>{1, 0, 1, 1, 0});  // none, not even a first token
  BOOST_TEST(g.tasks().at("a").accuracy() == 0.5);
  BOOST_TEST(g.tasks().at("a").first_token_accuracy() == 0.75);
  BOOST_TEST(g.accuracy() == 0.25);
  BOOST_TEST(g.first_token_accuracy() == 0.375);
  g.add("c", {}, std::vector<uint8_t>{1, 1});  // none graded: no part of the mean
  BOOST_TEST(std::isnan(g.tasks().at("c").accuracy()));
  BOOST_TEST(g.accuracy() == 0.25);
  BOOST_TEST(g.first_token_accuracy() == 0.375);
  BRAID_CHECK_FAILS(g.add("a", answers, std::vector<uint8_t>{0, 1}), ErrorKind::misuse, "outside of 2 tokens");
}

BOOST_AUTO_TEST_CASE(items_survive_a_file) {
  TempFolder folder;
  std::string file;
  for (int64_t i = 0; i < 100; ++i)
    file += models::text::task_item_line(models::text::make_task_sample(Vocabulary::held_out, 1, i));
  const auto items = models::text::read_task_items(folder.write("t.jsonl", file));
  BOOST_REQUIRE_EQUAL(items.size(), 100u);
  for (int64_t i = 0; i < 100; ++i) {
    const auto s = models::text::make_task_sample(Vocabulary::held_out, 1, i);
    const auto& r = items[static_cast<size_t>(i)];
    BOOST_TEST((r.task == s.task && r.text == s.text && r.answers == s.answers));
  }
  const auto fails = [&](const std::string& line, const std::string& part) {
    const std::string path = folder.write("bad.jsonl", file + line);
    BRAID_CHECK_FAILS(models::text::read_task_items(path), ErrorKind::input, path, part);
  };
  fails("{\"task\": \"a\", \"text\": \"bc\"}", "line 101");
  fails("{\"task\": \"a\", \"text\": \"bc\", \"answers\": [[0, 3]]}", "within the text");
  fails("{\"task\": \"a\", \"text\": \"bc\", \"answers\": [[1, 1]]}", "within the text");
  fails("{\"task\": \"a\", \"text\": \"bc\", \"answers\": [[-1, 1]]}", "within the text");
  fails("{", "at byte");
}

BOOST_AUTO_TEST_SUITE_END()
