// Objects and numbers of a schema as instructions.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "braid/models/inference/constraint/schema_parts.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::schema {
namespace {

using nlohmann::ordered_json;
using Op = Grammar::Op;
using Label = GrammarWriter::Label;

const ordered_json kAnyValue = true;

// The rest of a name that is none of those from begin to end, behind the `depth` bytes that it has read and that these
// share, `read` of them of an unfinished character. `rest` is where names continue that differ from all of these.
void write_other_name(GrammarWriter& w, const std::vector<std::string>& names, size_t begin, size_t end, size_t depth,
                      size_t read, Label rest) {
  const bool is_name = names[begin].size() == depth;
  std::vector<std::pair<size_t, size_t>> groups;  // with the same next byte
  for (size_t i = begin + is_name; i < end; ++i) {
    if (groups.empty() || names[groups.back().first][depth] != names[i][depth]) groups.emplace_back(i, i);
    groups.back().second = i + 1;
  }
  ByteSet taken;
  for (const auto& [first, last] : groups) taken.set(static_cast<unsigned char>(names[first][depth]));
  const auto row_of = [](unsigned char first) {
    return std::ranges::find_if(kUtf8Rows,
                                [&](const Utf8Row& r) { return first >= r.first_low && first <= r.first_high; });
  };
  std::vector<GrammarWriter::Emit> parts;
  for (const auto& group : groups) {
    parts.push_back([&, group] {
      const auto byte = static_cast<unsigned char>(names[group.first][depth]);
      w.bytes(ByteSet().set(byte));
      const auto lead = static_cast<unsigned char>(names[group.first][depth - read]);
      const size_t length = lead < 0x80 ? 1 : static_cast<size_t>(row_of(lead)->others) + 2;
      const size_t now = (read + 1) % length;
      write_other_name(w, names, group.first, group.second, depth + 1, now, rest);
    });
  }
  const auto differ = [&](const ByteSet& set, int others, const std::optional<ByteSet>& second = {}) {
    if ((set & ~taken).none()) return;
    parts.push_back([&w, set = set & ~taken, others, second, rest] {
      w.bytes(set);
      if (second) w.bytes(*second);
      for (int i = 0; i < others; ++i) w.bytes(byte_range(0x80, 0xBF));
      w.add(Op::jump, rest);
    });
  };
  if (read > 0) {
    const Utf8Row& row = *row_of(static_cast<unsigned char>(names[begin][depth - read]));
    differ(read == 1 ? byte_range(row.second_low, row.second_high) : byte_range(0x80, 0xBF),
           row.others - static_cast<int>(read) + 1);
  } else {
    ByteSet plain = byte_range(0x20, 0x7F);
    differ(plain.reset('"').reset('\\'), 0);
    for (const Utf8Row& row : kUtf8Rows)
      differ(byte_range(row.first_low, row.first_high), row.others, byte_range(row.second_low, row.second_high));
    if (!is_name) parts.push_back([&] { w.text("\""), w.add(Op::back); });
  }
  w.either(parts);
}

// The rule of a name, in quotes, that is none of these. It has no escapes, which could spell one of them, so that it is
// no name that needs some.
uint32_t other_name(GrammarWriter& w, std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) { return ordered_json(name).dump().size() > name.size() + 2; });
  std::ranges::sort(names);
  return w.rule([&] {
    const Label over = w.add(Op::jump), rest = w.here();
    w.repeat(w.characters(), 0, Grammar::unlimited);
    w.text("\"");
    w.add(Op::back);
    w.at(over).a = w.here();
    w.text("\"");
    if (names.empty())
      w.add(Op::jump, rest);
    else
      write_other_name(w, names, 0, names.size(), 0, 0, rest);
  });
}

// --- numbers ---

// Digits from low to high, which have the same length, behind the first `at` ones.
void write_digits(GrammarWriter& w, const std::string& low, const std::string& high, size_t at) {
  const size_t left = low.size() - at;
  if (left == 0) return;
  const auto is_all = [&](const std::string& digits, char digit) {
    return digits.find_first_not_of(digit, at) == std::string::npos;
  };
  const auto n = static_cast<uint32_t>(left);
  if (is_all(low, '0') && is_all(high, '9')) return w.digits(n, n);
  if (low[at] == high[at]) {
    w.text({&low[at], 1});
    return write_digits(w, low, high, at + 1);
  }
  const std::string nines = low.substr(0, at + 1) + std::string(left - 1, '9'),
                    zeros = high.substr(0, at + 1) + std::string(left - 1, '0');
  std::vector<GrammarWriter::Emit> parts = {[&] {
                                              w.text({&low[at], 1});
                                              write_digits(w, low, nines, at + 1);
                                            },
                                            [&] {
                                              w.text({&high[at], 1});
                                              write_digits(w, zeros, high, at + 1);
                                            }};
  if (high[at] - low[at] > 1)
    parts.push_back([&] {
      w.bytes(byte_range(low[at] + 1, high[at] - 1));
      w.digits(n - 1, n - 1);
    });
  w.either(parts);
}

