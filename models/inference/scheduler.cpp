#include "braid/models/inference/scheduler.h"

#include <algorithm>
#include <string>

namespace braid::models {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

void check_range(bool ok, const char* option, int64_t value, const std::string& allowed) {
  check(ok, ErrorKind::setting,
        [&] { return str("generation option ", option, " is out of range: expected ", allowed, ", found ", value); });
}

// Positions of the longest text that fits the model and, alone, the pool.
int64_t longest_text(const LanguageModel& model, const SequencePool& pool) {
  int64_t fits = 0, beyond = model.max_sequence_length() + 1;
  while (beyond - fits > 1) {
    const int64_t middle = fits + (beyond - fits) / 2;
    (pool.blocks_for(middle) <= pool.blocks() ? fits : beyond) = middle;
  }
  return fits;
}

// Positions of the prompt and of the new tokens, but for the last one, which needs none.
int64_t max_positions(const GenerationRequest& request, int64_t longest) {
  const int64_t prompt = std::ssize(request.prompt);
  return prompt + std::min(std::max<int64_t>(request.max_tokens - 1, 0), longest - prompt);
}

// Tokens that may come from another sequence: the last one is computed, for its logits are needed, and so are those
// from the one before the next prompt token that needs a score.
int64_t shareable(const RequestState& s) {
  const int64_t last = std::ssize(s.text) - 1;
  return s.scored < s.prompt_length() ? std::min(last, s.scored - 1) : last;
}

}  // namespace

Scheduler::Scheduler(const LanguageModel& model, std::unique_ptr<SequencePool> pool, const EngineOptions& options)
    : model_(model),
      pool_(std::move(pool)),
      options_(options),
      longest_(longest_text(model, *pool_)),
      prefixes_(*pool_, options.share_prefixes ? static_cast<size_t>(4 * options.sequences) : 0) {
  options_.rows = std::max(options.rows, options.sequences);
  if (options.positions > 0) longest_ = std::min(longest_, options.positions);
}

void Scheduler::check_request(const GenerationRequest& request) const {
  check_options(request.sampling);
  check_prompt(model_, request.prompt);
  check_range(request.max_tokens >= 0, "max_tokens", request.max_tokens, "0 or more");
  check_range(request.top >= 0 && request.top <= model_.vocab_size(), "top", request.top,
              str("0 to ", model_.vocab_size()));
  check(std::ssize(request.prompt) <= longest_, ErrorKind::setting, [&] {
    return str("the prompt has ", request.prompt.size(), " tokens, the cache of this engine has room for ", longest_,
               "; give it more positions");
  });
}

void Scheduler::add(uint64_t id, GenerationRequest request, Clock::time_point submitted) {
  auto state = std::make_unique<RequestState>();
  state->totals.id = id;
  state->totals.prompt_tokens = std::ssize(request.prompt);
  state->text = request.prompt;
  state->max_positions = max_positions(request, longest_);
  state->scored = request.score_from >= 1 ? request.score_from : std::ssize(request.prompt);
  state->submitted = submitted;
  if (request.constraint) state->constrained = std::make_unique<ConstrainedText>(request.constraint, request.ends);
  state->request = std::move(request);
  waiting_.push_back(std::move(state));
}

void Scheduler::cancel(uint64_t id) {
  for (const std::deque<Request>* requests : {&running_, &waiting_}) {
    const auto at = std::ranges::find_if(*requests, [&](const Request& r) { return r->totals.id == id; });
    if (at != requests->end()) return finish(**at, {}, StopReason::cancelled);
  }
}

void Scheduler::drop_prefixes() {
  while (prefixes_.drop_oldest()) continue;
}

bool Scheduler::prepare() {
  if (running_.empty() && waiting_.empty()) return false;
  make_room();
  admit();
  plan();
  return true;
}

// --- memory and admission ---

std::vector<Prefixes::Live> Scheduler::live(bool computed) const {
  std::vector<Prefixes::Live> all;
  for (const Request& r : running_) {
    const std::span<const int32_t> text = r->text;
    all.push_back({r->sequence, computed ? text.first(static_cast<size_t>(pool_->length(r->sequence))) : text});
  }
  return all;
}

// A request whose text begins as one that is being read would compute the same again: it waits for it instead.
bool Scheduler::waits_for_a_prefix(const RequestState& s) const {
  if (!options_.share_prefixes) return false;
  const int64_t now = prefixes_.longest(s.text, shareable(s), live(true)),
                soon = prefixes_.longest(s.text, shareable(s), live(false));
  return soon - now >= pool_->block();
}

