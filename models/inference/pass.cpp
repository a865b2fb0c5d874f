#include "braid/models/inference/pass.h"

#include <algorithm>

#include "braid/autograd/ops.h"
#include "braid/models/inference/sequence_pool.h"
#include "braid/models/inference/token_score.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/row_invariant.h"
#include "braid/tensor/strict.h"

namespace braid::models {
namespace {

constexpr size_t kLogitsRows = 64;

// A row of the hidden state whose logits are needed.
struct Row {
  RequestState* state;
  int64_t row;      // of the pass
  size_t position;  // of the token that follows
};

struct Outcome {
  int32_t token = 0;
  std::optional<TokenScore> score;
  std::exception_ptr error;
};

bool draws(const Row& row) { return row.position == row.state->text.size(); }

std::vector<Row> rows_with_logits(std::span<const Piece> pieces) {
  std::vector<Row> rows;
  int64_t first = 0;  // row of the piece's first token
  for (const Piece& piece : pieces) {
    RequestState& s = *piece.state;
    for (int64_t t = piece.begin; t < piece.end; ++t) {
      const int64_t next = t + 1;
      const bool score = next >= s.scored && next < s.prompt_length();
      const bool draw = next == std::ssize(s.text) && s.request.max_tokens > 0;
      if (score || draw) rows.push_back({&s, first + t - piece.begin, static_cast<size_t>(next)});
    }
    first += piece.end - piece.begin;
  }
  return rows;
}

int32_t draw(const RequestState& s, std::span<const float> logits) {
  std::vector<float> allowed(logits.begin(), logits.end());
  if (s.constrained) {
    check_logits(logits, s.text.size());
    s.constrained->mask(allowed);
  }
  return static_cast<int32_t>(
      sample_token(std::move(allowed), s.text, s.request.sampling, static_cast<size_t>(s.prompt_length())));
}

// The token that follows a row and its score: a function of the row's logits (V) and its request alone.
Outcome outcome(const Row& row, std::span<const float> logits, bool strict) {
  const RequestState& s = *row.state;
  const GenerationRequest& request = s.request;
  Outcome out;
  try {
    out.token = draws(row) ? draw(s, logits) : s.text[row.position];
    if (!draws(row) || request.logprobs) out.score = token_score(logits, out.token, request.top, row.position, strict);
  } catch (...) {
    out.error = std::current_exception();
  }
  return out;
}

void apply(const Row& row, Outcome&& out) {
  RequestState& s = *row.state;
  if (s.error) return;  // of an earlier row
  if (out.error) {
    s.error = out.error;
    return;
  }
  if (out.score) (draws(row) ? s.scores : s.prompt_scores).push_back(std::move(*out.score));
  if (draws(row))
    s.drawn = out.token;
  else
    s.scored = static_cast<int64_t>(row.position) + 1;
}

// h (R, D) -> logits (n, V) of these rows, in f32 on the CPU.
Tensor logits_of(const LanguageModel& model, const Tensor& h, std::span<const Row> rows) {
  std::vector<int64_t> numbers;
  for (const Row& row : rows) numbers.push_back(row.row);
  const Tensor ids = from_vector(numbers, {std::ssize(numbers)}).to(h.device());
  return model.logits(index_select(h, ids)).to(DType::f32).to(kCpu).contiguous();
}

}  // namespace

void compute_pass(const LanguageModel& model, SequencePool& pool, std::span<const Piece> pieces) {
  const NoGrad off;
  const RowInvariantProducts rows_alone;
  std::vector<SequencePool::Part> parts;
  for (const Piece& piece : pieces) {
    const std::span<const int32_t> text = piece.state->text;
    const auto begin = static_cast<size_t>(piece.begin), end = static_cast<size_t>(piece.end);
    parts.push_back({.sequence = piece.state->sequence,
                     .tokens = text.subspan(begin, end - begin),
                     .generated = piece.begin >= piece.state->prompt_length()});
  }
  const Tensor h = pool.hidden(parts);
  const std::vector<Row> rows = rows_with_logits(pieces);
  for (size_t begin = 0; begin < rows.size(); begin += kLogitsRows) {
    const std::span<const Row> some = std::span(rows).subspan(begin, std::min(kLogitsRows, rows.size() - begin));
    const std::vector<float> logits = logits_of(model, h, some).to_vector<float>();
    const size_t V = logits.size() / some.size();
    std::vector<Outcome> outcomes(some.size());
    parallel_for(std::ssize(some), 1, [&, strict = strict_bits()](int64_t from, int64_t to) {
      for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i)
        outcomes[i] = outcome(some[i], std::span(logits).subspan(i * V, V), strict);
    });
    for (size_t i = 0; i < some.size(); ++i) apply(some[i], std::move(outcomes[i]));
  }
}

}  // namespace braid::models