void write_integers(GrammarWriter& w, uint64_t low, uint64_t high) {
  std::vector<GrammarWriter::Emit> lengths;
  for (uint64_t first = low;;) {
    const std::string digits = std::to_string(first), nines(digits.size(), '9');
    const bool last = digits.size() == std::to_string(high).size();
    lengths.push_back([&w, digits, to = last ? std::to_string(high) : nines] { write_digits(w, digits, to, 0); });
    if (last) break;
    first = 1;
    for (size_t i = 0; i < digits.size(); ++i) first *= 10;
  }
  w.either(lengths);
}

struct Bound {
  double value;
  bool excluded;
};

// Between two magnitudes. Numbers with a fraction have up to six digits of it, so that they round to neither bound.
void write_magnitudes(GrammarWriter& w, const Bound& low, const Bound& high, bool integer) {
  const double a = low.value, b = high.value;
  const auto first = static_cast<uint64_t>(a), last = static_cast<uint64_t>(b);
  std::vector<GrammarWriter::Emit> parts;
  const uint64_t from = first + low.excluded, to = last - high.excluded;
  if (integer) {
    parts.push_back([&] { write_integers(w, from, to); });
  } else {
    const auto fraction = [&w](bool nonzero) {
      w.text(".");
      if (nonzero)
        w.digits(0, 5), w.bytes(byte_range('1', '9'));
      else
        w.digits(1, 6);
    };
    if (from < last)
      parts.push_back([&, fraction] {
        write_integers(w, from, last - 1);
        w.optional([&] { fraction(false); });
      });
    if (low.excluded && first < last)
      parts.push_back([&, fraction] {
        write_integers(w, first, first);
        fraction(true);
      });
    if (!high.excluded && from <= last) parts.push_back([&] { write_integers(w, last, last); });
  }
  w.either(parts);
}

}  // namespace

void check_properties(const SchemaAt& at, size_t found) {
  constexpr size_t max = 1000;
  if (found > max) at.fail(str("has too many properties: at most ", max, ", found ", found));
}

ObjectParts object_parts(const SchemaAt& at) {
  ObjectParts parts;
  const auto properties = at.schema.find("properties"), required = at.schema.find("required"),
             additional = at.schema.find("additionalProperties");
  const bool missing = additional == at.schema.end();
  if (properties != at.schema.end() && !properties->is_object()) at.fail("'properties' must be an object of schemas");
  for (const auto& list : {properties, required})
    if (list != at.schema.end()) check_properties(at, list->size());
  if (properties != at.schema.end())
    for (const auto& [name, schema] : properties->items())
      parts.properties.push_back({name, at.below("properties", name), false});
  if (!missing && *additional != false) parts.additional.emplace(at.below("additionalProperties"));
  for (const ordered_json& one : required == at.schema.end() ? ordered_json::array() : *required) {
    if (!one.is_string() || !required->is_array()) at.fail("'required' must be a list of names of properties");
    const auto found = std::ranges::find(parts.properties, one.get<std::string>(), &ObjectParts::Property::name);
    if (found != parts.properties.end())
      found->required = true;
    else if (missing || parts.additional)
      parts.properties.push_back(
          {one.get<std::string>(), parts.additional.value_or(SchemaAt{kAnyValue, at.path + "/required"}), true});
    else
      at.fail(
          str("permits no value: the required property '", detail::preview(one.get<std::string>()), "' has no schema"));
  }
  check_properties(at, parts.properties.size());
  parts.any = properties == at.schema.end() && parts.properties.empty() && (missing || *additional == true);
  return parts;
}

