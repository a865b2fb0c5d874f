// Every setting of `braid train`. The member initialisers are the defaults; train_schema() names, explains and bounds
// each member once.
#pragma once
#include "apps/cli/config.h"

namespace braid::apps {

struct TrainConfig {
  struct Run {
    std::string out = "out/run";
    int64_t seed = 1;
    std::string device = "auto";
    int64_t threads = 0;
    bool strict = false;
  } run;
  struct Model {
    std::string preset = "";
    int64_t depth = 0;
    std::map<std::string, Value> values;  // config.json names ("n_head", "profile.gelu"); they override the preset
    double dropout = 0;                   // of training, no part of the model's files
  } model;
  struct Data {
    std::string path = "";
    std::vector<std::string> sources = {};
    int64_t seq_len = 0;
    std::string documents = "auto";
    std::string packing = "first_fit";
    std::string long_samples = "leave_out";
  } data;
  struct Augment {  // of images
    int64_t crop_padding = 0;
    bool flip = false;
    int64_t randaugment_ops = 0;
    int64_t randaugment_magnitude = 10;
    double erase = 0;
    double mixup = 0;
    double label_smoothing = 0;
    bool operator==(const Augment&) const = default;
  } augment;
  struct Dpo {  // of preferences
    double beta = 0.1;
    double label_smoothing = 0;
    bool length_normalised = false;
    double sft_weight = 0;
    bool operator==(const Dpo&) const = default;
  } dpo;
  struct Train {
    int64_t steps = 1000;
    double epochs = 0;
    int64_t batch_size = 8;
    int64_t accumulate = 1;
    std::string dtype = "f32";
    std::string rounding = "nearest";
    bool recompute = false;
    bool graph = true;
    int64_t attention_workspace = 0;
    double ema = 0;
    double z_loss = 0;
    std::string init_from = "", init_base = "";
  } train;
  struct Lora {
    int64_t rank = 0;
    double alpha = 16;
    std::vector<std::string> targets = {"*"};
  } lora;
  struct Parallel {
    int64_t data = 0;
    int64_t context = 1;
    int64_t tensor = 1;
    double timeout = 600;
  } parallel;
  struct Optimizer {
    std::string name = "adamw";
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.95;
    double eps = 1e-8;
    double weight_decay = 0.1;
    std::string decay = "matrices";
    double clip = 1.0;
    double momentum = 0.9;
    double layer_decay = 1;
    std::vector<std::string> groups = {};
  } optimizer;
  struct Muon {
    double momentum = 0.95;
    bool nesterov = true;
    std::string scale = "rms", dtype = "f32", normalise = "none";
    int64_t steps = 5, heads = 0;
  } muon;
  struct Schedule {
    std::string name = "cosine";
    int64_t warmup = 100;
    double final_fraction = 0.1;
    double decay_fraction = 0.2;
    std::string tail = "linear";
  } schedule;
  struct Eval {
    int64_t interval = 100;
    int64_t samples = 128;
    int64_t batches = -1;  // of earlier versions: micro-batches; load_config() turns it into samples
    int64_t patience = 0;
    int64_t tasks = 0;
    std::string task_set = "in-context";
  } eval;
  struct Sample {
    int64_t interval = 0;
    std::string prompt = "";
    int64_t tokens = 128;
    double temperature = 0.8;
  } sample;
  struct Checkpoint {
    int64_t interval = 500;
    double minutes = 0;
    int64_t keep = 2;
    int64_t keep_every = 0;
    bool best = false;
    bool async = false;
  } checkpoint;
  struct Log {
    int64_t interval = 0;
    std::string style = "auto";
    bool tensorboard = false, trace = false;
    int64_t metrics_port = 0;
    std::string metrics_file;
    double peak_tflops = 0;
    std::string command = "";
  } log;
  struct Guard {
    double spike = 10;
    int64_t warmup = 200;
  } guard;
};

// The table; it points into `config`, which must outlive it. `model_keys`: settings allowed below `model.`.
Schema train_schema(TrainConfig& config, const std::vector<models::ModelSetting>& model_keys);
// Conditions between settings, checked after loading. Error(setting).
void check_relations(const TrainConfig& config);
void check_names_data(const TrainConfig& config);  // without data a run can be planned
void check_together(const TrainConfig& config);    // both
// Every data rank has a sample of each micro-batch. Error(setting).
void check_batch(const TrainConfig& config, int64_t data_ranks);

}  // namespace braid::apps
