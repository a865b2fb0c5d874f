// Schemas: what their grammars read, and what is rejected.
#include <boost/test/unit_test.hpp>
#include <chrono>

#include "tests/models/inference/constraint/constrained_texts.h"
#include "tests/models/inference/constraint/valid_json.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using nlohmann::json;

BOOST_AUTO_TEST_SUITE(json_schema)

namespace {

struct SchemaRow {
  const char* schema;
  std::vector<const char*> texts, others;
};

const SchemaRow kSchemaRows[] = {
    {R"({"type": "string"})", {R"("")", R"("a\"\u00e9é")"}, {"1", "\"", "null"}},
    {R"({"type": "string", "minLength": 2, "maxLength": 3})",
     {R"("ab")", R"("äöü")", R"("\n\ud83d\ude00")", "\"\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xF0\x9F\x98\x80\""},
     {R"("a")", R"("abcd")", R"("\n")", "\"\xF0\x9F\x98\x80\""}},
    {R"({"type": ["string", "null"], "maxLength": 1})", {"null", R"("a")"}, {R"("ab")", "1"}},
    {R"({"type": "boolean"})", {"true", "false"}, {"null", "True", "truefalse"}},
    {R"({"type": "integer"})", {"0", "-1", "123456789012345678"}, {"1.0", "1e2", "01", "\"1\""}},
    {R"({"type": "integer", "minimum": -12, "maximum": 305})",
     {"-12", "-9", "0", "7", "99", "100", "299", "305"},
     {"-13", "-20", "306", "310", "1000", "-0"}},
    {R"({"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 12})", {"10", "11"}, {"9", "12", "1", "110"}},
    {R"({"type": "integer", "minimum": 9007199254740991, "maximum": 9007199254740991})",
     {"9007199254740991"},
     {"9007199254740990", "9007199254740992"}},
    {R"({"type": "integer", "maximum": -5})", {"-5", "-10", "-49"}, {"-4", "5", "0"}},
    {R"({"type": "integer", "minimum": 1.5, "maximum": 3.5})", {"2", "3"}, {"1", "4"}},
    {R"({"type": "number"})", {"1", "-1.5e3"}, {"\"1\"", "1."}},
    {R"({"type": "number", "minimum": 0, "maximum": 1})", {"0", "0.25", "1", "0.999999"}, {"-0.5", "1.5", "2", "1.0"}},
    {R"({"type": "number", "minimum": 3, "maximum": 3})", {"3"}, {"2", "3.0", "4"}},
    {R"({"type": "number", "exclusiveMinimum": 0, "maximum": 1})", {"0.5", "1"}, {"0", "0.0", "1.5", "2"}},
    {R"({"type": "number", "exclusiveMinimum": 0})", {"0.5", "7", "12.25"}, {"0", "0.0", "-1", "-0.5"}},
    {R"({"type": "number", "exclusiveMaximum": 0, "minimum": -2})",
     {"-0.5", "-1", "-2"},
     {"0", "-0", "-0.0", "-2.5", "1"}},
    {R"({"const": {"b": [1, "x"], "a": null}})", {R"({"b":[1,"x"],"a":null})"}, {R"({"a":null,"b":[1,"x"]})", "{}"}},
    {R"({"enum": ["a", "ab", "b", 1, 12, null]})",
     {R"("a")", R"("ab")", R"("b")", "1", "12", "null"},
     {R"("c")", "2", R"("")"}},
    {R"({"type": "integer", "enum": ["a", 1, 2.5, 3]})", {"1", "3"}, {R"("a")", "2.5"}},
    {R"({"type": "array", "items": {"type": "integer"}})", {"[]", "[1]", "[1, 2,\n3]"}, {"[1,]", "[\"a\"]", "[,1]"}},
    {R"({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3})",
     {"[1,2]", "[1,2,3]"},
     {"[]", "[1]", "[1,2,3,4]"}},
    {R"({"type": "array", "minItems": 1})", {"[{}]", "[1,\"a\"]"}, {"[]"}},
    {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
    {R"({"prefixItems": [{"type": "integer"}, {"type": "string"}]})",
     {"[]", "[1]", R"([1,"a"])"},
     {R"(["a"])", R"([1,"a",1])"}},
    {R"({"prefixItems": [{"const": 1}], "items": {"pattern": "never read"}, "maxItems": 1})", {"[]", "[1]"}, {"[1,1]"}},
    {R"({"prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2, "maxItems": 3})",
     {"[1,2]", "[1,2,2]"},
     {"[1]", "[1,2,2,2]", "[2,2]"}},
    {R"({"prefixItems": [{"const": 1}], "items": false})", {"[]", "[1]"}, {"[1,1]"}},
    {R"({"type": "object"})", {"{}", R"({"a": {"a": 1}})"}, {"[]"}},
    {R"({"type": "object", "properties": {}})", {"{}"}, {R"({"a": 1})"}},
    {R"({"type": "object", "properties": {}, "additionalProperties": true})", {"{}", R"({"a": 1, "b": []})"}, {"[]"}},
    {R"({"type": "object", "additionalProperties": false})", {"{}", "{ }"}, {R"({"a":1})"}},
    {R"({"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}, "required": ["b"]})",
     {R"({"b":2})", R"({"a":1,"b":2})", R"({"b" : 2, "c": 3})", R"({"a":1,"b":2,"c":3})"},
     {"{}", R"({"a":1})", R"({"b":2,"a":1})", R"({"a":1,"c":3})", R"({"b":2,"d":4})", R"({"b":2,})"}},
    {R"({"properties": {"a": {"const": 1}, "b": {"const": 2}}})",
     {"{}", R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
     {R"({"b":2,"a":1})", "{,}"}},
    {R"({"properties": {"ab": {"const": 1}, "é": {"const": 2}}, "additionalProperties": {"type": "null"}})",
     {"{}", R"({"ab":1})", R"({"a":null})", R"({"abc":null})", R"({"ab":1,"b":null,"":null})", R"({"ê":null})",
      R"({"é":2,"éé":null})", "{\"\xC3\xAA\":null}", "{\"\xE2\x82\xAC\":null}"},
     {R"({"ab":null})", R"({"é":null})", R"({"a\u0062":null})", R"({"c":1})", R"({"b":null,"ab":1})"}},
    {R"({"properties": {"a\"b": {"const": 1}, "a": {"const": 2}}, "additionalProperties": {"type": "null"}})",
     {R"({"a\"b":1})", R"({"a":2,"ab":null})", R"({"b":null})"},
     {R"({"a\"b":null})", R"({"a":null})", R"({"a"b":null})", R"({"a"":null})"}},
    {R"({"properties": {"a\\": {"const": 1}, "\t": {"const": 2}}, "additionalProperties": {"type": "null"}})",
     {R"({"a\\":1,"\t":2})", R"({"a":null})", R"({"":null})"},
     {R"({"a\":null})", "{\"\t\":null}", R"({"\t":null})", R"({"\x":null})"}},
    {R"({"required": ["x"], "additionalProperties": {"type": "integer"}})",
     {R"({"x":1})", R"({"x":1,"y":2})"},
     {"{}", R"({"y":2})", R"({"x":1,"x":2})"}},
    {R"({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})",
     {R"("a")", R"(["a"])"},
     {"1", "[1]"}},
    {R"({"oneOf": [{"type": "string"}, {"type": "integer"}]})", {R"("a")", "1"}, {"null"}},
    {R"({"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs":
        {"A": {"type": "object", "properties": {"k": {"const": "a"}, "x": {"type": "null"}}, "required": ["k", "x"]},
         "B": {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]}}})",
     {R"({"k":"a","x":null})", R"({"k":"b"})"},
     {R"({"k":"a"})", R"({"k":"c"})"}},
    {R"({"allOf": [{"$ref": "#/$defs/A"}], "description": "x", "$defs": {"A": {"const": 1}}})", {"1"}, {"2"}},
    {R"({"allOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"b": {"const": 2}}}]})",
     {R"({"a":1})", R"({"a":1,"b":2})"},
     {R"({"b":2})"}},
    {R"({"$ref": "#/$defs/tree~1x", "$defs": {"tree/x": {"type": "object", "properties": {"v": {"type": "integer"},
        "next": {"anyOf": [{"$ref": "#/$defs/tree~1x"}, {"type": "null"}]}}, "required": ["v", "next"]}}})",
     {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":{"v":3,"next":null}}})"},
     {R"({"v":1})", R"({"v":1,"next":{}})"}},
    {"true", {"1", "{}"}, {"", "x"}},
    {R"({"title": "T", "description": "D", "default": 1, "examples": [2], "format": "date"})", {"1", "[]"}, {""}},
};

}  // namespace

