// data.sources: the folders of a mixture, their weights, and at which tokens of the run these change.
//
//   data.sources = ["out/web weight=0.7 weight=0.4@2000000000", "out/books weight=0.3 weight=0.6@2000000000"]
#pragma once
#include <string>
#include <vector>

#include "apps/train/config/train_config.h"
#include "braid/models/data/text/mixed_order.h"

namespace braid::apps {

struct DataSource {
  std::string path;
  std::vector<models::text::WeightChange> weights;  // ascending by token, the first at 0
  std::string name;                                 // in the log: of the folder, with its parent's where two are alike
};

// The sources of a mixture; none for data.path. Error(setting): not "PATH [weight=W] [weight=W@TOKEN ...]", weights out
// of order, two with one path, or a phase whose weights sum to 0.
std::vector<DataSource> data_sources(const TrainConfig& config);
// The weight of each in the last phase, by which val_loss is the mean of theirs.
std::vector<double> last_weights(const TrainConfig& config);
// Whether the settings name data.
inline bool names_data(const TrainConfig& config) { return !config.data.path.empty() || !config.data.sources.empty(); }
// The folders: data.path alone, or those of data.sources; none where the settings name none.
std::vector<std::string> data_folders(const TrainConfig& config);
// The first of them, which has the tokenizer of all; "": none.
std::string data_folder(const TrainConfig& config);

}  // namespace braid::apps
