// The lines of `braid chat` that begin with a slash.
#pragma once
#include <string>

#include "apps/chat/chat_session.h"

namespace braid::apps {

// A line that the user typed, and the effect it has.
struct ChatLine {
  enum class Kind { text, again, quit, done } kind = Kind::text;
  std::string words;  // text: what is said; done: what to print
};

// Carries out a command such as "/set temperature 0.7"; other lines are what the user says ("//" is a slash in front).
// Error(setting) for what cannot be done, with the commands where there is none of the name.
ChatLine take_line(const std::string& line, ChatSession& conversation);
std::string chat_help();

}  // namespace braid::apps