BOOST_AUTO_TEST_CASE(keywords_bound_texts) {
  for (const SchemaRow& row : kSchemaRows) {
    const auto grammar = shared(models::json_schema_grammar(row.schema));
    const json schema = json::parse(row.schema);
    for (const char* text : row.texts) {
      BOOST_TEST(reads(grammar, text), row.schema << " should read " << text);
      BOOST_TEST(valid_json(json::parse(text), schema, schema), row.schema << " is not valid: " << text);
    }
    for (const char* text : row.others) BOOST_TEST(!reads(grammar, text), row.schema << " should not read " << text);
  }
}

BOOST_AUTO_TEST_CASE(properties_keep_the_order_of_the_schema) {
  const std::string schema = R"({"properties": {"z": true, "a": true}, "required": ["a", "z"]})";
  BOOST_TEST(reads(schema, R"({"z":1,"a":2})"));
  BOOST_TEST(!reads(schema, R"({"a":2,"z":1})"));
}

// Every text that random logits write is valid, by another implementation.
BOOST_AUTO_TEST_CASE(random_texts_are_valid) {
  const ListedTokenizer tokenizer = ListedTokenizer::of_json();
  const auto vocabulary = std::make_shared<const models::Vocabulary>(tokenizer);
  for (const SchemaRow& row : kSchemaRows) {
    const json schema = json::parse(row.schema);
    const auto constraint = constraint_of(models::json_schema_grammar(row.schema), vocabulary);
    for (uint64_t seed = 0; seed < 25; ++seed) {
      const RandomText made = random_text(constraint, 256, seed, 20000);
      BOOST_TEST_REQUIRE(made.complete, row.schema << " has not ended");
      BOOST_TEST_REQUIRE(json::accept(made.text), made.text);
      BOOST_TEST(valid_json(json::parse(made.text), schema, schema), row.schema << " made " << made.text);
    }
  }
}

