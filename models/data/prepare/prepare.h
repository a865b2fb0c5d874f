// The work of `braid prepare`: text files and the built-in tasks in, a data folder with token shards out.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braid/models/data/prepare/source.h"
#include "braid/models/data/tasks/tasks.h"
#include "braid/models/data/text/manifest.h"

namespace braid::models::text {

struct PrepareOptions {
  std::vector<std::string> inputs;      // files and folders; see source.h
  std::vector<std::string> val_inputs;  // files and folders to validate on; empty: a share of the inputs
  int64_t tasks = 0;                    // samples of the built-in tasks to train on, besides the inputs
  TaskSet task_set = TaskSet::in_context;
  std::string output;     // the data folder
  bool replace = false;   // replace other data that prepare() made there
  std::string tokenizer;  // a folder with tokenizer.json; empty: the byte tokenizer
  // Trains a tokenizer of so many ids on the inputs and the tasks instead; 0: no. form: one of bpe_forms
  // (tokenizers/training/form.h).
  int64_t train_bpe = 0;
  std::string bpe_form = "gpt-neox";
  size_t bpe_words = size_t{16} << 20;  // different words that count for it
  std::string text_field = "text";      // of .jsonl files
  double val_fraction = 0.05;           // of the documents, [0, 1); with val_inputs, of the tasks only
  uint64_t seed = 0;                    // of the split and of the tasks
  int64_t task_items = 4;               // evaluation samples per task and vocabulary, when tasks > 0
  int64_t shard_tokens = int64_t{1} << 28;
  InvalidText invalid = InvalidText::by_input;  // text that is no UTF-8 (source.h)
  bool dedup = false;                           // keep only the first of documents with equal bytes
};

struct PrepareProgress {
  const char* stage;          // "counting words", "merging pairs", "reading text", "making tasks", "finishing"
  int64_t done, total;        // bytes of the inputs, ids of the vocabulary, or samples
  int64_t resumed = 0;        // of the bytes done, how many an earlier call read
  int64_t documents, tokens;  // so far
  std::string file;           // being read
};

struct PrepareSummary {
  Manifest manifest;
  int64_t files = 0, input_bytes = 0;
  LeftOut left_out;                        // of these files
  int64_t duplicates = 0;                  // documents that were left out
  int64_t ill_formed = 0;                  // parts of text that were no UTF-8, replaced or left out
  int64_t resumed_bytes = 0;               // of the inputs, read by an earlier call
  std::vector<ValidationFile> validation;  // where the text of the validation split is from, in order
  bool unchanged = false;                  // the folder held the same data already
  std::string replaced;                    // the other data that it held, in words; empty: none
  std::vector<std::string> notes;          // what was left out or looks odd, as messages
};

// Makes the folder, all or nothing: it is built beside the target and renamed at the end, whatever was there before
// stays until then. Memory does not grow with the inputs, but for the list of files, and 22 to 43 bytes a document with
// `dedup`. The same inputs and options give the same bytes, at any number of threads.
//
// An interrupted call is resumed by repeating it, behind its last finished shard of `train`; the result is
// byte-identical. Its work is in the hidden folder .NAME.preparing beside the target. Other options or changed inputs
// begin anew.
//
// A document goes to validation when a hash of its first MiB and the seed says so, hence equal documents stay together
// and adding documents moves no other. When the files are fewer than 1 / val_fraction, each is split as if it were
// alone; a file of which no document is drawn gives its end instead. When none is drawn from many files, all give their
// end. With val_inputs all of the inputs train; a file of val_inputs found in a folder of inputs does not.
//
// Error(setting): nothing to do, a value out of range, a target that holds something else, or other data without
// `replace` (found before any work where the options differ, else at the end). Error(input), Error(output) as for the
// files. `progress` may throw to stop; without a finished shard everything is cleaned up.
PrepareSummary prepare(const PrepareOptions& options, const std::function<void(const PrepareProgress&)>& progress = {});

// Has a call for this data folder left work from which the same call resumes?
bool can_resume_prepare(const std::string& output);

}  // namespace braid::models::text
