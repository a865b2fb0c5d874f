#include "braid/models/data/tasks/tasks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "braid/models/data/tasks/draw.h"
#include "braid/models/data/tasks/recall.h"
#include "braid/models/data/tasks/words.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

// The link between a stated value and the value of the question.
enum class Relation { category, thing, country, city, ability, opposite, before, after };

struct Task {
  std::string name;
  Relation relation;
  bool odd;             // odd one out, otherwise facts about persons
  Relation drawn_from;  // odd: category/country/... names the kind of the words
  bool asks_name, negated, second_wording;
};

std::vector<Task> make_tasks() {
  std::vector<Task> tasks;
  const auto persons = [&](const std::string& prefix, Relation relation) {
    for (const bool asks_name : {false, true})
      for (const bool negated : {true, false})
        for (const bool second : {false, true})
          tasks.push_back(
              {prefix + (asks_name ? "/person" : "/value") + (negated ? "/not" : "/plain") + (second ? "/2" : "/1"),
               relation, false, relation, asks_name, negated, second});
  };
  persons("possession/category", Relation::category);
  persons("possession/thing", Relation::thing);
  persons("likes/country", Relation::country);
  persons("likes/city", Relation::city);
  persons("tool/ability", Relation::ability);
  persons("opposite/adjective", Relation::opposite);
  persons("arrival/before", Relation::before);
  persons("arrival/after", Relation::after);
  const auto odd = [&](const std::string& name, Relation relation, Relation drawn_from) {
    for (const bool second : {false, true})
      tasks.push_back({"odd/" + name + (second ? "/2" : "/1"), relation, true, drawn_from, false, true, second});
  };
  odd("thing", Relation::thing, Relation::category);
  odd("category", Relation::category, Relation::category);
  odd("city", Relation::city, Relation::country);
  odd("country", Relation::country, Relation::country);
  odd("tool", Relation::thing, Relation::ability);
  odd("ability", Relation::ability, Relation::ability);
  odd("opposite", Relation::opposite, Relation::opposite);
  odd("before", Relation::before, Relation::before);
  odd("after", Relation::after, Relation::after);
  return tasks;
}

const std::vector<Task>& tasks() {
  static const std::vector<Task> all = make_tasks();
  return all;
}

// A word as it stands in a fact, and what the relation makes of it. Two values of one class have equal `related`.
struct Value {
  std::string stated;
  std::string related;
};

// "a fox" -> "fox"
std::string without_article(const std::string& phrase) {
  for (const char* article : {"a ", "an "})
    if (phrase.starts_with(article)) return phrase.substr(std::string(article).size());
  return phrase;
}

std::string article_of(const std::string& phrase) {
  return phrase.substr(0, phrase.size() - without_article(phrase).size());
}