// Blocks of all layers that the request takes when its text grows into the next ones; 0 where it has the last ones.
int64_t Scheduler::blocks_of_growth(const RequestState& s) const {
  const int64_t length = std::ssize(s.text);
  return pool_->blocks_for(std::min(s.max_positions, length + pool_->block())) - pool_->blocks_for(length);
}

int64_t Scheduler::blocks_to_spare() const {
  int64_t blocks = 0;
  for (const Request& r : running_) blocks += blocks_of_growth(*r);
  return blocks;
}

// Every request that decodes gets room for its next token: blocks of kept prefixes first, then those of the youngest.
void Scheduler::make_room() {
  for (size_t i = 0; i < running_.size(); ++i) {
    RequestState& s = *running_[i];
    if (pending(s) > 1) continue;  // a prompt has its room
    while (!pool_->reserve(s.sequence, 1)) {
      if (prefixes_.drop_oldest()) continue;
      interrupt_youngest();
      if (i == running_.size()) return;  // it was this one
    }
  }
}

// It is computed again from its tokens and continues as if nothing had been: draws depend on seed and position alone.
void Scheduler::interrupt_youngest() {
  Request youngest = std::move(running_.back());
  running_.pop_back();
  pool_->close(std::exchange(youngest->sequence, -1));
  waiting_.push_front(std::move(youngest));
  ++sums_.interruptions;
}

// In the order of arrival, none before another, while rows of the pass and blocks are left.
void Scheduler::admit() {
  int64_t rows = options_.rows;
  for (const Request& r : running_) rows -= pending(*r);
  while (!waiting_.empty() && std::ssize(running_) < options_.sequences && rows > 0) {
    RequestState& s = *waiting_.front();
    if (waits_for_a_prefix(s)) return;
    try {
      if (!place(s)) return;
    } catch (...) {  // no memory
      fail(s, std::current_exception());
      continue;
    }
    rows -= pending(s);
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    if (s.admitted != Clock::time_point()) continue;  // it was interrupted
    s.admitted = Clock::now();
    s.totals.queue_seconds = seconds(s.submitted, s.admitted);
    s.totals.shared_tokens = pool_->length(s.sequence);
    sums_.prompt_tokens += s.prompt_length();
    sums_.shared_tokens += s.totals.shared_tokens;
  }
}

// Gives the request a sequence with room for its text, and leaves room for the growth of each that runs.
bool Scheduler::place(RequestState& s) {
  const auto fits = [&] {
    return pool_->reserve(s.sequence, pending(s)) && pool_->free_blocks() >= blocks_to_spare() + blocks_of_growth(s);
  };
  s.sequence = prefixes_.open(s.text, shareable(s), live(true));
  bool room = fits();
  while (!room && prefixes_.drop_oldest()) room = fits();
  if (!room && running_.empty()) {  // it is alone: what it shares may be in its own way
    pool_->close(std::exchange(s.sequence, -1));
    s.sequence = pool_->open();
    check(pool_->reserve(s.sequence, pending(s)), ErrorKind::misuse, [&] {
      return str(s.text.size(), " tokens do not fit an empty cache of ", pool_->blocks(), " blocks of ", pool_->block(),
                 " positions");
    });
    room = true;
  }
  if (room) return true;
  const auto length = static_cast<std::ptrdiff_t>(pool_->length(s.sequence));
  prefixes_.keep(std::exchange(s.sequence, -1), {s.text.begin(), s.text.begin() + length});
  return false;
}

// --- a pass ---

// One row for each request that decodes, then prompts, each in the order of arrival.
void Scheduler::plan() {
  pieces_.clear();
  int64_t rows = options_.rows;
  for (const bool decoding : {true, false}) {
    for (const Request& r : running_) {
      const int64_t begin = pool_->length(r->sequence), prompt = r->prompt_length();
      const int64_t end = begin < prompt ? prompt : std::ssize(r->text);
      if ((pending(*r) == 1) != decoding || rows == 0) continue;
      pieces_.push_back({r.get(), begin, std::min(end, begin + rows)});
      rows -= pieces_.back().end - begin;
    }
  }
}

