// A language model whose next token is a hash of all tokens so far: exact whatever the pieces, so that a scheduler that
// mixes up two texts, leaves out a token or repeats one gets other tokens. And a pool that shares blocks for it.
#pragma once
#include <limits>

#include "braid/autograd/record.h"
#include "braid/models/inference/engine.h"
#include "braid/models/inference/sequence_pool.h"
#include "braid/models/model_spec.h"
#include "braid/tensor/random.h"

namespace braid::test {

class HashModel final : public models::LanguageModel {
 public:
  static constexpr int64_t kVocabulary = 50, kLongest = 64;
  static constexpr int32_t kNan = 48, kThrow = 49;  // NaN logits after kNan; a pass with kThrow fails

  static double hash(double before, int32_t token) {
    const auto bits = random_bits(static_cast<uint64_t>(token), {static_cast<uint64_t>(before), 7});
    return static_cast<double>(bits);
  }
  static void fail_on(int32_t token) {
    check(token != kThrow, ErrorKind::process, [] { return std::string("the pass failed"); });
  }

  // The past is one key per position: its hash.
  Tensor hidden(const Tensor& ids, models::KvCache* cache, const nn::ActivationObserver*) const override {
    const std::vector<int32_t> tokens = ids.to_vector<int32_t>();
    double h = 0;
    if (cache && cache->position() > 0) h = cache->layers[0].keys().contiguous().to_vector<double>().back();
    std::vector<double> hashes, out;
    for (const int32_t token : tokens) {
      fail_on(token);
      hashes.push_back(h = hash(h, token));
      out.insert(out.end(), {h, static_cast<double>(token)});
    }
    const int64_t T = std::ssize(tokens);
    const Tensor keys = from_vector(hashes, {1, T, 1, 1});
    if (cache) cache->layers[0].append(keys, keys, {}, {});
    return from_vector(out, {1, T, 2});
  }
  Tensor logits(const Tensor& hidden) const override {
    const std::vector<double> rows = hidden.contiguous().to_vector<double>();
    std::vector<double> out;
    for (size_t i = 0; i < rows.size(); i += 2) {
      const RandomKey key{static_cast<uint64_t>(rows[i]), 9};
      for (int64_t v = 0; v < kVocabulary; ++v) {
        const double l = 8 * unit(random_bits(static_cast<uint64_t>(v), key)) - (v >= kNan ? 100 : 0);
        out.push_back(rows[i + 1] == kNan ? std::numeric_limits<double>::quiet_NaN() : l);
      }
    }
    return from_vector(out, {std::ssize(rows) / 2, kVocabulary});
  }
  models::KvCache make_cache(int64_t capacity) const override {
    models::KvCache cache;
    cache.layers.emplace_back(capacity, 0);
    return cache;
  }
  int64_t vocab_size() const override { return kVocabulary; }
  int64_t max_sequence_length() const override { return kLongest; }
  using LanguageModel::loss_sum;
  Tensor loss_sum(const Tensor&, const Tensor&) const override { fail("hash_model", "is not trained"); }
  std::unique_ptr<const models::ModelSpec> spec() const override { fail("hash_model", "has no configuration"); }
  DType dtype() const override { return DType::f64; }
  Device device() const override { return kCpu; }
  void to(DType) override {}
  void to(Device) override {}
  void visit(nn::Visitor&) const override {}
};

// The logits that follow a text.
inline std::vector<float> hash_logits(const HashModel& model, const std::vector<int32_t>& text) {
  const NoGrad off;
  const Tensor h = model.hidden(from_vector(text, {1, std::ssize(text)}), nullptr, nullptr);
  return model.logits(h.sliced(1, h.dim(1) - 1, h.dim(1))).to(DType::f32).to_vector<float>();
}

// Blocks of 4 positions, which sequences share by counting; it stores the tokens themselves.
class SharingPool final : public models::SequencePool {
 public:
  struct Log {  // outlives the pool
    int64_t rows = 0, max_rows = 0, generated = 0;
  };
  SharingPool(int64_t blocks, Log* log = nullptr) : users_(static_cast<size_t>(blocks), 0), log_(log) {}