// In the order of the schema: from property i on, the next one is any up to the next one that is required.
void write_object(GrammarWriter& w, const ObjectParts& parts, const std::function<void(const SchemaAt&)>& value) {
  const size_t n = parts.properties.size(), all = n + (parts.additional ? 1 : 0);
  std::vector<bool> may_end(n + 1, true);  // from property i on, none is required
  for (size_t i = n; i-- > 0;) may_end[i] = may_end[i + 1] && !parts.properties[i].required;
  std::vector<Label> closes;                   // jumps and splits to the end
  std::vector<std::pair<Label, size_t>> next;  // jumps to a property
  const auto after = [&](size_t i) {           // i: the next one
    i = std::min(i, n);
    if (may_end[i]) closes.push_back(w.add(i < all ? Op::split : Op::jump, w.here() + 1));
    if (i == all) return;
    w.text(",");
    w.white_space();
    next.emplace_back(w.add(Op::jump), i);
  };
  const auto member = [&](const SchemaAt& schema) {
    w.white_space();
    w.text(":");
    w.white_space();
    value(schema);
    w.white_space();
  };
  w.text("{");
  w.white_space();
  if (may_end[0]) closes.push_back(w.add(all > 0 ? Op::split : Op::jump, w.here() + 1));
  std::vector<Label> begins;
  for (size_t i = 0; i < n; ++i) {
    const ObjectParts::Property& property = parts.properties[i];
    begins.push_back(w.here());
    const bool skipped = !property.required && i + 1 < all;
    const Label split = skipped ? w.add(Op::split, w.here() + 1) : 0;
    w.text(ordered_json(property.name).dump());
    member(property.schema);
    after(i + 1);
    if (skipped) w.at(split).b = w.here();
  }
  if (parts.additional) {
    begins.push_back(w.here());
    std::vector<std::string> names;
    for (const ObjectParts::Property& property : parts.properties) names.push_back(property.name);
    if (names.empty())
      w.json_string();
    else
      w.call(other_name(w, names));
    member(*parts.additional);
    after(n);
  }
  for (const auto& [jump, i] : next) w.at(jump).a = begins[i];
  for (const Label close : closes) (w.at(close).op == Op::jump ? w.at(close).a : w.at(close).b) = w.here();
  w.text("}");
}

void write_number(GrammarWriter& w, const SchemaAt& at, bool integer) {
  // Integers have 18 digits where nothing bounds them, numbers with bounds 9 before the point. Bounds are below 2^53:
  // above, several integers are the same double.
  const double most = integer ? 9007199254740991.0 : 999999999.0, unbounded = integer ? 1e18 : 999999999.0;
  bool bounded = false;
  const auto bound = [&](const char* keyword, double missing, bool larger) {
    const std::string other = std::string("exclusive") + (larger ? "Minimum" : "Maximum");
    Bound result{missing, false};
    for (const std::string& name : {std::string(keyword), other}) {
      const auto found = at.schema.find(name);
      if (found == at.schema.end()) continue;
      double x = found->is_number() ? found->get<double>() : NAN;
      if (!(std::fabs(x) <= most))
        at.fail(str("has a bad value of '", name, "': expected a number from ", detail::decimal(-most), " to ",
                    detail::decimal(most)));
      bool open = name == other;
      if (integer && x != std::floor(x)) x = larger ? std::ceil(x) : std::floor(x), open = false;
      if (x != std::floor(x)) at.fail(str("has a '", name, "' that is not supported: expected an integer"));
      if (integer && open) x += larger ? 1 : -1, open = false;
      bounded = true;
      const bool tighter = larger ? x > result.value : x < result.value;
      if (tighter || (x == result.value && open)) result = {x, open};
    }
    return result;
  };
  Bound low = bound("minimum", -unbounded, true), high = bound("maximum", unbounded, false);
  if (!bounded && !integer) return w.json_number();
  if (low.value > high.value || (low.value == high.value && (low.excluded || high.excluded)))
    at.fail("permits no number: its minimum is above its maximum");
  std::vector<GrammarWriter::Emit> parts;
  const Bound zero{0, false};
  if (low.value < 0)
    parts.push_back([&] {
      w.text("-");
      const Bound from = integer           ? Bound{std::max(1.0, -high.value), false}
                         : high.value <= 0 ? Bound{-high.value, high.excluded}
                                           : zero;
      write_magnitudes(w, from, {-low.value, low.excluded}, integer);
    });
  if (high.value > 0 || (high.value == 0 && !high.excluded))
    parts.push_back([&] { write_magnitudes(w, low.value >= 0 ? low : zero, high, integer); });
  w.either(parts);
}

}  // namespace braid::models::schema
