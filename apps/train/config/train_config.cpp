#include "apps/train/config/train_config.h"

#include <filesystem>
#include <utility>

#include "apps/cli/model_flags.h"
#include "apps/cli/progress.h"
#include "apps/cli/text.h"
#include "apps/train/config/data_sources.h"
#include "apps/train/config/depth.h"
#include "apps/train/config/other_names.h"
#include "braid/models/data/text/manifest.h"
#include "braid/models/data/text/packing.h"
#include "braid/nn/optim/groups.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {
namespace {

constexpr double largest = 1e12;  // counts stay far from the end of int64_t, so that their products can be checked

bool is_device(const std::string& text) {
  if (text == "auto" || text == "cpu" || text == "cuda") return true;
  if (!text.starts_with("cuda:")) return false;
  const auto index = parse_int(text.substr(5));
  return index && *index >= 0 && *index < 1024;
}

}  // namespace

Schema train_schema(TrainConfig& c, const std::vector<models::ModelSetting>& model_keys) {
  const ValueRule count = between(1, largest), count_or_none = between(0, largest);
  return {
      .title = "Configuration of braid train: every key, its value and what it means.",
      .command = "braid train",
      .settings =
          {
              {"run.out", &c.run.out, "run folder; a run that it holds is resumed"},
              {"run.seed", &c.run.seed, "seed of weights and data order", between(0, 0x1p53)},
              {"run.device",
               &c.run.device,
               "where to compute",
               {.accepts = is_device, .condition = "auto, cpu, cuda or cuda:N"}},
              {"run.threads", &c.run.threads, "CPU threads, 0 = all that the process may use", between(0, 4096)},
              {"run.strict", &c.run.strict,
               "the same bits of the weights on every layout, accumulation and instruction set; CPU alone, slower"},

              {"model.preset", &c.model.preset,
               "model that the other keys of this section change; \"\" = none; on the command line it replaces the "
               "section"},
              {"model.depth", &c.model.depth,
               "blocks of a new model of text, from which its width and heads, the rate, the batch, the steps and the "
               "warmup follow where they are not given; 0 = none of these do",
               between(0, 64)},
              {"model.dropout", &c.model.dropout,
               "probability that training drops an element of the embedding or of the output of attention or FFN; not "
               "of attention's probabilities; 0 = none; images: model.hidden_dropout_prob",
               from_below(0, 1)},

              {"data.path", &c.data.path,
               "folder that braid prepare wrote; or pairs of sequences that the program makes: pairs:dates, "
               "pairs:sort, pairs:reverse"},
              {"data.sources", &c.data.sources,
               "instead of data.path, folders of text that are mixed: \"PATH [weight=W] [weight=W@TOKEN ...]\", where "
               "@TOKEN is the token of the run from which the weight counts"},
              {"data.seq_len", &c.data.seq_len, "tokens per sequence, 0 = the model's block_size", count_or_none},
              {"data.documents", &c.data.documents,
               "documents of a sequence: separate = positions restart and no token attends to another document; auto = "
               "separate for samples, joined for text",
               one_of({"auto", "joined", "separate"})},
              {"data.packing", &c.data.packing, "how samples share sequences; none = each has one of its own",
               one_of({std::begin(models::text::packing_names), std::end(models::text::packing_names)})},
              {"data.long_samples", &c.data.long_samples, "samples longer than a sequence; cut = without their end",
               one_of({"leave_out", "cut"})},

              {"augment.crop_padding", &c.augment.crop_padding,
               "images: zeros on each side, out of which the old size is cut at a random place", between(0, 1 << 14)},
              {"augment.flip", &c.augment.flip, "images: left and right exchanged, every second time"},
              {"augment.randaugment_ops", &c.augment.randaugment_ops, "images: operations of RandAugment, 0 = none",
               between(0, 1000)},
              {"augment.randaugment_magnitude", &c.augment.randaugment_magnitude, "their strength, 30 is the largest",
               between(0, 30)},
              {"augment.erase", &c.augment.erase, "images: probability that a rectangle becomes random pixels",
               between(0, 1)},
              {"augment.mixup", &c.augment.mixup,
               "images: alpha of mixup, which mixes two of a batch and their labels by Beta(alpha, alpha); 0 = none",
               between(0, 1000)},
              {"augment.label_smoothing", &c.augment.label_smoothing,
               "images: share of a label's weight that all classes get", from_below(0, 1)},

              {"dpo.beta", &c.dpo.beta,
               "preferences: rewards are beta times the log of probability / the reference's; a larger one stays "
               "closer to the reference",
               above(0)},
              {"dpo.label_smoothing", &c.dpo.label_smoothing,
               "preferences: share of the pairs whose labels are taken to be exchanged", from_below(0, 0.5)},
              {"dpo.length_normalised", &c.dpo.length_normalised,
               "preferences: logs of probabilities are divided by the tokens of the answer"},
              {"dpo.sft_weight", &c.dpo.sft_weight,
               "preferences: weight of the mean loss of the chosen answer's tokens, added to the loss", at_least(0)},

              {"train.steps", &c.train.steps, "optimizer steps", count},
              {"train.epochs", &c.train.epochs,
               "passes over the data, which then give train.steps; train.steps on the command line replaces those of "
               "a file; 0 = by train.steps",
               between(0, 1e6)},
              {"train.batch_size", &c.train.batch_size,
               "sequences, pairs or images per micro-batch, of all processes together", count},
              {"train.accumulate", &c.train.accumulate, "micro-batches per step", count},
              {"train.dtype", &c.train.dtype, "arithmetic; bf16 keeps f32 master weights",
               float_type({"f32", "f64", "bf16"})},
              {"train.rounding", &c.train.rounding,
               "of updates; stochastic, with train.dtype = bf16 on the CPU, keeps no f32 master weights: bf16 weights "
               "are rounded up or down at random, 2 bytes each instead of 6",
               one_of({"nearest", "stochastic"})},
              {"train.recompute", &c.train.recompute, "recompute blocks in the backward pass: less memory, more time"},
              {"train.graph", &c.train.graph,
               "on a GPU, capture a step as a CUDA graph and replay it; no effect with several processes"},
              {"train.attention_workspace", &c.train.attention_workspace,
               "MiB of attention scores that a GPU holds at a time, 0 = 3584; sums are made in another order",
               between(0, 1 << 20)},
              {"train.ema", &c.train.ema,
               "decay of a moving average of the weights (0.999), which validation, samples and the saved model have; "
               "0 = none",
               from_below(0, 1)},
              {"train.z_loss", &c.train.z_loss,
               "coefficient of the squared logsumexp of the logits, whose mean over the targets is added to what is "
               "minimised (1e-4); losses are printed without it; 0 = none",
               between(0, 1)},
              {"train.init_from", &c.train.init_from,
               "folder of a model or run: the first weights and the settings of the model; \"\" = random weights"},
              {"train.init_base", &c.train.init_base,
               "of a train.init_from with LoRA alone, the folder of the model that it changes; \"\" = the local folder "
               "that its adapter_config.json names"},

              {"lora.rank", &c.lora.rank, "train LoRA of this rank instead of the weights, 0 = no LoRA",
               between(0, 65536)},
              {"lora.alpha", &c.lora.alpha, "the factor of LoRA is alpha / rank", above(0)},
              {"lora.targets", &c.lora.targets,
               "linear layers that get LoRA, by their names in the model or its files (q_proj) or patterns; * = all "
               "but the output projection"},

              {"parallel.data", &c.parallel.data, "processes with different samples, 0 = the rest of the processes",
               count_or_none},
              {"parallel.context", &c.parallel.context, "processes with different positions of the same samples",
               count},
              {"parallel.tensor", &c.parallel.tensor, "processes with different heads, columns and words", count},
              {"parallel.timeout", &c.parallel.timeout,
               "seconds until a process that does not answer ends the job, 0 = never", at_least(0)},

              {"optimizer.name", &c.optimizer.name, "rule; muon = Muon for matrices, AdamW for the rest",
               one_of(nn::optimizer_names())},
              {"optimizer.lr", &c.optimizer.lr, "peak learning rate", above(0)},
              {"optimizer.beta1", &c.optimizer.beta1, "decay of the mean gradient", from_below(0, 1)},
              {"optimizer.beta2", &c.optimizer.beta2, "decay of the mean squared gradient", from_below(0, 1)},
              {"optimizer.eps", &c.optimizer.eps, "added to the root of the second moment", above(0)},
              {"optimizer.weight_decay", &c.optimizer.weight_decay, "decoupled decay, times the learning rate",
               at_least(0)},
              {"optimizer.decay", &c.optimizer.decay, "parameters that decay", one_of({"all", "matrices"})},
              {"optimizer.clip", &c.optimizer.clip, "largest global gradient norm, 0 = no clipping", at_least(0)},
              {"optimizer.momentum", &c.optimizer.momentum, "of sgd", from_below(0, 1)},
              {"optimizer.layer_decay",
               &c.optimizer.layer_decay,
               "factor of the learning rate from each block to the one before it; 1 = none",
               {.min = 0, .max = 1, .min_open = true}},
              {"optimizer.groups", &c.optimizer.groups,
               "parameters by patterns of their names, the last one counts: \"PATTERN [lr=FACTOR] [tail=TAIL] "
               "[weight_decay=W] "
               "[update=matrix | update=elements] [frozen_until=STEP | frozen | trained]\""},

              {"muon.momentum", &c.muon.momentum, "decay of the sum of the gradients of a matrix", from_below(0, 1)},
              {"muon.nesterov", &c.muon.nesterov, "add the gradient once more to the momentum that is orthogonalised"},
              {"muon.scale", &c.muon.scale,
               "size of an update; rms = that of AdamW, so that one rate serves both; spectral = sqrt(max(1, rows / "
               "columns)), for rates of about 0.02",
               one_of({"rms", "spectral"})},
              {"muon.dtype", &c.muon.dtype,
               "arithmetic that orthogonalises; f32 = that of the masters; bf16 is less exact and on processors with "
               "such products faster",
               one_of({"f32", "bf16"})},
              {"muon.steps", &c.muon.steps,
               "Newton-Schulz steps; fewer take less time and lift small singular values less", between(1, 20)},
              {"muon.normalise", &c.muon.normalise,
               "bring the rows of an orthogonalised update to one length, or its columns, or both: columns, then rows; "
               "it keeps its norm",
               one_of({"none", "rows", "columns", "both"})},
              {"muon.heads", &c.muon.heads,
               "orthogonalise queries and keys by so many heads, the last group by what is left: 1 = each head, 2 = "
               "pairs, 0 = all heads together",
               count_or_none},

              {"schedule.name", &c.schedule.name, "learning rate over the run",
               one_of({"cosine", "linear", "constant", "wsd"})},
              {"schedule.warmup", &c.schedule.warmup, "steps of linear rise", count_or_none},
              {"schedule.final_fraction", &c.schedule.final_fraction, "last learning rate / peak", between(0, 1)},
              {"schedule.decay_fraction", &c.schedule.decay_fraction,
               "share of train.steps in which wsd falls, rounded down", between(0, 1)},
              {"schedule.tail", &c.schedule.tail, "how wsd falls", one_of({"linear", "1-sqrt", "cosine"})},

              {"eval.interval", &c.eval.interval, "steps between validations, 0 = none", count_or_none},
              {"eval.samples", &c.eval.samples,
               "sequences, pairs or images of a validation, the same ones at any batch size, 0 = the whole split",
               count_or_none},
              {"eval.patience", &c.eval.patience,
               "end the run when so many validations in a row bring no lower loss, 0 = never", count_or_none},
              {"eval.tasks", &c.eval.tasks, "held-out in-context tasks per validation, 0 = none", count_or_none},
              {"eval.task_set", &c.eval.task_set, "which tasks", one_of({"in-context", "recall"})},

              {"sample.interval", &c.sample.interval, "steps between samples, 0 = none", count_or_none},
              {"sample.prompt", &c.sample.prompt, "text that samples continue"},
              {"sample.tokens", &c.sample.tokens, "length of a sample", count},
              {"sample.temperature", &c.sample.temperature, "0 = always the likeliest token", between(0, 100)},

              {"checkpoint.interval", &c.checkpoint.interval, "steps between checkpoints, 0 = only at the end",
               count_or_none},
              {"checkpoint.minutes", &c.checkpoint.minutes,
               "also a checkpoint so many minutes after the last one, 0 = none", between(0, 1e6)},
              {"checkpoint.keep", &c.checkpoint.keep,
               "newest checkpoints kept; the second serves where the newest is damaged", between(2, largest)},
              {"checkpoint.keep_every", &c.checkpoint.keep_every,
               "write a checkpoint every so many steps and keep them all, 0 = none", count_or_none},
              {"checkpoint.best", &c.checkpoint.best,
               "write a checkpoint at each validation that is the lowest so far; keep it, named by the file best"},
              {"checkpoint.async", &c.checkpoint.async,
               "copy weights and optimizer in memory and write checkpoints from there while training continues; the "
               "last "
               "one of a run or before a stop is waited for"},

              {"log.interval", &c.log.interval, "steps between plain lines, 0 = growing; log.csv has every step",
               count_or_none},
              {"log.style", &c.log.style,
               "progress as a redrawn bar or as plain lines; auto = a bar on a terminal, unless mpirun or srun started "
               "it",
               one_of({std::begin(progress_styles), std::end(progress_styles)})},
              {"log.tensorboard", &c.log.tensorboard, "also write event files for TensorBoard to run.out/tensorboard"},
              {"log.trace", &c.log.trace, "write the timeline of the third step to run.out/trace: braid plot --trace"},
              {"log.metrics_port", &c.log.metrics_port,
               "port of 127.0.0.1 on which rank 0 answers GET /metrics in Prometheus's format while it trains, 0 = "
               "none",
               between(0, 65535)},
              {"log.metrics_file", &c.log.metrics_file,
               "file for node_exporter's textfile collector (name it NAME.prom), rewritten as the run goes; \"\" = "
               "none"},
              {"log.peak_tflops", &c.log.peak_tflops,
               "arithmetic of one process that the column mfu is a share of, in TFLOP/s, as a data sheet states it; 0 "
               "= the measured speed of a matrix product",
               at_least(0)},
              {"log.command", &c.log.command,
               "shell command that gets each line of log.jsonl on its standard input, such as a client of a tracking "
               "service; \"\" = none"},

              {"guard.spike", &c.guard.spike, "stop when the loss is this many deviations high, 0 = never",
               at_least(0)},
              {"guard.warmup", &c.guard.warmup, "steps before guard.spike watches", count_or_none},
          },
      .open = {{.prefix = "model", .base = "model.preset", .keys = model_keys, .values = &c.model.values}},
      .renamed = {{"train.checkpoint_activations", "train.recompute"}, {"log.prometheus", "log.metrics_file"}},
      .other_names = other_names,
      .earlier = {{"eval.batches", &c.eval.batches, "validation micro-batches, 0 = the whole split", count_or_none}},
      .after_loading = [&c](const std::set<std::string>& given) -> std::vector<std::string> {
        std::vector<std::string> notes = set_by_depth(c, given);
        if (c.eval.batches < 0) return notes;
        const int64_t batches = std::exchange(c.eval.batches, -1);
        c.eval.samples = batches <= (int64_t{1} << 40) / c.train.batch_size ? batches * c.train.batch_size : 0;
        notes.push_back(
            str("eval.batches counted micro-batches, so that a validation changed with train.batch_size; it is now "
                "eval.samples = ",
                c.eval.samples));
        return notes;
      },
  };
}

