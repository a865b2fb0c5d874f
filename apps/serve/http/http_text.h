// Answers of HTTP/1.1 as bytes.
#pragma once
#include <string>

#include "apps/serve/api/reply.h"

namespace braid::apps::serve {

struct AnswerForm {
  std::string request_id;
  bool keep_alive = false;
  bool version_1_1 = true;
  bool without_body = false;  // the answer to HEAD
  std::string origin = "";    // of a page of another server that may read the answer; "": none
  bool by_origin = false;     // whether other pages may depends on their origin
};

std::string answer_text(const Response& response, const AnswerForm& form);
// The head of a stream of events, and its pieces: chunks, or in HTTP/1.0 the bytes up to the end of the connection.
std::string stream_head(const AnswerForm& form);
std::string stream_piece(const std::string& events, const AnswerForm& form);
std::string stream_end(const AnswerForm& form);

}  // namespace braid::apps::serve
