// The Jinja of chat templates. The expected texts are those of jinja2 with the settings of transformers.
#include "braid/models/data/prepare/template/template.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text::jinja;

BOOST_AUTO_TEST_SUITE(chat_template_language)

namespace {

const char* kVariables = R"({"s": "Hello wörld", "t": "  pad\n ", "n": 7, "f": 2.5, "l": [3, "a", null, true],
    "d": {"k": "v", "items": [1], "x": {"y": "z"}}, "msgs": [{"role": "user", "content": "hi"},
    {"role": "assistant", "content": null}, {"role": "user", "content": " <b> "}]})";

Text render(const std::string& source) {
  std::map<std::string, Value> variables;
  const auto json = nlohmann::ordered_json::parse(kVariables);
  for (const auto& [key, value] : json.items()) variables[key] = Value::of(value);
  return Template(source, "T").render(variables);
}
std::string text(const std::string& source) { return render(source).bytes; }
void rejects(const std::string& source, const std::string& words) {
  BRAID_CHECK_FAILS(text(source), ErrorKind::input, "T, line ", words);
}

}  // namespace

BOOST_AUTO_TEST_CASE(white_space_and_comments) {
  BOOST_TEST(text("a\n{% if true %}\n  b\n{% endif %}\nc\n") == "a\n  b\nc");
  BOOST_TEST(text("  {% if true %} b {% endif %}  \n d") == " b   \n d");
  BOOST_TEST(text("a \n {%- if true -%} \n b \n {%- endif %}\n c") == "ab c");
  BOOST_TEST(text("  {%+ if true +%}\nx{% endif %}") == "  \nx");
  BOOST_TEST(text("a {{- ' b ' -}} c\n{# no #}\n  {#- x -#}  d") == "a b c\nd");
  BOOST_TEST(text("{{ s }}\n\n") == "Hello wörld\n");
  BOOST_TEST(text("a\r\nb\r{{ '\\n' }}") == "a\nb\n\n");
  BOOST_TEST(text("{% raw %}{{ x }}{% if %}{% endraw %}!") == "{{ x }}{% if %}!");
  BOOST_TEST(text("{ {x} %} }} {{ '}}' ~ \"%}\" }}") == "{ {x} %} }} }}%}");
}

BOOST_AUTO_TEST_CASE(statements) {
  BOOST_TEST(text("{% if n > 9 %}a{% elif n == 7 %}b{% else %}c{% endif %}") == "b");
  BOOST_TEST(text("{% for m in msgs %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}"
                  "{{ loop.revindex }} {% endfor %}") == "10TrueFalse33 21FalseFalse32 32FalseTrue31 ");
  BOOST_TEST(text("{% for m in msgs if m.role == 'user' %}{{ loop.length }}{{ m.content|trim }}{% if loop.nextitem %}"
                  "+{{ loop.nextitem.content }}{% endif %}{{ loop.previtem is defined }}{% endfor %}") ==
             "2hi+ <b> False2<b>True");
  BOOST_TEST(
      text("{% for x in [] %}a{% else %}none{% endfor %}{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}") ==
      "nonek=v;items=[1];x={'y': 'z'};");
  BOOST_TEST(text("{% for i in range(6) %}{% if i == 1 %}{% continue %}{% endif %}{% if i > 3 %}{% break %}{% endif %}"
                  "{{ i }}{{ loop.cycle('a', 'b') }}{% endfor %}") == "0a2a3b");
  // What a loop sets is gone behind it, but for a namespace.
  BOOST_TEST(text("{% set x = 1 %}{% set ns = namespace(a=0) %}{% for i in range(3) %}{{ x }}{% set x = i %}{{ x }} "
                  "{% set ns.a = ns.a + i %}{% endfor %}{{ x }}{{ ns.a }}") == "10 11 12 13");
  BOOST_TEST(text("{% set b %}<{{ n }}>{% endset %}{{ b|length }}{{ b }}{% set u | upper %}q{% endset %}{{ u }}") ==
             "3<7>Q");
  BOOST_TEST(text("{% set a, b = (1, 2) %}{{ b }}{{ a }}") == "21");
  BOOST_TEST(
      text("{% macro m(a, b='x', c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c=2) }}{{ m() }}") ==
      "[1x1][1x2][x]");
  BOOST_TEST(text("{% macro f(i) %}{{ i }}{% if i > 0 %}{{ f(i - 1) }}{% endif %}{% endmacro %}{{ f(3) }}") == "3210");
  BOOST_TEST(text("{% generation %}x{% endgeneration %}y") == "xy");
}