std::string capital(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

const std::vector<WordGroup>& groups(const TaskWords& words, Relation kind) {
  if (kind == Relation::country || kind == Relation::city) return words.cities;
  return kind == Relation::ability ? words.tools : words.things;
}

// Three values whose `related` differ from each other; `line`: the time line they are on.
struct Values {
  std::array<Value, 3> of;
  Value twin;  // another value with the same `related` as of[0], or the same value
  const TimeLine* line = nullptr;
};

Values draw_values(const TaskWords& words, const Task& task, Draw& draw) {
  Values values;
  switch (task.drawn_from) {
    case Relation::opposite: {
      const auto pairs = draw.distinct_below<3>(words.opposites.size());
      for (size_t i = 0; i < 3; ++i) {
        const auto& [a, b] = words.opposites[pairs[i]];
        values.of[i] = draw.below(2) == 0 ? Value{a, b} : Value{b, a};
      }
      values.twin = values.of[0];
      break;
    }
    case Relation::before:
    case Relation::after: {
      const TimeLine& line = draw.one(words.times);
      values.line = &line;
      // Without a round line the ends have no neighbour: leave them out on both sides.
      const size_t n = line.values.size(), margin = line.round ? 0 : 1;
      const auto picks = draw.distinct_below<3>(n - 2 * margin);
      for (size_t i = 0; i < 3; ++i) {
        const size_t at = picks[i] + margin;
        // "x is just before r": r follows x.
        values.of[i] = {line.values[at], line.values[(at + (task.relation == Relation::before ? 1 : n - 1)) % n]};
      }
      values.twin = values.of[0];
      break;
    }
    default: {
      const auto& from = groups(words, task.drawn_from);
      const auto classes = draw.distinct_below<3>(from.size());
      const bool same = task.relation == Relation::thing || task.relation == Relation::city;
      const auto value = [&](size_t i) {
        const WordGroup& g = from[classes[i]];
        const std::string& member = draw.one(g.members);
        return Value{member, same ? member : g.label};
      };
      for (size_t i = 0; i < 3; ++i) values.of[i] = value(i);
      values.twin = same ? values.of[0] : value(0);
    }
  }
  return values;
}

std::string fact(const Task& task, const std::string& person, const Value& value, const TimeLine* line) {
  switch (task.relation) {
    case Relation::category:
    case Relation::thing:
    case Relation::ability:
      return task.second_wording ? capital(value.stated) + " belongs to " + person : person + " has " + value.stated;
    case Relation::country:
    case Relation::city:
      return task.second_wording ? value.stated + " attracts " + person : person + " likes " + value.stated;
    case Relation::opposite:
      return task.second_wording ? "People call " + person + " " + value.stated : person + " is " + value.stated;
    default:
      return task.second_wording ? capital(line->preposition) + " " + value.stated + " " + person + " arrived"
                                 : person + " arrived " + line->preposition + " " + value.stated;
  }
}

// The claim about a person up to the related word; `subject` is a name or "Who".
std::string claim(const Task& task, const std::string& subject, const Values& values, const std::string& related) {
  const bool n = task.negated;
  switch (task.relation) {
    case Relation::category:
      return subject + (n ? " does not have" : " has") + " a kind of ";
    case Relation::thing:
      return subject + (n ? " does not own " : " owns ") + article_of(related);
    case Relation::ability:
      return subject + (n ? " does not have" : " has") + " a thing that can ";
    case Relation::country:
      return subject + (n ? " does not long for" : " longs for") + " a city in ";
    case Relation::city:
      return subject + (n ? " does not long for " : " longs for ");
    case Relation::opposite:
      return subject + (n ? " is not" : " is") + " the opposite of ";
    default:
      return subject + (n ? " did not arrive" : " arrived") + " the " + values.line->unit + " just " +
             (task.relation == Relation::before ? "before " : "after ");
  }
}

struct Line {
  std::string text, answer;  // the answer stands at the end of the text
};

// "< fact. fact. fact. >. claim": three facts about two or three persons.
Line person_line(const TaskWords& words, const Task& task, Draw& draw) {
  const Values v = draw_values(words, task, draw);
  const auto people = draw.distinct_below<3>(words.names.size());
  const auto& a = words.names[people[0]];
  const auto& b = words.names[people[1]];
  const auto& c = words.names[people[2]];
  const auto say = [&](const std::string& who, const Value& what) { return fact(task, who, what, v.line); };
  std::array<std::string, 3> facts;
  std::string question, answer;
  if (task.asks_name) {
    // "not": two persons fit the claim and c does not. Plain: only c fits.
    facts = task.negated ? std::array{say(a, v.of[0]), say(b, v.twin), say(c, v.of[1])}
                         : std::array{say(a, v.of[1]), say(b, v.of[2]), say(c, v.of[0])};
    const std::string& related = v.of[0].related;
    question = claim(task, "Who", v, related) + without_article(related) + "? ";
    answer = c;
  } else {
    // "not": a has two of the three values. Plain: each person has one.
    const Value& asked = task.negated ? v.of[2] : v.of[0];
    facts = task.negated ? std::array{say(a, v.of[0]), say(a, v.of[1]), say(b, v.of[2])}
                         : std::array{say(a, v.of[0]), say(b, v.of[1]), say(c, v.of[2])};
    question = claim(task, a, v, asked.related);
    answer = without_article(asked.related);
  }
  draw.shuffle(facts);
  return {"< " + facts[0] + ". " + facts[1] + ". " + facts[2] + ". >. " + question, answer};
}

// "There are x, y, y. Which is not y? The answer": one value once, another twice.
Line odd_line(const TaskWords& words, const Task& task, Draw& draw) {
  const Values v = draw_values(words, task, draw);
  const Value &once = v.of[0], &twice = v.of[1];
  std::array<std::string, 3> items{once.stated, twice.stated, twice.stated};
  draw.shuffle(items);
  std::string text = "There are " + items[0] + ", " + items[1] + ", " + items[2] + ". ";
  text += task.second_wording ? "Which is different? " : "Which is not " + twice.stated + "? ";
  switch (task.relation) {
    case Relation::category:
      text += "A kind of ";
      break;
    case Relation::thing:
      text += "The ";
      break;
    case Relation::country:
      text += "A city in ";
      break;
    case Relation::ability:
      text += "A thing that can ";
      break;
    case Relation::opposite:
      text += "The opposite of ";
      break;
    case Relation::before:
      text += "The " + v.line->unit + " just before ";
      break;
    case Relation::after:
      text += "The " + v.line->unit + " just after ";
      break;
    case Relation::city:
      break;
  }
  return {text, without_article(once.related)};
}

}  // namespace

