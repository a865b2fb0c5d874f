// A strict reader of the text format of Prometheus (0.0.4).
#pragma once
#include <boost/test/unit_test.hpp>
#include <map>
#include <regex>
#include <sstream>
#include <string>

namespace braid::test {

// The values by metric and labels, as they stand there: "braid_train_loss{run=\"r\"}". An error of the format fails the
// test: each metric begins with HELP and TYPE, once, its samples follow at once, none twice, counters end in _total.
inline std::map<std::string, double> read_exposition(const std::string& text) {
  static const std::string name = "[a-zA-Z_:][a-zA-Z0-9_:]*",
                           label = R"re([a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*")re";
  static const std::regex help("# HELP (" + name + R"re() ((?:[^\\\n]|\\[\\n])+))re"),
      type("# TYPE (" + name + ") (counter|gauge|histogram)"),
      sample("(" + name + R"re()(\{)re" + label + "(?:," + label + R"re()*\})? (\S+))re");
  std::map<std::string, double> values;
  std::map<std::string, std::string> types;
  BOOST_REQUIRE_MESSAGE(text.ends_with('\n'), "no line end at the end of: " << text);
  std::istringstream lines(text);
  std::string metric;
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    BOOST_TEST_CONTEXT("line: " << line) {
      if (std::regex_match(line, found, help)) {
        metric = found[1];
        BOOST_TEST(!types.contains(metric));
        BOOST_REQUIRE(std::getline(lines, line));
        BOOST_REQUIRE(std::regex_match(line, found, type));
        BOOST_TEST(found[1] == metric);
        types[metric] = found[2];
        BOOST_TEST((types[metric] == "counter") == metric.ends_with("_total"));
        continue;
      }
      BOOST_REQUIRE(std::regex_match(line, found, sample));
      const std::string base = found[1], suffix = base.starts_with(metric) ? base.substr(metric.size()) : "?";
      const bool histogram = types[metric] == "histogram";
      BOOST_TEST((histogram ? suffix == "_bucket" || suffix == "_sum" || suffix == "_count" : suffix.empty()));
      size_t used = 0;
      const std::string number = found[3];
      const double value = std::stod(number, &used);
      BOOST_TEST(used == number.size());
      BOOST_TEST(values.emplace(line.substr(0, line.size() - number.size() - 1), value).second);
    }
  }
  return values;
}

}  // namespace braid::test