BOOST_AUTO_TEST_CASE(expressions) {
  BOOST_TEST(
      text("{{ 1 + 2 * 3 - 4 // 3 }} {{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 3 }} {{ 1e3 }} {{ 0x1F }}") ==
      "6 3.5 -4 2 8 1000.0 31");
  BOOST_TEST(text("{{ 'a' 'b' ~ 1 ~ none ~ 1.0 }} {{ 'ab' * 2 }} {{ [1] + [2] }} {{ (1,) + (2,) }}") ==
             "ab1None1.0 abab [1, 2] (1, 2)");
  BOOST_TEST(text("{{ 1 < 2 < 3 }} {{ 'a' in s }} {{ 'k' in d }} {{ 3 not in l }} {{ not n == 7 }} {{ true == 1 }}") ==
             "True False True False False True");
  BOOST_TEST(text("{{ none or 'x' }} {{ n and f }} {{ 'y' if n < 3 else 'z' }} {{ 'y' if n < 3 }}|") == "x 2.5 z |");
  BOOST_TEST(
      text("{{ s[0] }}{{ s[-1] }} {{ s[7:9] }} {{ s[::-1] }} {{ l[1:] }} {{ l[::-2] }} {{ s[-100:2] }} {{ l[9] }}|") ==
      "Hd ör dlröw olleH ['a', None, True] [True, 'a'] He |");
  BOOST_TEST(
      text("{{ d.k }}{{ d['x'].y }}{{ d.nope }} {{ d.get('nope', 4) }} {{ d['items'] }} {{ undefined_name }}|") ==
      "vz 4 [1] |");
  BOOST_TEST(text("{{ [s, 'it\\'s', '\"\\'', '\\n\\t\\x01é\\u200b'] }} {{ {'a': 1e16, 2: (1,)} }}") ==
             "['Hello wörld', \"it's\", '\"\\'', '\\n\\t\\x01é\\u200b'] {'a': 1e+16, 2: (1,)}");
  BOOST_TEST(
      text("{{ n is defined }}{{ q is defined }}{{ q is none }}{{ none is none }}{{ s is string }}{{ d is mapping }}"
           "{{ l is iterable }}{{ n is number }}{{ true is boolean }}{{ n is odd }}{{ n is equalto 7 }}"
           "{{ 'k' is in d }}{{ l is not sequence }}") == "TrueFalseFalseTrueTrueTrueTrueTrueTrueTrueTrueTrueFalse");
}

