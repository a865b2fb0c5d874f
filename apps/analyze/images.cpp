#include "apps/analyze/images.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "apps/analyze/page.h"
#include "apps/analyze/page_parts.h"
#include "apps/chart/csv.h"
#include "apps/chart/png.h"
#include "apps/chart/svg.h"
#include "apps/cli/loaded_model.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/progress.h"
#include "apps/cli/text.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/models/data/vision/batches.h"
#include "braid/models/inspect/image_attention.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/file_system.h"

namespace braid::apps::analyze {

namespace {

namespace fs = std::filesystem;
using models::ImageAttention;
using models::vision::Image, models::vision::ImageDataset;

constexpr int64_t kBatch = 64, kMaxMistakes = 60;
constexpr int64_t kMaxHeads = 48;  // shown when none are chosen

struct Prediction {
  int64_t image, label, predicted;
  double confidence;  // probability of the prediction
  bool right() const { return label == predicted; }
};

struct Head {
  int64_t layer, head;
};

struct Shown {
  Prediction prediction;
  Image image;
  ImageAttention attention;
};

const models::Vit& vit_of(const models::Model& model) {
  const auto* vit = dynamic_cast<const models::Vit*>(&model);
  check(vit != nullptr, ErrorKind::input, [&] {
    return "a model of type " + model.spec()->model_type() +
           " has no attention over images: expected a model of type vit beside --pictures";
  });
  return *vit;
}

std::vector<Prediction> predictions(const models::Vit& model, const ImageDataset& data, int64_t limit) {
  const NoGrad off;
  std::vector<Prediction> all;
  Progress progress(stderr);
  const auto batches = models::vision::validation_images(data, kBatch, limit, {});
  for (size_t i = 0; i < batches.size(); ++i) {
    const models::Batch batch = models::vision::read_batch(data, batches[i]);
    const Tensor logits = model.logits(batch.at("pixel_values").to(model.device()));
    const std::vector<double> p = softmax(cast(logits, DType::f64)).to(kCpu).to_vector<double>();
    const std::vector<int64_t> labels = batch.at("labels").to_vector<int64_t>();
    const int64_t K = model.classes();
    for (size_t b = 0; b < labels.size(); ++b) {
      const auto row = p.begin() + static_cast<int64_t>(b) * K;
      const auto best = std::max_element(row, row + K);
      check(std::isfinite(*best), ErrorKind::numerical,
            [&] { return str("the logits of image ", batches[i][b], " are NaN or Inf: nothing can be shown"); });
      all.push_back({batches[i][b], labels[b], best - row, *best});
    }
    progress.update(static_cast<double>(i + 1) / static_cast<double>(batches.size()), str(all.size(), " images"),
                    i + 1 == batches.size());
  }
  return all;
}

// "3.0,3.1": layer and head, from 0; empty: all, or those of the last layers where there are too many.
std::vector<Head> heads_of(const std::string& text, const models::VitConfig& config) {
  const int64_t L = config.num_hidden_layers, N = config.num_attention_heads;
  std::vector<Head> heads;
  if (text.empty()) {
    const int64_t layers = std::clamp<int64_t>(kMaxHeads / N, 1, L);
    for (int64_t layer = L - layers; layer < L; ++layer)
      for (int64_t head = 0; head < N; ++head) heads.push_back({layer, head});
    return heads;
  }
  for (const std::string& item : split(text, ',')) {
    const std::vector<std::string> parts = split(trim(item), '.');
    const auto layer = parts.size() == 2 ? parse_int(parts[0]) : std::nullopt;
    const auto head = parts.size() == 2 ? parse_int(parts[1]) : std::nullopt;
    check(layer && head && *layer >= 0 && *layer < L && *head >= 0 && *head < N, ErrorKind::setting, [&, &item = item] {
      return str("bad value for --heads: expected LAYER.HEAD below ", L, ".", N, ", from 0.0, found '", preview(item),
                 "'");
    });
    heads.push_back({*layer, *head});
  }
  return heads;
}

// Half right ones in the order of the data, half mistakes, the most confident first; one kind fills up for the other.
std::vector<Prediction> chosen(const std::vector<Prediction>& right, const std::vector<Prediction>& mistakes,
                               int64_t count) {
  const int64_t wrong = std::min(std::ssize(mistakes), std::max(count / 2, count - std::ssize(right)));
  std::vector<Prediction> list(right.begin(), right.begin() + std::min(std::ssize(right), count - wrong));
  list.insert(list.end(), mistakes.begin(), mistakes.begin() + wrong);
  return list;
}

std::string percent(double share) { return human(100 * share, 4) + " %"; }

std::string data_url(const std::string& png) { return "data:image/png;base64," + base64(png); }

std::string words(const Prediction& p, const std::vector<std::string>& classes) {
  const std::string label = escape_html(classes.at(static_cast<size_t>(p.label)));
  const std::string found = escape_html(classes.at(static_cast<size_t>(p.predicted)));
  return p.right() ? label + ", " + percent(p.confidence)
                   : label + ", taken for " + found + ", " + percent(p.confidence);
}

// The image, and over it the weights of its patches.
std::string map_html(const std::string& of_image, const std::vector<double>& weights, const ImageAttention& a,
                     double max, const std::string& title) {
  const std::string heat =
      heat_png(heat_raster(weights, static_cast<int>(a.rows), static_cast<int>(a.columns), max), heat_colors({}));
  return "<figure class=\"patches " + of_image + "\"><img alt=\"" + title + "\" src=\"" + data_url(heat) +
         "\"><figcaption>" + title + "</figcaption></figure>";
}

std::string head_html(const Shown& shown, const std::string& of_image, const Head& head) {
  const ImageAttention& a = shown.attention;
  const size_t begin = a.at(head.layer, head.head, 0), count = static_cast<size_t>(a.rows * a.columns);
  const std::vector<double> before(a.before.begin() + static_cast<int64_t>(begin),
                                   a.before.begin() + static_cast<int64_t>(begin + count)),
      after(a.after.begin() + static_cast<int64_t>(begin), a.after.begin() + static_cast<int64_t>(begin + count));
  std::vector<double> change(count);
  double max = 0;
  for (size_t i = 0; i < count; ++i) {
    change[i] = after[i] - before[i];
    max = std::max({max, std::fabs(before[i]), std::fabs(after[i])});
  }
  std::string html = str("<div class=\"head\"><p>layer ", head.layer, ", head ", head.head, "</p>",
                         map_html(of_image, before, a, max, a.composed ? "before" : ""));
  if (a.composed)
    html += map_html(of_image, after, a, max, "after") + map_html(of_image, change, a, max, "after - before");
  return html + "</div>\n";
}

std::string attention_csv(const std::vector<Shown>& shown, const std::vector<Head>& heads) {
  Csv csv({"picture", "label", "prediction", "layer", "head", "row", "column", "before", "after"});
  for (const Shown& s : shown)
    for (const Head& h : heads)
      for (int64_t patch = 0; patch < s.attention.rows * s.attention.columns; ++patch) {
        const size_t at = s.attention.at(h.layer, h.head, patch);
        csv.row({s.prediction.image, s.prediction.label, s.prediction.predicted, h.layer, h.head,
                 patch / s.attention.columns, patch % s.attention.columns, s.attention.before[at],
                 s.attention.after[at]});
      }
  return csv.text();
}

std::string mistakes_csv(const std::vector<Prediction>& mistakes, const std::vector<std::string>& classes) {
  Csv csv({"picture", "class", "prediction", "confidence"});
  for (const Prediction& p : mistakes)
    csv.row({p.image, classes.at(static_cast<size_t>(p.label)), classes.at(static_cast<size_t>(p.predicted)),
             p.confidence});
  return csv.text();
}

Image read(const ImageDataset& data, int64_t i) {
  Image image;
  data.read(i, image);
  return image;
}

std::string png_of(const Image& p) {
  return image_png(p.pixels, static_cast<int>(p.channels), static_cast<int>(p.height), static_cast<int>(p.width));
}

std::string page(const std::string& name, const std::vector<Shown>& shown, const std::vector<Head>& heads,
                 const std::vector<Prediction>& mistakes, int64_t images, const ImageDataset& data) {
  const std::vector<std::string>& classes = data.input().classes;
  std::string style(page_part("images.css")), attention, wrong;
  for (size_t i = 0; i < shown.size(); ++i) {
    const std::string of_image = str("image-", i);
    style += "." + of_image + " { background-image: url(" + data_url(png_of(shown[i].image)) + "); }\n";
    attention += str("<h3>Image ", shown[i].prediction.image, ": ", words(shown[i].prediction, classes),
                     "</h3><div class=\"heads\"><figure class=\"patches ", of_image, "\"></figure>\n");
    for (const Head& head : heads) attention += head_html(shown[i], of_image, head);
    attention += "</div>\n";
  }
  const int64_t max = std::min<int64_t>(kMaxMistakes, std::ssize(mistakes));
  for (int64_t i = 0; i < max; ++i) {
    const Prediction& p = mistakes[static_cast<size_t>(i)];
    wrong +=
        str("<figure><img class=\"mistake\" alt=\"image ", p.image, "\" src=\"", data_url(png_of(read(data, p.image))),
            "\"><figcaption>", words(p, classes), "</figcaption></figure>\n");
  }
  const auto right = static_cast<double>(images - std::ssize(mistakes));
  const bool token = !shown.empty() && shown[0].attention.class_token;
  const std::string body = fill_template(
      page_part("images.html"),
      {{"about", str(images, " images of the validation split, ", percent(right / static_cast<double>(images)),
                     " of them right.")},
       {"queries", token ? "of the class token" : "of all patches, on average"},
       {"compose", !shown.empty() && shown[0].attention.composed
                       ? "Each head before Compose, after it, and the difference, with one scale for the three."
                       : "This model mixes no heads, so there is one map of each."},
       {"attention", attention},
       {"mistakes", str(mistakes.size(), " of ", images,
                        max < std::ssize(mistakes) ? str(", the ", max, " most confident ones shown") : "")},
       {"wrong", wrong}});
  return html_page({.title = "Analysis of " + name, .style = style, .first_section = "attention", .body = body});
}

}  // namespace

int analyze_images(const Arguments& arguments) {
  for (const char* flag : {"text", "prompt", "compare", "window", "sections", "for"})
    check(!arguments.has(flag) || arguments.get(flag).empty(), ErrorKind::setting,
          [&] { return str("--", flag, " is for texts: it has no effect beside --pictures; leave it out"); });
  const fs::path out = arguments.get("out");
  check_report_folder(out);
  ImageDataset data(arguments.get("pictures"), models::text::Split::val);
  const models::LoadedModel loaded =
      load_on_device(arguments, model_folder(arguments.get("MODEL")), {.dtype = dtype_of(arguments)});
  const models::Vit& model = vit_of(*loaded.model);
  nn::freeze(*loaded.model);
  std::vector<std::string> notes;
  data.take_as(models::vision::model_input(data.manifest(), arguments.get("pictures"), model,
                                           models::vision::read_preprocessing(loaded.format.folder), notes));
  print_notes(notes);
  const std::vector<Head> heads = heads_of(arguments.get("heads"), model.config());
  io::make_folder(out / "figures");

  std::vector<Prediction> right, mistakes;
  for (const Prediction& p : predictions(model, data, arguments.get_int("limit")))
    (p.right() ? right : mistakes).push_back(p);
  std::ranges::stable_sort(mistakes, std::greater(), &Prediction::confidence);
  std::vector<Shown> shown;
  for (const Prediction& p : chosen(right, mistakes, arguments.get_int("show-pictures"))) {
    const models::Batch one = models::vision::read_batch(data, {p.image});
    shown.push_back({p, read(data, p.image), models::image_attention(model, one.at("pixel_values"))});
  }
  const int64_t images = std::ssize(right) + std::ssize(mistakes);
  const std::string name = model_name(arguments.get("MODEL"));
  io::write_file((out / "figures/attention.csv").string(), attention_csv(shown, heads));
  io::write_file((out / "figures/mistakes.csv").string(), mistakes_csv(mistakes, data.input().classes));
  io::write_file((out / "index.html").string(), page(name, shown, heads, mistakes, images, data));
  std::printf("%lld images, %lld mistakes\nwrote %s; open it in a browser\n", static_cast<long long>(images),
              static_cast<long long>(mistakes.size()), (out / "index.html").c_str());
  return 0;
}

std::vector<Flag> image_flags() {
  return {
      value_flag("pictures", "DATA",
                 "for an image model, instead of a text: the validation split of what braid prepare --images wrote"),
      value_flag("heads", "LIST", "beside --pictures: LAYER.HEAD,... from 0.0 (default: of the last layers)"),
      integer_flag("show-pictures", "N", "beside --pictures: images whose attention is shown", "6", 1, 100),
      integer_flag("limit", "N", "beside --pictures: only so many images; 0 = all", "0", 0, 1e9)};
}

}  // namespace braid::apps::analyze
