// Masks over a vocabulary, and generation with them.
#include <boost/test/unit_test.hpp>

#include "braid/models/inference/generate.h"
#include "tests/apps/generate/byte_model.h"
#include "tests/models/inference/constraint/constrained_texts.h"
#include "tests/models/inference/constraint/valid_json.h"
#include "tests/models/inference/hash_model.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using nlohmann::json;

BOOST_AUTO_TEST_SUITE(constrained_text)

namespace {

const std::string kPerson = R"({"properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer",
    "minimum": 0, "maximum": 120}, "tags": {"type": "array", "items": {"enum": ["\u00e9t\u00e9", "a\"b", "\ud83d\ude00"]},
    "maxItems": 3}}, "required": ["name", "age", "tags"], "additionalProperties": false})";

std::vector<bool> allowed(models::ConstrainedText& text, int64_t vocabulary) {
  std::vector<float> logits(static_cast<size_t>(vocabulary), 1);
  text.mask(logits);
  std::vector<bool> result;
  for (const float l : logits) result.push_back(l == 1);
  return result;
}

}  // namespace

// At every step of random texts: a token is allowed where its bytes lead somewhere, read one by one.
BOOST_AUTO_TEST_CASE(a_mask_has_the_tokens_that_lead_somewhere) {
  const ListedTokenizer tokenizer = ListedTokenizer::of_json();
  const auto vocabulary = std::make_shared<const models::Vocabulary>(tokenizer);
  const models::CallRules rules{.begin = "<tool_call>\n", .end = "\n</tool_call>"};
  const std::vector<models::CallableTool> tools = {{"a", ""}, {"b", kPerson}};
  for (const auto& grammar : {shared(models::json_schema_grammar(kPerson)), shared(models::json_object_grammar()),
                              shared(models::tool_call_grammar(tools, rules))}) {
    const auto constraint = std::make_shared<const models::Constraint>(models::Constraint{grammar, vocabulary});
    std::mt19937_64 random(5);
    int inside_characters = 0;
    for (int texts = 0; texts < 20; ++texts) {
      models::ConstrainedText text(constraint, {256});
      models::Automaton automaton(grammar);
      auto state = automaton.start();
      for (int step = 0; step < 60 && !text.ended(); ++step) {
        const std::vector<bool> mask = allowed(text, tokenizer.vocab_size());
        std::vector<int32_t> next;
        for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
          auto after = state;
          const std::string bytes(tokenizer.token_bytes(id));
          for (const char c : bytes) after = automaton.next(after, static_cast<unsigned char>(c));
          if (bytes.empty() || id == 257) after = automaton.next(state, models::kNoText);
          const bool expected = id == 256 ? automaton.accepts(state) : after != models::Automaton::dead;
          BOOST_TEST_REQUIRE(mask[static_cast<size_t>(id)] == expected, "token " << id << " '" << bytes << "'");
          if (expected && id != 256) next.push_back(id);
        }
        if (next.empty()) break;
        // Long tokens are few, so they are preferred.
        int32_t token = next[random() % next.size()];
        if (next.back() > 257 && random() % 2)
          token = next[next.size() - 1 - random() % std::min<size_t>(6, next.size())];
        const std::string bytes(tokenizer.token_bytes(token));
        inside_characters += bytes.ends_with("\xC3") || bytes.ends_with("\x9F");
        text.add(token);
        if (bytes.empty() || token == 257)
          state = automaton.next(state, models::kNoText);
        else
          for (const char c : bytes) state = automaton.next(state, static_cast<unsigned char>(c));
      }
    }
    BOOST_TEST(inside_characters > 0);
  }
}

// States and masks are forgotten when there are too many: what follows is the same.
BOOST_AUTO_TEST_CASE(forgetting_states_changes_nothing) {
  const ListedTokenizer tokenizer = ListedTokenizer::of_json();
  const auto grammar = shared(models::json_schema_grammar(R"({"type": "array", "items": {"type": "array"}})"));
  models::Automaton all(grammar), few(grammar);
  auto a = all.start(), b = few.start();
  const std::string text = R"([[1,{"x":[[[[null]]]]},"a\u00e9"],[],[[2]]])";
  for (const char c : text) {
    a = all.next(a, static_cast<unsigned char>(c)), b = few.next(b, static_cast<unsigned char>(c));
    few.keep({&b, 1});
    for (int symbol = 0; symbol < 256; ++symbol)
      BOOST_TEST_REQUIRE((all.next(a, symbol) == models::Automaton::dead) ==
                         (few.next(b, symbol) == models::Automaton::dead));
    BOOST_TEST(all.accepts(a) == few.accepts(b));
  }
  BOOST_TEST(few.accepts(b));
  // A text far longer than the states that are kept.
  const auto vocabulary = std::make_shared<const models::Vocabulary>(tokenizer);
  models::ConstrainedText deep(constraint_of(models::json_object_grammar(), vocabulary), {256});
  for (int i = 0; i < 3000; ++i) {
    for (const char c : std::string("{\"a\":")) deep.add(static_cast<unsigned char>(c));
    if (i % 500 == 0) allowed(deep, tokenizer.vocab_size());
  }
  deep.add('1');
  for (int i = 0; i < 3000; ++i) {
    BOOST_TEST_REQUIRE(!deep.ended());
    deep.add('}');
  }
  BOOST_TEST(deep.ended());
}

