// braid eval MODEL pictures:DATA: how well a model names the classes of prepared pictures.
#pragma once
#include <string>

#include "apps/cli/command.h"
#include "braid/models/eval/classification.h"

namespace braid::apps {

inline constexpr const char* kPicturesTask = "pictures:";

bool names_pictures(const Arguments& arguments);  // whether a task begins with kPicturesTask
// The validation split of each data folder. Prints the table; --json FILE gets everything. Returns the exit code.
int eval_pictures(const Arguments& arguments);

// Accuracy, loss and calibration error, then each class, its precision, recall and the class that it is mistaken for
// most often.
std::string class_table(const models::eval::ClassificationCounts& counts, const std::vector<std::string>& classes);
// {"pictures", "loss", "top1", "top5", "ece", "classes": [{"name", "recall", "precision"}], "confusion": [[...]], rows
// by label, "calibration": [{"pictures", "accuracy", "confidence"}]}; null where there is nothing to divide by.
std::string class_json(const models::eval::ClassificationCounts& counts, const std::vector<std::string>& classes);

}  // namespace braid::apps