// Integers and numbers of random bounds: exactly those between them, as far as a number has few digits.
BOOST_AUTO_TEST_CASE(bounds_of_integers_are_exact) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    const auto draw = [&] { return static_cast<int64_t>(random() % 2400) - 1200; };
    const int64_t a = draw(), b = draw(), low = std::min(a, b), high = std::max(a, b);
    const json schema = {{"type", "integer"}, {"minimum", low}, {"maximum", high}};
    models::Automaton automaton(shared(models::json_schema_grammar(schema.dump())));
    for (int64_t n = -1300; n <= 1300; ++n) {
      auto state = automaton.start();
      for (const char c : std::to_string(n)) state = automaton.next(state, static_cast<unsigned char>(c));
      BOOST_TEST(automaton.accepts(state) == (n >= low && n <= high), n << " from " << low << " to " << high);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_supported_is_named) {
  const std::pair<const char*, std::vector<std::string>> rows[] = {
      {R"({"type": "string", "pattern": "a+"})", {"'#' has the keyword 'pattern', which is not supported"}},
      {R"({"properties": {"a": {"type": "array", "uniqueItems": true}}})",
       {"'#/properties/a' has the keyword 'uniqueItems'"}},
      {R"({"properties": {"x/y": {"multipleOf": 2}}})", {"'#/properties/x~1y'", "'multipleOf'"}},
      {R"({"items": {"anyOf": [true, {"not": {}}]}})", {"'#/items/anyOf/1'", "'not'"}},
      {R"({"if": true, "then": true})", {"'if'"}},
      {R"({"patternProperties": {}})", {"'patternProperties'"}},
      {R"({"minProperties": 1})", {"'minProperties'"}},
      {R"({"typ": "string"})", {"has the keyword 'typ', which is not supported"}},
      {R"({"type": "text"})", {"'type' must be object, array, string, number, integer, boolean or null"}},
      {R"({"type": []})", {"found an empty list"}},
      {R"({"minLength": 1, "minItems": 1})", {"keywords of several types"}},
      {R"({"anyOf": [true], "type": "string"})", {"'type' is not supported beside 'anyOf'"}},
      {R"({"$ref": "#/$defs/a", "minLength": 2})", {"'minLength' is not supported beside '$ref'"}},
      {R"({"anyOf": []})", {"'anyOf' must be a list of schemas, not empty"}},
      {R"({"enum": []})", {"'enum' must be a list of values"}},
      {R"({"type": "null", "enum": [1]})", {"none of its values has the type"}},
      {R"({"$ref": "#/$defs/none"})", {"leads nowhere"}},
      {R"({"$ref": "other.json#/a"})", {"expected a path in the same schema"}},
      {R"({"$ref": "#"})", {"'#' refers to itself without another value around it"}},
      {R"({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}, "$ref": "#/$defs/a"})",
       {"'#/$defs/a' refers to itself"}},
      {R"({"$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/a"}}, "required": ["b"]}}, "$ref": "#/$defs/a"})",
       {"'#/$defs/a' has no finite value"}},
      {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
       {"alternatives 0 and 1 of 'oneOf' that one value may fit both"}},
      {R"({"oneOf": [{"properties": {"a": true}}, {"type": "object"}]})", {"of 'oneOf'"}},
      {R"({"oneOf": [{"const": {"a": 1, "b": [2]}}, {"enum": [3, {"b": [2.0], "a": 1.0}]}]})", {"0 and 1 of 'oneOf'"}},
      {R"({"oneOf": [{"type": "object"}, {"properties": {"a": {"const": 1}}, "required": ["a"], "type": "object"}]})",
       {"of 'oneOf'"}},
      {R"({"allOf": [{"properties": {"a": true}}, {"properties": {"a": true}}]})", {"'#/allOf/1'", "another part"}},
      {R"({"allOf": [{"properties": {}}, {"type": "string"}]})", {"expected objects"}},
      {R"({"allOf": [{"properties": {}}, {"additionalProperties": false}]})", {"'additionalProperties'"}},
      {R"({"allOf": [{"properties": {}}, {"minProperties": 2}]})", {"it has 'minProperties'"}},
      {R"({"type": "string", "minLength": -1})",
       {"bad value of 'minLength': expected an integer from 0 to 1000000000"}},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})", {"'minLength' is above 'maxLength'"}},
      {R"({"type": "number", "minimum": 0.5})", {"'minimum' that is not supported: expected an integer"}},
      {R"({"type": "number", "maximum": 1000000000})", {"a number from -999999999 to 999999999"}},
      {R"({"type": "integer", "minimum": "a"})", {"bad value of 'minimum': expected a number from"}},
      {R"({"type": "integer", "minimum": 9007199254740993})", {"a number from -9007199254740991 to 9007199254740991"}},
      {R"({"type": "integer", "exclusiveMinimum": 9007199254740992})", {"bad value of 'exclusiveMinimum'"}},
      {R"({"type": "integer", "minimum": 3, "maximum": 2})", {"minimum is above its maximum"}},
      {R"({"type": "number", "exclusiveMinimum": 2, "maximum": 2})", {"minimum is above its maximum"}},
      {R"({"required": ["a"], "additionalProperties": false})", {"'a' has no schema"}},
      {R"({"required": "a"})", {"'required' must be a list of names"}},
      {R"({"properties": []})", {"'properties' must be an object"}},
      {R"({"properties": {"a": false}})", {"'#/properties/a' permits no value"}},
      {R"({"items": [true]})", {"'items' must be a schema; a list is 'prefixItems'"}},
      {R"({"prefixItems": [true], "items": false, "minItems": 2})", {"at least 2 items, of which 1"}},
      {R"({"items": 3})", {"'#/items' is no schema: expected an object or true, found number"}},
      {"{", {"'#' is no JSON"}},
  };
  for (const auto& [schema, parts] : rows)
    for (const std::string& part : parts)
      BOOST_CHECK_EXCEPTION(models::json_schema_grammar(schema), Error, [&](const Error& e) {
        if (says(e, ErrorKind::input, {part})) return true;
        BOOST_TEST_MESSAGE(schema);
        return false;
      });
}

// As many values as are permitted, in alternatives and in properties that these require: pairs of lists are not
// compared value by value, which would take minutes.
BOOST_AUTO_TEST_CASE(alternatives_of_many_values_are_told_apart) {
  json alternatives, last;
  for (int i = 0; i < 100; ++i) {
    json values;
    for (int j = 0; j < 1000; ++j) values.push_back(str("v", i * 1000 + j));
    alternatives.push_back({{"type", "object"}, {"required", {"k"}}, {"properties", {{"k", {{"enum", values}}}}}});
    last.push_back({{"enum", values}});
  }
  last[99]["enum"][500] = "v500";
  const auto begun = std::chrono::steady_clock::now();
  BRAID_CHECK_FAILS(models::json_schema_grammar(json{{"oneOf", alternatives}}.dump()), ErrorKind::input, "too large");
  BRAID_CHECK_FAILS(models::json_schema_grammar(json{{"oneOf", last}}.dump()), ErrorKind::input,
                    "has alternatives 0 and 99 of 'oneOf'");
  BOOST_TEST((std::chrono::steady_clock::now() - begun < std::chrono::seconds(30)));
}

// Lists of a length that a client may send, and rules that are complete in the opposite order of their texts.
BOOST_AUTO_TEST_CASE(the_time_grows_with_the_length_alone) {
  const auto begun = std::chrono::steady_clock::now();
  json required, parts, objects, properties, definitions;
  for (int i = 0; i < 300000; ++i) required.push_back(str("x", i)), objects.push_back(json::object());
  BRAID_CHECK_FAILS(models::json_schema_grammar(json{{"required", required}}.dump()), ErrorKind::input,
                    "too many properties: at most 1000, found 300000");
  for (int i = 0; i < 3000; ++i) {
    json some;
    for (int j = 0; j < 100; ++j) some[str("x", i * 100 + j)] = true;
    parts.push_back({{"properties", some}});
  }
  BRAID_CHECK_FAILS(models::json_schema_grammar(json{{"allOf", parts}}.dump()), ErrorKind::input,
                    "too many properties: at most 1000, found 1100");
  const json values = {{{"const", objects}}, {{"const", 1}}};
  BRAID_CHECK_FAILS(models::json_schema_grammar(json{{"oneOf", values}}.dump()), ErrorKind::input, "too large");
  for (int i = 0; i < 490; ++i) {
    const std::string name = std::to_string(1000 + i), before = "#/$defs/" + std::to_string(999 + i);
    json object = {{"a", {{"const", std::string(300, 'x')}}}};
    if (i > 0) object["b"] = {{"$ref", before}};
    definitions[name] = {{"properties", object}, {"required", {"a", i > 0 ? "b" : "a"}}};
    properties[name] = {{"$ref", "#/$defs/" + name}};
  }
  BOOST_CHECK_NO_THROW(models::json_schema_grammar(json{{"properties", properties}, {"$defs", definitions}}.dump()));
  BOOST_TEST((std::chrono::steady_clock::now() - begun < std::chrono::seconds(30)));
}

BOOST_AUTO_TEST_CASE(sizes_are_limited) {
  json deep = {{"type", "null"}};
  for (int i = 0; i < 300; ++i) deep = {{"items", deep}};
  BRAID_CHECK_FAILS(models::json_schema_grammar(deep.dump()), ErrorKind::input, "is too deep: at most 200");
  json values, names, references = {{"anyOf", json::array()}}, definitions;
  for (int i = 0; i < 1001; ++i) values.push_back(i), names[std::to_string(i)] = true;
  for (int i = 0; i < 501; ++i) {
    definitions[std::to_string(i)] = {{"const", i}};
    references["anyOf"].push_back({{"$ref", "#/$defs/" + std::to_string(i)}});
  }
  references["$defs"] = definitions;
  BRAID_CHECK_FAILS(models::json_schema_grammar(json{{"enum", values}}.dump()), ErrorKind::input,
                    "at most 1000, found 1001");
  BRAID_CHECK_FAILS(models::json_schema_grammar(json{{"properties", names}}.dump()), ErrorKind::input,
                    "too many properties: at most 1000, found 1001");
  BRAID_CHECK_FAILS(models::json_schema_grammar(references.dump()), ErrorKind::input, "at most 500 different ones");
  BRAID_CHECK_FAILS(models::json_schema_grammar(json{{"const", std::string(200000, 'a')}}.dump()), ErrorKind::input,
                    "too large");
}

BOOST_AUTO_TEST_SUITE_END()
