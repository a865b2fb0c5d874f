// Tasks whose items are a context and one or several continuations: multiple choice and the last word.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "braid/models/eval/documents.h"
#include "braid/models/eval/encode_pair.h"
#include "braid/models/eval/eval_task.h"

namespace braid::models::eval {

struct Shots {
  int64_t count = 0;
  uint64_t seed = 0;
  std::vector<Document> pool = {};  // to draw from; empty: the items themselves
};

// limit: the first so many items; 0: all. Every item is encoded and checked: Error as of PairEncoder::encode() and
// draw_shots(). Of kind choices or last_word.
//
// choices    acc: the choice with the largest log p (the first of equal ones) is the right one
//            acc_norm: the same with log p / characters of the choice, acc_bytes: / bytes
// last_word  acc: every token of the word is the most likely one; perplexity: exp(-mean log p of the words)
std::unique_ptr<EvalTask> make_document_task(const TaskTemplate& form, std::vector<Document> documents,
                                             const Shots& shots, int64_t limit, PairEncoder& encoder);

}  // namespace braid::models::eval
