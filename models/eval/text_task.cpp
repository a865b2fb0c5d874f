#include "braid/models/eval/text_task.h"

#include <algorithm>
#include <numbers>

#include "braid/models/eval/metrics.h"
#include "braid/models/eval/python_text.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"

namespace braid::models::eval {
namespace {

class TextTask final : public EvalTask {
 public:
  TextTask(const std::vector<TextDocument>& texts, const PairEncoder& encoder, int64_t stride, int64_t limit) {
    const size_t n = limit > 0 ? std::min(texts.size(), static_cast<size_t>(limit)) : texts.size();
    const int64_t by = stride > 0 ? stride : encoder.longest() - 1;
    check(by < encoder.longest(), ErrorKind::setting, [&] {
      return str("bad value for `stride`: expected at most ", encoder.longest() - 1,
                 ", one less than the longest sequence, found ", by);
    });
    for (size_t i = 0; i < n; ++i) {
      if (!encoder.tokenizer().takes_any_bytes() && !detail::valid_utf8(texts[i].text))
        notes_.push_back(texts[i].where +
                         " is no UTF-8: bytes that are not are scored as U+FFFD, each counted as one byte");
      windows_.emplace_back(encoder.encode_text(texts[i].text, texts[i].where), encoder.prefix(), encoder.longest(),
                            by);
      begins_.push_back(begins_.back() + windows_.back().size());
      const std::string& counted = texts[i].unfiltered ? *texts[i].unfiltered : texts[i].text;
      bytes_ += std::ssize(counted);
      words_ += count_words(counted);
    }
  }

  int64_t size() const override { return begins_.back(); }
  std::vector<Sequence> sequences(int64_t item) const override {
    const auto [text, window] = find(item);
    return {text.at(window)};
  }
  int64_t longest(int64_t item) const override {
    const auto [text, window] = find(item);
    return text.length(window);
  }
  std::vector<std::pair<std::string, double>> verdict(int64_t, const ItemScores& scores) const override {
    return {{"logprob", scores[0].logprob}, {"tokens", static_cast<double>(scores[0].greedy.size())}};
  }
  bool items_follow_tokenizer() const override { return true; }  // windows
  std::vector<std::string> notes() const override { return notes_; }
  std::vector<Metric> metrics(std::span<const ItemScores> scores) const override {
    std::vector<double> nats, tokens;
    for (size_t i = 0; i < scores.size(); ++i) {
      nats.push_back(-scores[i][0].logprob);
      const auto [text, window] = find(static_cast<int64_t>(i));
      tokens.push_back(static_cast<double>(text.scored(window)));
    }
    const Metric per_token = ratio("nats", nats, tokens);
    const double all = sum(tokens);
    const auto per = [&](int64_t units) { return scaled("nats", per_token, all / static_cast<double>(units)); };
    return {scaled("bits_per_byte", per(bytes_), 1 / std::numbers::ln2),
            exponential("byte_perplexity", per(bytes_)),
            exponential("token_perplexity", per_token),
            exponential("word_perplexity", per(words_)),
            {.name = "tokens", .value = all, .error = {}, .count = true},
            {.name = "bytes", .value = static_cast<double>(bytes_), .error = {}, .count = true}};
  }

 private:
  struct Found {
    const Windows& text;
    int64_t window;
  };
  Found find(int64_t item) const {
    const auto behind = std::ranges::upper_bound(begins_, item);
    const auto text = static_cast<size_t>(behind - begins_.begin() - 1);
    return {windows_.at(text), item - begins_[text]};
  }

  std::vector<Windows> windows_;       // of each text
  std::vector<int64_t> begins_ = {0};  // the first item of each text, and the end
  int64_t bytes_ = 0, words_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace

std::unique_ptr<EvalTask> make_text_task(const std::vector<TextDocument>& texts, const PairEncoder& encoder,
                                         int64_t stride, int64_t limit) {
  return std::make_unique<TextTask>(texts, encoder, stride, limit);
}

}  // namespace braid::models::eval