BOOST_AUTO_TEST_CASE(filters_and_methods) {
  BOOST_TEST(text("{{ t|trim }}|{{ 'xaxx'|trim('x') }}|{{ s|upper }}|{{ s|length }}|{{ 'a-b c'|title }}|{{ "
                  "'éA'|capitalize }}") == "pad|a|HELLO WÖRLD|11|A-B C|Éa");
  BOOST_TEST(text("{{ d|tojson }}|{{ [1.0, none, 'é\\n\"<']|tojson }}|{{ {'b': [], 'a': {}}|tojson(indent=2, "
                  "sort_keys=true) }}") ==
             "{\"k\": \"v\", \"items\": [1], \"x\": {\"y\": \"z\"}}|[1.0, null, \"é\\n\\\"<\"]|{\n  \"a\": {},\n  "
             "\"b\": []\n}");
  BOOST_TEST(text("{{ ['é']|tojson(ensure_ascii=true) }} {{ {'a': [1, 2]}|tojson(separators=(',', ':')) }}") ==
             "[\"\\u00e9\"] {\"a\":[1,2]}");
  BOOST_TEST(
      text("{{ msgs|map(attribute='role')|join(',') }} {{ msgs|selectattr('role', 'equalto', 'user')|list|length }} "
           "{{ msgs|rejectattr('content')|map(attribute='role')|first }} {{ ['b', 'a', 'B']|sort|unique|join }}") ==
      "user,assistant,user 2 assistant ab");
  BOOST_TEST(text("{{ q|default('d') }}{{ ''|d('e', true) }}{{ l|last }}{{ 'abc'|reverse }}{{ '5'|int + '1.5'|float }}"
                  "{{ -3|abs }}{{ 'aXa'|replace('a', 'b', 1) }}{{ d|items|list|length }}{{ 'ab'|list }}") ==
             "deTruecba6.53bXa3['a', 'b']");
  BOOST_TEST(
      text("{{ t.strip() }}|{{ 'a,b,c'.split(',', 1) }}|{{ ' a  b '.split() }}|{{ "
           "'a</t>b'.split('</t>')[-1].lstrip('b') }}|"
           "{{ s.startswith(('x', 'He')) }}|{{ s.replace('l', 'L') }}|{{ s.find('w') }}|{{ 'ab'.title().lower() }}") ==
      "pad|['a', 'b,c']|['a', 'b']||True|HeLLo wörLd|6|ab");
  BOOST_TEST(
      text("{{ ''|indent(2, true) }}|{{ 'a\\nb\\n'|indent(2, true, true) }}|{{ 'a\\n\\nb\\n'|indent(2) }}|{{ 'İ'|lower "
           "}}|{{ d.keys() }} {{ d.x.values() }} {{ d.x.items() }} {{ d.keys()|list }}") ==
      "  |  a\n  b\n  |a\n\n  b\n|i\u0307|dict_keys(['k', 'items', 'x']) dict_values(['z']) dict_items([('y', 'z')]) "
      "['k', 'items', 'x']");
}

// Every byte says whether a message wrote it, and in which {% generation %} block it stands.
BOOST_AUTO_TEST_CASE(marks_of_bytes) {
  const auto marked = [](const std::string& source) {
    const Text made = render(source);
    BOOST_REQUIRE(made.marks.size() == made.bytes.size());
    std::string out;
    for (size_t i = 0; i < made.size(); ++i)
      out += (made.marks[i] & kOfMessage) ? 'm' : (made.marks[i] >> 1) ? 'g' : '-';
    return out;
  };
  BOOST_TEST(marked("a{{ d.k }}b") == "-m-");
  BOOST_TEST(marked("{{ t|trim }}{{ 'x' ~ d.k|upper ~ 'y' }}") == "mmm-m-");
  BOOST_TEST(marked("{{ ('ab' ~ d.k ~ 'c')[1:] }}{{ 'a'.join(['-', d.k]) }}") == "-m---m");
  BOOST_TEST(marked("{{ [d.k, 'o']|tojson }}") == "mmmmmmm-mm");
  BOOST_TEST(marked("{{ 'axb'|replace('x', d.k) }}{{ (d.k ~ 'q')|replace('q', 'r') }}") == "-m-m-");
  BOOST_TEST(marked("{% generation %}a{{ d.k }}{% endgeneration %}b{{ n }}") == "gm--");
  const Text two = render("{% for i in [1, 2] %}{% generation %}{{ i }}{% endgeneration %}{% endfor %}");
  BOOST_TEST((two.marks[0] >> 1) == 1);
  BOOST_TEST((two.marks[1] >> 1) == 2);
}