void Scheduler::compute() {
  if (pieces_.empty()) return;
  const Clock::time_point start = Clock::now();
  int64_t rows = 0, prompt_rows = 0;
  for (const Piece& piece : pieces_) {
    rows += piece.end - piece.begin;
    if (piece.state->draws == 0) prompt_rows += piece.end - piece.begin;
  }
  std::exception_ptr error;
  try {
    compute_pass(model_, *pool_, pieces_);
  } catch (...) {
    error = std::current_exception();
  }
  const double share = static_cast<double>(prompt_rows) / static_cast<double>(rows),
               time = seconds(start, Clock::now());
  sums_.prompt_seconds += time * share;
  sums_.step_seconds += time * (1 - share);
  ++sums_.passes;
  for (const Piece& piece : std::exchange(pieces_, {})) {
    if (error) piece.state->error = error;
    deliver(*piece.state);
  }
}

// Tells the caller what the pass brought.
void Scheduler::deliver(RequestState& s) {
  if (s.error) return fail(s, s.error);
  if (pending(s) > 0) return;  // a piece of the prompt
  Update update{.id = s.totals.id, .prompt_scores = std::exchange(s.prompt_scores, {})};
  if (s.draws == 0) {
    s.first_draw = Clock::now();
    s.totals.prompt_seconds = seconds(s.admitted, s.first_draw);
  }
  std::optional<StopReason> end = StopReason::length;
  bool go_on = true;
  try {
    if (s.drawn) end = add_draw(s, update);
    if (!end && s.request.on_update) go_on = s.request.on_update(update);
  } catch (...) {
    return fail(s, std::current_exception());
  }
  if (end) return finish(s, std::move(update), *end);
  if (!go_on) finish(s, {}, StopReason::caller);
}

// The drawn token; why the text ends with it.
std::optional<StopReason> Scheduler::add_draw(RequestState& s, Update& update) {
  const int32_t token = *std::exchange(s.drawn, std::nullopt);
  if (s.draws++ > 0) {
    ++s.totals.steps;
    ++sums_.steps;
    s.totals.step_seconds = seconds(s.first_draw, Clock::now());
  }
  update.scores = std::exchange(s.scores, {});
  if (std::ranges::count(s.request.ends, token) > 0) return StopReason::end_of_text;
  update.tokens.push_back(token);
  s.text.push_back(token);
  ++sums_.new_tokens;
  if (s.constrained) {
    s.constrained->add(token);
    if (s.constrained->ended()) return StopReason::end_of_text;
  }
  if (s.new_tokens() >= s.request.max_tokens) return StopReason::length;
  if (std::ssize(s.text) > longest_) return StopReason::context_full;
  return std::nullopt;
}

// --- ends ---

void Scheduler::fail(RequestState& s, std::exception_ptr error) {
  Update update{.error = std::move(error)};
  finish(s, std::move(update), StopReason::failed);
}

void Scheduler::finish(RequestState& s, Update update, StopReason reason) {
  if (s.admitted == Clock::time_point()) s.totals.queue_seconds = seconds(s.submitted, Clock::now());
  Update last = s.totals;
  last.tokens = std::move(update.tokens);
  last.scores = std::move(update.scores);
  last.prompt_scores = std::move(update.prompt_scores);
  last.error = std::move(update.error);
  last.reason = reason;
  last.finished = true;
  ++(reason == StopReason::cancelled ? sums_.cancelled : reason == StopReason::failed ? sums_.failed : sums_.finished);
  const Request own = remove(s);
  if (s.sequence >= 0 && reason == StopReason::failed) pool_->close(s.sequence);
  if (s.sequence >= 0 && reason != StopReason::failed) {
    s.text.resize(static_cast<size_t>(pool_->length(s.sequence)));
    prefixes_.keep(s.sequence, std::move(s.text));
  }
  try {
    if (s.request.on_update) s.request.on_update(last);
  } catch (...) {  // the request has ended
  }
}

Scheduler::Request Scheduler::remove(const RequestState& s) {
  for (std::deque<Request>* requests : {&running_, &waiting_}) {
    const auto at = std::ranges::find_if(*requests, [&](const Request& r) { return r.get() == &s; });
    if (at == requests->end()) continue;
    Request own = std::move(*at);
    requests->erase(at);
    return own;
  }
  return nullptr;
}

EngineLoad Scheduler::load() const {
  EngineLoad load = sums_;
  load.waiting = std::ssize(waiting_);
  load.running = std::ssize(running_);
  load.kept = prefixes_.size();
  load.blocks = pool_->blocks();
  load.free_blocks = pool_->free_blocks();
  return load;
}

}  // namespace braid::models
