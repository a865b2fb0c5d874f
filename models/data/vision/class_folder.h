// A folder with one folder of PNG and JPEG files for each class.
#pragma once
#include "braid/models/data/vision/bad_images.h"

namespace braid::models::vision {

// Every file of every class, in the order of their names, as images of three channels. `classes`: empty, or the names
// that an earlier folder gave, to which these must belong; the label is the place in it. Files that are damaged are
// left to `bad`. Error(input) names what is no folder, and classes that are new or empty.
void read_class_folder(const std::string& folder, std::vector<std::string>& classes, const TakeImage& take,
                       BadImages& bad);

}  // namespace braid::models::vision