void check_relations(const TrainConfig& c) {
  check(!c.run.out.empty(), ErrorKind::setting, "run.out is empty: expected the name of a folder");
  check(!io::exists(std::filesystem::path(c.run.out) / models::text::manifest_name, ErrorKind::output),
        ErrorKind::setting, [&] {
          return "run.out = " + c.run.out +
                 " holds data that braid prepare wrote: expected a folder for the run alone; choose another run.out";
        });
  for (const std::string& text : c.optimizer.groups)
    check(!nn::parse_group(text).tail || c.schedule.name == "wsd", ErrorKind::setting, [&] {
      return str("optimizer.groups: '", text, "' names a tail of wsd: expected schedule.name = wsd, found ",
                 c.schedule.name);
    });
  data_sources(c);  // checks
  check(c.data.sources.empty() || c.train.epochs == 0, ErrorKind::setting,
        "train.epochs counts passes over data.path: expected train.steps beside data.sources, whose folders are read "
        "by their weights");
  if (c.train.rounding == "stochastic") {
    check(c.train.dtype == "bf16", ErrorKind::setting, [&] {
      return "train.rounding = stochastic is of bf16 weights: expected train.dtype = bf16, found " + c.train.dtype;
    });
    check(c.train.ema == 0, ErrorKind::setting, [&] {
      return "train.ema averages f32 weights: expected 0 with train.rounding = stochastic, found " +
             shortest(c.train.ema);
    });
    check(c.lora.rank == 0, ErrorKind::setting, [&] {
      return str("LoRA is trained in f32: expected lora.rank = 0 with train.rounding = stochastic, found ",
                 c.lora.rank);
    });
  }
  check(c.lora.rank == 0 || !c.train.init_from.empty(), ErrorKind::setting,
        "lora.rank needs trained weights: expected train.init_from=FOLDER; without it LoRA would be trained on random "
        "weights");
  check(c.train.init_base.empty() || !c.train.init_from.empty(), ErrorKind::setting,
        "train.init_base is the model of an adapter: expected train.init_from=FOLDER beside it");
  check(!c.checkpoint.best || c.eval.interval > 0, ErrorKind::setting,
        "checkpoint.best needs a validation: expected eval.interval of at least 1, found 0");
  check(c.eval.patience == 0 || c.eval.interval > 0, ErrorKind::setting,
        "eval.patience needs validations: expected eval.interval of at least 1, found 0");
  check(c.schedule.warmup <= c.train.steps, ErrorKind::setting, [&] {
    return str("schedule.warmup is longer than the run: expected at most train.steps = ", c.train.steps, ", found ",
               c.schedule.warmup, "; give schedule.warmup too, for example ", c.train.steps / 10);
  });
  check(c.train.batch_size <= (int64_t{1} << 40) / c.train.accumulate, ErrorKind::setting, [&] {
    return str("train.batch_size x train.accumulate is too large: expected at most 2^40 sequences per step, found ",
               c.train.batch_size, " x ", c.train.accumulate);
  });
}

void check_names_data(const TrainConfig& c) {
  check(names_data(c), ErrorKind::setting,
        "data.path is not set: expected a folder written by braid prepare; add data.path=FOLDER");
}

void check_together(const TrainConfig& c) {
  check_names_data(c);
  check_relations(c);
}

void check_batch(const TrainConfig& c, int64_t data_ranks) {
  check(c.train.batch_size >= data_ranks, ErrorKind::setting, [&] {
    return str("train.batch_size is smaller than parallel.data: expected at least ", data_ranks,
               " sequences per micro-batch, found ", c.train.batch_size);
  });
}

}  // namespace braid::apps
