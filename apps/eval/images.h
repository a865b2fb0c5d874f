// braid eval MODEL pictures:DATA: how well a model names the classes of prepared images.
#pragma once
#include <string>

#include "apps/cli/command.h"
#include "braid/models/eval/classification.h"

namespace braid::apps {

inline constexpr const char* kImagesTask = "pictures:";

bool names_images(const Arguments& arguments);  // whether a task begins with kImagesTask
// The validation split of each data folder. Prints the table; --json FILE gets everything: {"pictures", "loss", "top1",
// "top5", "ece", "classes": [{"name", "recall", "precision"}], "confusion": [[...]], rows by label, "calibration":
// [{"pictures", "accuracy", "confidence"}]}; null where there is nothing to divide by. Returns the exit code.
int eval_images(const Arguments& arguments);

// Accuracy, loss and calibration error, then each class with images or predictions, its precision, recall and the class
// that it is mistaken for most often.
std::string class_table(const models::eval::ClassificationCounts& counts, const std::vector<std::string>& classes);

}  // namespace braid::apps
