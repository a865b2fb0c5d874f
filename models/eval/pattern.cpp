#include "braid/models/eval/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "braid/models/eval/filters.h"

namespace braid::models::eval {
namespace {

constexpr uint32_t kMatchLimit = 5'000'000;  // steps of one match

std::string words_of(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

PCRE2_SPTR bytes_of(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

struct Pattern::Code {
  pcre2_code* code = nullptr;
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() {
    pcre2_code_free(code);
    pcre2_match_context_free(context);
  }
};

Pattern::Pattern(const std::string& pattern, const std::string& name, bool ignore_case, ErrorKind kind)
    : pattern_(pattern) {
  const auto made = std::make_shared<Code>();
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);  // for . ^ $
  int error = 0;
  PCRE2_SIZE at = 0;
  made->code = pcre2_compile(bytes_of(pattern), pattern.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | (ignore_case ? PCRE2_CASELESS : 0),
                             &error, &at, context);
  pcre2_compile_context_free(context);
  check(made->code != nullptr, kind, [&] {
    return str("bad text for ", name, ": expected a regular expression, found ", in_quotes(pattern), ": ",
               words_of(error), ", at byte ", at);
  });
  check(made->context != nullptr, "Pattern", "out of memory");
  pcre2_set_match_limit(made->context, kMatchLimit);
  code_ = made;
}

// take(begin, end, group)
template <class Take>
void Pattern::search(std::string_view text, const Take& take) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create_from_pattern(code_->code, nullptr), &pcre2_match_data_free);
  check(match != nullptr, "Pattern", "out of memory");
  for (size_t from = 0; from <= text.size();) {
    const int rc = pcre2_match(code_->code, bytes_of(text), text.size(), from, from > 0 ? PCRE2_NO_UTF_CHECK : 0,
                               match.get(), code_->context);
    if (rc == PCRE2_ERROR_NOMATCH) return;
    check(rc > 0, ErrorKind::input, [&] {
      return "cannot search " + in_quotes(text) + " for " + in_quotes(pattern_) + ": " + words_of(rc) +
             "; write a pattern that backtracks less";
    });
    const PCRE2_SIZE* spans = pcre2_get_ovector_pointer(match.get());
    size_t begin = spans[0], end = spans[1];
    uint32_t groups = 0;
    pcre2_pattern_info(code_->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    if (groups > 0) begin = end = spans[0];
    for (int g = 1; g < rc && begin == end; ++g)
      if (spans[2 * g] != PCRE2_UNSET) begin = spans[2 * g], end = spans[2 * g + 1];
    take(spans[0], spans[1], text.substr(begin, end - begin));
    from = spans[1];
    if (spans[0] != spans[1]) continue;
    do ++from;  // an empty match: on behind the next character
    while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80);
  }
}

std::optional<std::string> Pattern::find(std::string_view text, bool last) const {
  std::optional<std::string> found;
  search(text, [&](size_t, size_t, std::string_view group) {
    if (last || !found) found = std::string(group);
  });
  return found;
}

std::string Pattern::without_matches(std::string_view text) const {
  std::string result;
  size_t kept = 0;
  search(text, [&](size_t begin, size_t end, std::string_view) {
    result += text.substr(kept, begin - kept);
    kept = end;
  });
  return result.append(text.substr(kept));
}

}  // namespace braid::models::eval