  int64_t block() const override { return 4; }
  int64_t blocks() const override { return std::ssize(users_); }
  int64_t free_blocks() const override { return std::ranges::count(users_, 0); }
  int64_t bytes() const override { return 0; }
  int64_t blocks_for(int64_t length) const override { return (length + 3) / 4; }
  int open() override {
    const auto at = std::ranges::find(sequences_, false, &Sequence::open);
    const auto number = static_cast<int>(at - sequences_.begin());
    if (at == sequences_.end()) sequences_.emplace_back();
    sequences_[static_cast<size_t>(number)] = {.open = true};
    return number;
  }
  int fork(int of, int64_t length) override {
    const int copy = open();
    const Sequence& from = this->at(of);
    const auto whole = static_cast<size_t>(std::min(length, std::ssize(from.tokens)) / 4);
    this->at(copy).blocks.assign(from.blocks.begin(), from.blocks.begin() + static_cast<std::ptrdiff_t>(whole));
    this->at(copy).tokens.assign(from.tokens.begin(), from.tokens.begin() + static_cast<std::ptrdiff_t>(4 * whole));
    for (const size_t b : this->at(copy).blocks) ++users_[b];
    return copy;
  }
  void close(int sequence) override {
    for (const size_t b : at(sequence).blocks) --users_[b];
    at(sequence) = {};
  }
  int64_t length(int sequence) const override {
    return std::ssize(sequences_.at(static_cast<size_t>(sequence)).tokens);
  }
  bool reserve(int sequence, int64_t more) override {
    Sequence& s = at(sequence);
    const int64_t needed = blocks_for(std::ssize(s.tokens) + more) - std::ssize(s.blocks);
    if (needed > free_blocks()) return false;
    for (int64_t i = 0; i < needed; ++i) {
      const auto free = std::ranges::find(users_, 0);
      *free = 1;
      s.blocks.push_back(static_cast<size_t>(free - users_.begin()));
    }
    return true;
  }
  Tensor hidden(std::span<const Part> parts) override {
    std::vector<double> out;
    for (const Part& part : parts) {
      Sequence& s = at(part.sequence);
      if (log_ && part.generated) log_->generated += std::ssize(part.tokens);
      double h = 0;
      for (const int32_t token : s.tokens) h = HashModel::hash(h, token);
      for (const int32_t token : part.tokens) {
        HashModel::fail_on(token);
        h = HashModel::hash(h, token);
        out.insert(out.end(), {h, static_cast<double>(token)});
        s.tokens.push_back(token);
      }
      check(blocks_for(std::ssize(s.tokens)) <= std::ssize(s.blocks), "sharing_pool",
            [] { return std::string("no room was reserved"); });
    }
    const int64_t rows = std::ssize(out) / 2;
    if (log_) log_->rows += rows, log_->max_rows = std::max(log_->max_rows, rows);
    return from_vector(out, {rows, 2});
  }
  bool invariant() const override { return true; }

 private:
  struct Sequence {
    bool open = false;
    std::vector<int32_t> tokens;
    std::vector<size_t> blocks;
  };
  Sequence& at(int sequence) {
    Sequence& s = sequences_.at(static_cast<size_t>(sequence));
    check(s.open, "sharing_pool", [] { return std::string("the sequence is not open"); });
    return s;
  }

  std::vector<Sequence> sequences_;
  std::vector<int> users_;  // of each block
  Log* log_;
};

// All that a request was told.
struct Told {
  std::vector<int32_t> tokens;
  std::vector<models::TokenScore> scores, prompt_scores;
  models::Update last;
  int updates = 0, finished = 0;

  // Adds to this what a request gets.
  models::GenerationRequest listen(models::GenerationRequest request) {
    request.on_update = [this, inner = request.on_update](const models::Update& u) {
      tokens.insert(tokens.end(), u.tokens.begin(), u.tokens.end());
      scores.insert(scores.end(), u.scores.begin(), u.scores.end());
      prompt_scores.insert(prompt_scores.end(), u.prompt_scores.begin(), u.prompt_scores.end());
      ++updates;
      finished += u.finished;
      last = u;
      return !inner || inner(u);
    };
    return request;
  }
};

inline bool equal(const std::vector<models::TokenScore>& a, const std::vector<models::TokenScore>& b) {
  return std::ranges::equal(a, b, [](const models::TokenScore& x, const models::TokenScore& y) {
    return x.token == y.token && x.logprob == y.logprob && x.top == y.top;
  });
}
// The same tokens and scores, to the last bit, and the same end.
inline bool equal(const Told& a, const Told& b) {
  return a.tokens == b.tokens && equal(a.scores, b.scores) && equal(a.prompt_scores, b.prompt_scores) &&
         a.last.reason == b.last.reason && a.finished == 1 && b.finished == 1;
}

// The request by itself, without sharing, in pieces of one row.
inline Told alone(const HashModel& model, models::GenerationRequest request) {
  Told told;
  request.on_update = nullptr;
  models::GenerationEngine engine(model, {.sequences = 1, .rows = 1, .share_prefixes = false});
  engine.submit(told.listen(std::move(request)));
  engine.run();
  return told;
}

inline std::string message_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace braid::test
