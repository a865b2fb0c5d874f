// Regular expressions of tokenizer.json. They are written for Oniguruma; here they are rewritten for PCRE2, with the
// classes \s, \d, \w and \p{..} of general categories expanded so that they hold the same code points.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace braid::models::text {

// The pattern for PCRE2. Error(input) for what the two engines read differently or this program does not support:
// back references, classes inside classes, unknown escapes, properties and groups. `where` names the file and the
// field.
std::string pcre2_pattern(std::string_view pattern, const std::string& where);

class Regex {
 public:
  Regex(std::string_view pattern, const std::string& where);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // Matches from left to right, none inside another; an empty one not where the last one ended. Safe in several
  // threads.
  class Search {
   public:
    Search(const Regex& regex, std::string_view text);  // both must outlive it; valid UTF-8
    ~Search();
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;
    // False: no further match. Error(input) when the pattern backtracks without end on this text.
    bool next(size_t& begin, size_t& end);

   private:
    const Regex& regex_;
    std::string_view text_;
    size_t from_ = 0, last_end_ = std::string_view::npos;
    void* match_;
  };

 private:
  struct Code;
  std::unique_ptr<Code> code_;
  std::string pattern_, where_;
};

}  // namespace braid::models::text
