// Metrics in the text format of Prometheus (0.0.4), as `braid serve` and `braid train` give them.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace braid::apps {

class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // The HELP and TYPE lines of a metric, whose samples follow. type: counter, gauge or histogram.
  void begin(const std::string& name, const char* type, const std::string& help);
  // suffix: of a histogram's sample, such as "_sum".
  void sample(const std::string& value, const Labels& labels = {}, const char* suffix = "");
  void add(const std::string& name, const char* type, const std::string& help, const std::string& value,
           const Labels& labels = {}) {
    begin(name, type, help);
    sample(value, labels);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_, name_;
};

}  // namespace braid::apps