TaskSet parse_task_set(const std::string& name) {
  for (const TaskSet set : {TaskSet::in_context, TaskSet::recall})
    if (name == task_set_name(set)) return set;
  fail(ErrorKind::setting, "unknown set of tasks '" + detail::preview(name) + "': expected in-context or recall" +
                               detail::did_you_mean(name, {"in-context", "recall"}));
}

const char* task_set_name(TaskSet set) { return set == TaskSet::recall ? "recall" : "in-context"; }

double task_chance(TaskSet set) { return set == TaskSet::recall ? recall_chance : 1.0 / 3; }

int task_count(TaskSet set) { return static_cast<int>(set == TaskSet::recall ? recall_task_count : tasks().size()); }

std::string task_name(int task, TaskSet set) {
  check(task >= 0 && task < task_count(set), "task_name", [&] { return str("no task ", task); });
  return set == TaskSet::recall ? recall_task_name(task) : tasks()[static_cast<size_t>(task)].name;
}

TaskSample make_task_sample(Vocabulary vocabulary, uint64_t seed, int64_t index, TaskSet set) {
  check(index >= 0, "make_task_sample", [&] { return str("index must not be negative, got ", index); });
  if (set == TaskSet::recall) return make_recall_sample(vocabulary, seed, index);
  const Task& task = tasks()[static_cast<size_t>(index) % tasks().size()];
  Draw draw(vocabulary, seed, index);
  const TaskWords& words = task_words(vocabulary);
  TaskSample sample{task.name, "", {}};
  std::vector<std::string> lines;
  while (lines.size() < static_cast<size_t>(task_lines)) {
    const auto [text, answer] = task.odd ? odd_line(words, task, draw) : person_line(words, task, draw);
    if (std::find(lines.begin(), lines.end(), text + answer) != lines.end()) continue;  // no example twice
    lines.push_back(text + answer);
    sample.text += text;
    const auto begin = static_cast<int64_t>(sample.text.size());
    sample.text += answer + "\n";
    if (lines.size() > static_cast<size_t>(task_lines - task_graded_lines))
      sample.answers.push_back({begin, begin + static_cast<int64_t>(answer.size())});
  }
  return sample;
}

TaskTokens tokenize_task(const Tokenizer& tokenizer, const TaskSample& sample) {
  TaskTokens result{tokenizer.encode(sample.text), {}};
  std::vector<int64_t> ends;  // of each token, in bytes
  int64_t bytes = 0;
  for (const int32_t id : result.tokens)
    ends.push_back(bytes += static_cast<int64_t>(tokenizer.token_bytes(id).size()));
  check(bytes == static_cast<int64_t>(sample.text.size()), ErrorKind::input,
        [&] { return "the tokenizer '" + tokenizer.name() + "' changes the text of the task " + sample.task; });
  for (const ByteSpan& answer : sample.answers) {
    // The tokens that share a byte with the answer: from the first that ends behind its begin ...
    const auto first = std::upper_bound(ends.begin(), ends.end(), answer.begin) - ends.begin();
    // ... to the first that reaches its end.
    const auto last = std::lower_bound(ends.begin(), ends.end(), answer.end) - ends.begin();
    result.answers.push_back({first, last + 1});
  }
  return result;
}

void TaskGrader::add(const std::string& task, std::span<const ByteSpan> answers, std::span<const uint8_t> right) {
  TaskScore& score = tasks_[task];
  for (const ByteSpan& a : answers) {
    check(a.begin >= 0 && a.begin < a.end && a.end <= static_cast<int64_t>(right.size()), "grade",
          [&] { return str("answer tokens ", a.begin, " to ", a.end, " are outside of ", right.size(), " tokens"); });
    const auto tokens = right.subspan(static_cast<size_t>(a.begin), static_cast<size_t>(a.end - a.begin));
    ++score.answers;
    score.right += std::all_of(tokens.begin(), tokens.end(), [](uint8_t r) { return r != 0; });
    score.first_right += tokens.front() != 0;
  }
}

double TaskGrader::mean(double (TaskScore::*of_task)() const) const {
  double sum = 0;
  int64_t graded = 0;
  for (const auto& [task, score] : tasks_) {
    if (score.answers == 0) continue;
    sum += (score.*of_task)();
    ++graded;
  }
  return graded > 0 ? sum / static_cast<double>(graded) : std::numeric_limits<double>::quiet_NaN();
}

double TaskGrader::accuracy() const { return mean(&TaskScore::accuracy); }
double TaskGrader::first_token_accuracy() const { return mean(&TaskScore::first_token_accuracy); }

}  // namespace braid::models::text