// Schemas made to be slow: the ways of the first ones double with every bracket, and the sets of counts of the second
// one differ from text to text.
BOOST_AUTO_TEST_CASE(hostile_schemas_cost_a_bounded_time) {
  const ListedTokenizer tokenizer = ListedTokenizer::of_json();
  const auto vocabulary = std::make_shared<const models::Vocabulary>(tokenizer);
  const json twice = {
      {"anyOf",
       {{{"type", "array"}, {"items", {{"$ref", "#"}}}}, {{"type", "array"}, {"items", {{"$ref", "#"}}}}, true}}};
  const auto constraint = constraint_of(models::json_schema_grammar(twice.dump()), vocabulary);
  models::ConstrainedText text(constraint, {256});
  for (int i = 0; i < 40; ++i) text.add('[');
  for (int i = 0; i < 40; ++i) text.add(']');
  BOOST_TEST(text.ended());
  json strings;
  for (int i = 0; i < 900; ++i) strings.push_back({{"type", "string"}, {"minLength", i}, {"maxLength", 1000 + i}});
  const auto many = constraint_of(models::json_schema_grammar(json{{"anyOf", strings}}.dump()), vocabulary);
  models::ConstrainedText slow(many, {256});
  slow.add('"');
  bool refused = false;
  try {
    for (int i = 0; i < 3; ++i) allowed(slow, tokenizer.vocab_size()), slow.add('a');
  } catch (const Error& e) {
    refused = says(e, ErrorKind::input, {"the schema has too many ways to continue this text"});
    BOOST_TEST(refused);
  }
  BOOST_TEST(refused);
}

BOOST_AUTO_TEST_CASE(a_vocabulary_without_the_bytes_is_an_error) {
  const ListedTokenizer letters({"a", "b"});
  models::ConstrainedText text(
      constraint_of(models::json_object_grammar(), std::make_shared<const models::Vocabulary>(letters)), {});
  std::vector<float> logits(2, 0);
  BRAID_CHECK_FAILS(text.mask(logits), ErrorKind::input, "no token of this model's vocabulary can continue the text");
}

// --- generation ---

namespace {

struct ConstrainedRun {
  Told told;
  std::string text;
};

// Requests in one engine, in their order.
std::vector<ConstrainedRun> run_together(const models::LanguageModel& model,
                                         const std::vector<models::GenerationRequest>& requests) {
  std::vector<ConstrainedRun> runs(requests.size());
  models::GenerationEngine engine(model, {.sequences = 8});
  for (size_t i = 0; i < requests.size(); ++i) engine.submit(runs[i].told.listen(requests[i]));
  engine.run();
  const models::text::ByteTokenizer tokenizer;
  for (ConstrainedRun& run : runs) run.text = tokenizer.decode(run.told.tokens, true);
  return runs;
}

}  // namespace

// Texts of a model with random weights, at every setting of sampling.
BOOST_AUTO_TEST_CASE(an_untrained_model_writes_valid_json) {
  const auto model = models::as_language_model(byte_model("260", 5, "600"));
  const models::text::ByteTokenizer tokenizer;
  const auto vocabulary = std::make_shared<const models::Vocabulary>(tokenizer);
  const auto person = constraint_of(models::json_schema_grammar(kPerson), vocabulary),
             object = constraint_of(
                 models::json_schema_grammar(R"({"type": "object", "additionalProperties": {"type": "integer"},
                 "properties": {}})"),
                 vocabulary);
  const json schema = json::parse(kPerson);
  const models::SamplingOptions settings[] = {{.temperature = 0},
                                              {.temperature = 1},
                                              {.temperature = 3, .top_k = 5},
                                              {.top_p = 0.3},
                                              {.min_p = 0.2},
                                              {.repetition_penalty = 2, .frequency_penalty = 1, .presence_penalty = 1},
                                              {.logit_bias = {{'{', -100}, {'"', 3}, {256, 100}, {'z', 100}}}};
  std::vector<models::GenerationRequest> requests;
  for (const models::SamplingOptions& sampling : settings)
    for (uint64_t seed = 0; seed < 4; ++seed) {
      models::GenerationRequest request{
          .prompt = {'a', ':'}, .max_tokens = 598, .sampling = sampling, .ends = {256}, .constraint = person};
      request.sampling.seed = seed, request.sampling.vocabulary = 258;
      requests.push_back(request);
      request.constraint = seed % 2 ? object : nullptr;
      request.max_tokens = 40;
      requests.push_back(request);
    }
  const std::vector<ConstrainedRun> runs = run_together(*model, requests);
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& [told, text] = runs[i];
    // The same text, to the last bit, as alone.
    BOOST_TEST(equal(told, run_together(*model, {requests[i]})[0].told));
    if (requests[i].constraint == person) {
      BOOST_TEST_REQUIRE((told.last.reason == models::StopReason::end_of_text), text);
      BOOST_TEST_REQUIRE(json::accept(text), text);
      BOOST_TEST(valid_json(json::parse(text), schema, schema), text);
    } else if (requests[i].constraint == object) {
      BOOST_TEST((text[0] == '{' || text[0] == ' ' || text[0] == '\n'), text);
      BOOST_TEST((told.last.reason == models::StopReason::end_of_text) == json::accept(text));
    } else {
      auto plain = requests[i];
      plain.constraint = nullptr;
      BOOST_TEST(equal(told, run_together(*model, {plain})[0].told));
    }
  }
}