BOOST_AUTO_TEST_CASE(what_is_not_supported_is_named_with_its_line) {
  rejects("\n\n{% include 'x' %}", "3: the statement {% include %} is not supported");
  rejects("{% for x in l recursive %}{% endfor %}", "1: a recursive loop is not supported");
  rejects("a\n{{ l|groupby('x') }}", "2: the filter 'groupby' is not supported");
  rejects("{{ n is prime }}", "1: the test 'prime' is not supported");
  rejects("{{ f(*l) }}", "1: an argument with '*' is not supported");
  rejects("{{ '%d' % n }}", "1: formatting with % is not supported");
  rejects("{{ s.encode('utf8') }}", "1: a string has no method 'encode' here");
  rejects("{{ l.append(1) }}", "1: a list has no method 'append' here");
  rejects("{{ s|replace('a', 'b', sep=1) }}", "1: the filter 'replace' has no argument 'sep' here");
  rejects("{{ 9223372036854775807 + 1 }}", "1: the result of 9223372036854775807 + 1 is too large");
  rejects("{{ l|select('nope') }}", "1: the filter 'select' has a test that is not supported: nope");
}

BOOST_AUTO_TEST_CASE(mistakes_are_errors_with_their_line) {
  rejects("{{ raise_exception('no ' ~ n) }}", "1: the template says: no 7");
  rejects("\n{% if x %}", "2: expected {% endif %}, found the end of the template");
  rejects("{% endfor %}", "1: the statement {% endfor %}");
  rejects("{{ a b }}", "1: expected }}, found 'b'");
  rejects("{{ (1 }}", "unexpected '}'");
  rejects("{{ 'a }}", "1: a string has no end");
  rejects("{% set x = %}", "1: expected an expression, found the end of the tag");
  rejects("{# x", "1: a comment has no end");
  rejects("{{ 1 ? 2 }}", "1: unexpected '?' in a tag");
  rejects("{% break %}", "1: {% break %} outside of a loop");
  rejects("{{ x.y }}", "1: cannot read 'y': 'x' is undefined");
  rejects("{{ d.nope.y }}", "1: cannot read 'y': a dict has no 'nope'");
  rejects("{{ s + 1 }}", "1: cannot compute a string + an integer");
  rejects("{{ n < s }}", "1: cannot compare an integer with a string");
  rejects("{% for x in n %}{% endfor %}", "1: cannot iterate over an integer");
  rejects("{% for a, b in l %}{% endfor %}", "1: cannot iterate over an integer");
  rejects("{{ 1 // 0 }}", "1: division by zero");
  rejects("{{ nothing() }}", "1: cannot call a function: 'nothing' is undefined");
  rejects("{% set s.x = 1 %}", "1: cannot set 's.x': s is no namespace");
  rejects("{{ [nothing]|tojson }}", "1: cannot write an undefined value ('nothing' is undefined) as JSON");
  rejects("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "1: the macro 'm' has at most 1 arguments here, found 2");
  rejects("{{ '\xff' }}", "1: the template is not UTF-8");
}

// A template comes from outside: it ends, and it does not take all memory.
BOOST_AUTO_TEST_CASE(templates_are_bounded) {
  rejects("{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}", "takes too long");
  rejects("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested too deeply: macros call each other");
  rejects("{{ 'x' * 99999999999 }}", "a text is too long");
  rejects("{{ [1] * 99999999 }}", "a list is too long");
  rejects("{{ range(999999999) }}", "a range is too long");
  rejects("{% set ns = namespace(a='x') %}{% for i in range(40) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
          "too long");
  rejects("{% set ns = namespace(a=[1]) %}{% for i in range(40) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a }}",
          "too");
  rejects("{% set ns = namespace(a=[1]) %}{% for i in range(999) %}{% set ns.a = [ns.a] %}{% endfor %}",
          "nested too deeply");
  rejects("{{ " + std::string(9999, '(') + "1" + std::string(9999, ')') + " }}", "nested too deeply");
  rejects("{{ " + std::string(9999, '-') + "1 }}", "nested too deeply");
  std::string chain = "{{ s";
  for (int i = 0; i < 9999; ++i) chain += "|trim";
  rejects(chain + " }}", "nested too deeply");
  std::string blocks;
  for (int i = 0; i < 999; ++i) blocks += "{% if true %}";
  rejects(blocks, "nested too deeply");
  BRAID_CHECK_FAILS(text(std::string(2 << 20, 'x')), ErrorKind::input, "the template is too long",
                    "at most 1048576 bytes");
}

BOOST_AUTO_TEST_SUITE_END()
