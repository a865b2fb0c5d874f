// Tasks whose items are prompts that the model continues; what it writes is compared with right answers.
//
// exact_match, contains or regex_match, after the rule: the share of texts whose answer is right
// pass@k, with several texts of an item: the chance that one of k of them is right, 1 - C(n - c, k) / C(n, k) for c
//        right ones of n (Chen et al. 2021), which is unbiased; k = 1, 10, 100, n
// answered: the share of texts in which the filters found an answer
#pragma once
#include <memory>
#include <vector>

#include "braid/models/eval/document_tasks.h"

namespace braid::models::eval {

// form: of kind generate. ends: the tokens that end a text. A prompt that leaves less than max_tokens of the longest
// sequence loses tokens at its begin. The tokenizer of the encoder must outlive the task. Error(setting) where
// max_tokens leaves no room for a prompt; others as make_document_task().
std::unique_ptr<EvalTask> make_generate_task(const TaskTemplate& form, const std::vector<Document>& documents,
                                             const Shots& shots, int64_t limit, const PairEncoder& encoder,
                                             const std::vector<int32_t>& ends);

// 1 - C(n - right, k) / C(n, k); 1 <= k <= n.
double pass_at(int64_t k, int64_t n, int64_t right);

}  // namespace braid::models::eval