BOOST_AUTO_TEST_CASE(texts_end_with_the_value_or_by_length) {
  const auto model = models::as_language_model(byte_model());
  const models::text::ByteTokenizer tokenizer;
  const auto vocabulary = std::make_shared<const models::Vocabulary>(tokenizer);
  const auto run = [&](const char* schema, int64_t max_tokens, std::vector<int32_t> ends) {
    return run_together(*model, {{.prompt = {'x'},
                                  .max_tokens = max_tokens,
                                  .sampling = {.logit_bias = {{'[', 100}}},
                                  .ends = std::move(ends),
                                  .constraint = constraint_of(models::json_schema_grammar(schema), vocabulary),
                                  .logprobs = true}})[0];
  };
  // Nothing can follow: no end token is needed, and the last token may be the last one that is allowed.
  const ConstrainedRun constant = run(R"({"const": [true]})", 6, {});
  BOOST_TEST(constant.text == "[true]");
  BOOST_TEST((constant.told.last.reason == models::StopReason::end_of_text));
  BOOST_TEST(constant.told.scores.size() == 6u);
  const ConstrainedRun cut = run(R"({"const": "abcdefghijklmnop"})", 5, {256});
  BOOST_TEST((cut.told.last.reason == models::StopReason::length));
  BOOST_TEST(cut.told.tokens.size() == 5u);
  // Digits can follow a number: an end token ends it, and has a score.
  bool ended = false;
  for (int seed = 0; seed < 20; ++seed) {
    models::GenerationRequest request{
        .prompt = {'x'},
        .max_tokens = 30,
        .ends = {256},
        .constraint = constraint_of(models::json_schema_grammar(R"({"type": "integer"})"), vocabulary),
        .logprobs = true};
    request.sampling.seed = static_cast<uint64_t>(seed);
    const ConstrainedRun number = run_together(*model, {request})[0];
    BOOST_TEST((number.told.last.reason == models::StopReason::end_of_text));
    BOOST_TEST(json::parse(number.text).is_number_integer());
    ended = ended || number.told.scores.size() == number.told.tokens.size() + 1;
  }
  BOOST_TEST(ended);
}

// The engine may take a text's memory away and compute it again.
BOOST_AUTO_TEST_CASE(an_interrupted_text_keeps_its_state) {
  const HashModel model;
  std::vector<std::string> tokens;
  for (int i = 0; i < 50; ++i) tokens.push_back(std::string(1, "{}[]\":,0123456789eabcdfgh \n\\t-+"[i % 32]));
  const ListedTokenizer tokenizer(tokens);
  const auto constraint =
      constraint_of(models::json_schema_grammar(R"({"type": "array", "minItems": 20, "items": {"type": "integer"}})"),
                    std::make_shared<const models::Vocabulary>(tokenizer));
  std::vector<Told> told(4);
  models::GenerationEngine engine(model, std::make_unique<SharingPool>(14), {.sequences = 4, .share_prefixes = false});
  std::vector<models::GenerationRequest> requests;
  for (int32_t i = 0; i < 4; ++i) {
    requests.push_back({.prompt = {i, 1}, .max_tokens = 30, .constraint = constraint});
    engine.submit(told[static_cast<size_t>(i)].listen(requests.back()));
  }
  engine.run();
  BOOST_TEST(engine.load().interruptions > 0);
  for (size_t i = 0; i < told.size(); ++i) {
    BOOST_TEST(equal(told[i], alone(model, requests[i])));
    std::string text;
    for (const int32_t t : told[i].tokens) text += tokens[static_cast<size_t>(t)];
    BOOST_TEST(text.find('[') < 3u, text);
    BOOST_TEST(text.find_first_of("{\"abc") == std::string::npos, text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
