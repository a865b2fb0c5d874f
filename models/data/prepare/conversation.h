// One JSON object of the inputs becomes a conversation: the forms in which clients and data sets write them (chat.h).
#pragma once
#include <utility>

#include "braid/models/data/prepare/chat.h"

namespace braid::models::text {

struct Conversation {
  std::vector<ChatTurn> turns;
  ChatJson tools = ChatJson(ChatJson::value_t::null);
};

// Without a chat template two turns, prompt and answer. Throws as make_sample().
Conversation read_conversation(std::string_view line, const std::string& place, const SampleFormat& format);
// The same of preferences: the prompt with the chosen answer, and with the rejected one.
std::pair<Conversation, Conversation> read_preference(std::string_view line, const std::string& place,
                                                      const SampleFormat& format);

}  // namespace braid::models::text
