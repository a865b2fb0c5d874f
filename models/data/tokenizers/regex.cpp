#include "braid/models/data/tokenizers/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text {

struct Regex::Code {
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;
  bool jit = false;
  ~Code() {
    pcre2_code_free(code);
    pcre2_match_context_free(context);
  }
};

namespace {
constexpr uint32_t least_match_limit = 5'000'000;  // steps of one match; published patterns need a few per character

std::string message(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}
}  // namespace

Regex::Regex(std::string_view pattern, const std::string& where)
    : code_(std::make_unique<Code>()), pattern_(pattern), where_(where) {
  const std::string rewritten = pcre2_pattern(pattern, where);
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);  // for . ^ $
  pcre2_set_max_pattern_length(context, 1 << 20);
  int error = 0;
  PCRE2_SIZE at = 0;
  code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten.data()), rewritten.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C,
                              &error, &at, context);
  pcre2_compile_context_free(context);
  check(code_->code != nullptr, ErrorKind::input, [&] {
    return "bad pattern in " + where + ": expected a regular expression, found '" + detail::preview(pattern) +
           "': " + message(error);
  });
  code_->jit = pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE) == 0;
  code_->context = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(code_->context, least_match_limit);
}

Regex::~Regex() = default;

Regex::Search::Search(const Regex& regex, std::string_view text)
    : regex_(regex), text_(text), match_(pcre2_match_data_create(1, nullptr)) {
  check(match_ != nullptr, "Regex", "out of memory");
}

Regex::Search::~Search() { pcre2_match_data_free(static_cast<pcre2_match_data*>(match_)); }

bool Regex::Search::next(size_t& begin, size_t& end) {
  const Code& code = *regex_.code_;
  auto* match = static_cast<pcre2_match_data*>(match_);
  const auto* text = reinterpret_cast<PCRE2_SPTR>(text_.data());
  while (from_ <= text_.size()) {
    int rc = code.jit ? pcre2_jit_match(code.code, text, text_.size(), from_, 0, match, code.context)
                      : PCRE2_ERROR_JIT_STACKLIMIT;
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)  // the interpreter takes its memory from the heap
      rc = pcre2_match(code.code, text, text_.size(), from_, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, code.context);
    if (rc == PCRE2_ERROR_NOMATCH) break;
    check(rc >= 0, ErrorKind::input, [&] {
      return str("the pattern of ", regex_.where_, " fails on a text: ", message(rc), " at byte ", from_, " of ",
                 text_.size(), ": '", detail::preview(regex_.pattern_), "'; it backtracks too much");
    });
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match);
    begin = span[0], end = span[1];
    if (begin == end && end == last_end_) {
      from_ = end + 1;
      while (from_ < text_.size() && (static_cast<unsigned char>(text_[from_]) & 0xC0) == 0x80) ++from_;
      continue;
    }
    from_ = last_end_ = end;
    return true;
  }
  from_ = text_.size() + 1;
  return false;
}

}  // namespace braid::models::text
