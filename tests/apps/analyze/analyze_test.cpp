// braid analyze: the report of small models, its numbers against braid dump, and what it says of bad use.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "braid/models/families/dcformer/model.h"
#include "braid/models/folders/pretrained.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/file_system.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/apps/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(analyze_command)

namespace fs = std::filesystem;

namespace {

// A model of bytes with a context of 40.
std::string model_folder(const Scratch& scratch, const std::string& preset, const models::SettingTexts& more = {}) {
  models::SettingTexts settings = {
      {"dim", "16"},         {"n_layer", "2"},     {"n_head", "4"},           {"intermediate_size", "12"},
      {"vocab_size", "258"}, {"block_size", "40"}, {"initializer_std", "0.2"}};
  settings.insert(settings.end(), more.begin(), more.end());
  const models::Dcformer model(models::configure(preset, settings), {5, 0});
  const fs::path folder = scratch / preset;
  io::make_folder(folder);
  const models::text::ByteTokenizer tokenizer;
  models::save_model(model, &tokenizer, folder);
  return folder.string();
}

std::vector<std::vector<std::string>> rows(const fs::path& csv) {
  std::vector<std::vector<std::string>> result;
  for (const std::string& line : detail::split(slurp(csv), '\n'))
    if (!line.empty()) result.push_back(detail::split(line, ','));
  return result;
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

// The layers of the first model in the data of the page.
nlohmann::json layers_of_page(const fs::path& report) {
  const std::string page = slurp(report / "index.html"), open = "id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin))["models"][0]["layers"];
}

// f32 in base64
std::vector<float> floats(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t group = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    group = group << 6 | (text[i] == '=' ? 0 : static_cast<uint32_t>(letters.find(text[i])));
    for (int shift = 16; i % 4 == 3 && shift >= 0; shift -= 8) bytes += static_cast<char>(group >> shift & 255);
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

int64_t files(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

const std::string kText =
    "The fox reads the text, and the fox reads the text again and again until it is done with it.";

}  // namespace

BOOST_AUTO_TEST_CASE(report_of_a_composed_model) {
  const Scratch scratch;
  const std::string model = model_folder(scratch, "dcformer-tiny"), text = (scratch / "text").string();
  write(text, kText);
  const std::string arguments = "analyze " + model + " --text " + text + " --window 32 --show 12 --dtype f64 -o ";
  const Outcome made = run(arguments + (scratch / "report").string());
  BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
  BOOST_TEST(made.output.find("loss without Compose") != std::string::npos);
  const std::string page = slurp(scratch / "report" / "index.html");
  BOOST_TEST(page.find("3 windows") == std::string::npos);
  BOOST_TEST(page.find("2 windows of 32 tokens") != std::string::npos);
  BOOST_TEST(page.find("://") == page.find("://www.w3.org/2000/svg"));  // the name space alone, no address
  BOOST_TEST(page.find("{{") == std::string::npos);
  for (const char* id : {"rank", "diversity", "strength", "mixing-layer-1", "ablation-heads", "lens-tokens",
                         "qk-layer-0", "composition", "patterns", "maps-layer-1-scores", "maps-layer-1-probs"}) {
    BOOST_TEST(fs::exists(scratch / "report" / "figures" / (std::string(id) + ".svg")), id);
    BOOST_TEST(fs::exists(scratch / "report" / "figures" / (std::string(id) + ".csv")), id);
  }
  // The maps are those of braid dump.
  const std::string dump = (scratch / "dump.safetensors").string();
  const Outcome dumped =
      run("dump " + model + " --prompt '" + kText.substr(0, 32) + "' --attention --dtype f64 -o " + dump);
  BOOST_REQUIRE_MESSAGE(dumped.code == 0, dumped.output);
  const io::SafetensorsFile file(dump);
  const std::vector<std::string> names = {"attn_scores", "attn_scores_composed", "attn_probs", "attn_probs_composed"};
  std::vector<std::vector<double>> maps;
  for (const std::string& name : names) maps.push_back(file.load("layers.1." + name).to_vector<double>());
  for (const size_t stage : {0u, 2u}) {
    const auto table =
        rows(scratch / "report" / "figures" / (stage == 0 ? "maps-layer-1-scores.csv" : "maps-layer-1-probs.csv"));
    BOOST_REQUIRE(table.size() == 1 + 4 * 12 * 13 / 2u);
    for (size_t r = 1; r < table.size(); ++r) {
      const auto number = [&](size_t column) { return *detail::parse_int(table[r][column]); };
      const auto at = static_cast<size_t>((number(0) * 32 + number(1)) * 32 + number(2));
      for (const size_t m : {stage, stage + 1}) {
        BOOST_TEST(table[0][3 + m - stage] == names[m]);
        const double want = maps[m][at], got = std::stod(table[r][3 + m - stage]);
        BOOST_REQUIRE(((got == want) || std::fabs(got - want) < 1e-6));
      }
      const double change = std::stod(table[r][4]) - std::stod(table[r][3]);
      BOOST_TEST((std::isnan(change) || std::fabs(std::stod(table[r][5]) - change) < 1e-6));
    }
    BOOST_TEST(table[1][6] == "T");
  }

  // The same bits again.
  const Outcome again = run(arguments + (scratch / "again").string());
  BOOST_TEST(again.code == 0);
  BOOST_TEST((page == slurp(scratch / "again" / "index.html")));
  BOOST_TEST(files(scratch / "report" / "figures") == files(scratch / "again" / "figures"));
}

// The page computes maps from the scores where these give them; the others are stored, and are those of the figures. A
// model that masks no keys has all keys of the shown tokens.
BOOST_AUTO_TEST_CASE(maps_that_do_not_follow_from_the_scores) {
  struct Case {
    std::string preset;
    models::SettingTexts settings;
    bool stored;
    size_t pairs;  // of a head's 12 tokens
  };
  const Case cases[] = {{"transformer-tiny", {}, false, 78},
                        {"transformer-tiny", {{"attention_softcap", "1"}}, false, 78},
                        {"dcformer-tiny", {{"window_size", "5"}}, false, 78},
                        {"transformer-tiny", {{"attention", "sink"}}, true, 78},
                        {"transformer-tiny", {{"attention", "iha"}}, true, 78},
                        {"dcformer-tiny", {{"profile.causal", "false"}}, true, 144}};
  for (const Case& c : cases) {
    const Scratch scratch;
    const fs::path report = scratch / "report";
    const Outcome made = run("analyze " + model_folder(scratch, c.preset, c.settings) + " --prompt '" +
                             kText.substr(0, 20) + "' --show 12 --sections maps -o " + report.string());
    BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
    const nlohmann::json layer = layers_of_page(report)[1];
    BOOST_TEST(layer.contains("maps") == c.stored);
    for (const size_t stage : {0u, 2u}) {
      const auto table = rows(report / "figures" / (stage == 0 ? "maps-layer-1-scores.csv" : "maps-layer-1-probs.csv"));
      BOOST_REQUIRE(table.size() == 1 + 4 * c.pairs);
      for (const size_t column : {3u, 4u}) {
        const std::string& name = table[0][column];
        if (name != "attn_scores" && !c.stored) continue;
        const nlohmann::json& text = name == "attn_scores" ? layer["scores"] : layer["maps"][name];
        const std::vector<float> values = floats(text.get<std::string>());
        BOOST_REQUIRE(values.size() == 4 * c.pairs);
        for (size_t e = 0; e < values.size(); ++e)
          BOOST_REQUIRE(values[e] == static_cast<float>(std::stod(table[e + 1][column])));
      }
    }
  }
}

// A row of panels is a layer, also where only the last layer composes.
BOOST_AUTO_TEST_CASE(pairs_of_heads_where_one_layer_composes) {
  const Scratch scratch;
  const std::string model = model_folder(scratch, "dcformer-tiny", {{"compose", "lightweight"}});
  const fs::path report = scratch / "report";
  const Outcome made =
      run("analyze " + model + " --prompt '" + kText.substr(0, 20) + "' --sections diversity -o " + report.string());
  BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
  const std::string cosines = slurp(report / "figures" / "cosines.svg"),
                    divergences = slurp(report / "figures" / "divergences.svg");
  for (const std::string& svg : {cosines, divergences})
    for (const char* row : {">layer 0: head<", ">layer 1: head<"}) BOOST_TEST(count(svg, row) == 1, row);
  for (const char* title : {">scores before<", ">scores after<", ">probabilities before<", ">weights after<"})
    BOOST_TEST(count(cosines, title) == 2, title);
  for (const char* title : {">softmax of scores before<", ">probabilities before<", ">weights after<"})
    BOOST_TEST(count(divergences, title) == 2, title);
}

// Maps have token labels, a color bar with its unit and what is clipped; composed maps are of weights, not
// probabilities. On paper there is a PDF beside each SVG, and the page stays as it is.
BOOST_AUTO_TEST_CASE(figures_for_paper) {
  const Scratch scratch;
  const std::string command = "analyze " + model_folder(scratch, "dcformer-tiny") + " --prompt '" +
                              kText.substr(0, 40) + "' --show 20 --sections maps,diversity -o ";
  const fs::path screen = scratch / "screen", paper = scratch / "paper";
  BOOST_REQUIRE(run(command + screen.string()).code == 0);
  BOOST_REQUIRE(run(command + paper.string() + " --for paper").code == 0);
  BOOST_TEST((slurp(screen / "index.html") == slurp(paper / "index.html")));
  int64_t pdfs = 0;
  for (const auto& entry : fs::directory_iterator(paper / "figures")) {
    const fs::path svg = fs::path(entry.path()).replace_extension(".svg");
    BOOST_TEST(fs::exists(fs::path(svg).replace_extension(".csv")), svg);
    BOOST_TEST(slurp(svg).find("width=\"234pt\"") != std::string::npos, svg);
    pdfs += entry.path().extension() == ".pdf";
  }
  BOOST_TEST(3 * pdfs == files(paper / "figures"));
  const std::string weights = slurp(screen / "figures" / "maps-layer-0-probs.svg"),
                    scores = slurp(screen / "figures" / "maps-layer-0-scores.svg"),
                    lines = slurp(screen / "figures" / "diversity.svg");
  for (const char* part : {">key<", ">\u00b7<", ">weight<", ">head 0: query<", ">probability<", ">weight after<",
                           "clipped at the 99.5 % quantile of sizes; the largest is "})
    BOOST_TEST(weights.find(part) != std::string::npos, part);
  BOOST_TEST(scores.find("robabilit") == std::string::npos);
  // A color stands for one quantity: each name is once in the legend.
  for (const char* name : {"scores before", "scores after", "probabilities before", "weights after"}) {
    const std::string element = ">" + std::string(name) + "<";
    BOOST_TEST(lines.find(element) != std::string::npos, name);
    BOOST_TEST(lines.find(element) == lines.rfind(element), name);
  }
}

BOOST_AUTO_TEST_CASE(two_models_side_by_side) {
  const Scratch scratch;
  const std::string composed = model_folder(scratch, "dcformer-tiny"),
                    plain = model_folder(scratch, "transformer-tiny");
  const fs::path report = scratch / "report";
  const Outcome made = run("analyze " + plain + " --compare " + composed + " --prompt '" + kText.substr(0, 20) +
                           "' --sections rank,maps,patterns -o " + report.string());
  BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
  BOOST_TEST(made.output.find("note: the text has 20 tokens, fewer than a window of 40") != std::string::npos);
  const std::string page = slurp(report / "index.html");
  BOOST_TEST(page.find("transformer-tiny and dcformer-tiny") != std::string::npos);
  BOOST_TEST(fs::exists(report / "figures" / "a-patterns.svg"));
  BOOST_TEST(fs::exists(report / "figures" / "b-patterns.svg"));
  BOOST_TEST(!fs::exists(report / "figures" / "diversity.svg"));  // not asked for
  // A column for each model: of plain attention nothing is before or after.
  bool compared = false;
  for (const auto& row : rows(report / "figures" / "rank.csv")) compared |= row[0] == "dcformer-tiny";
  BOOST_TEST(compared);
}

BOOST_AUTO_TEST_CASE(both_models_read_standard_input) {
  const Scratch scratch;
  write(scratch / "text", kText.substr(0, 20));
  const std::string models = model_folder(scratch, "dcformer-tiny") + " --compare " +
                             model_folder(scratch, "transformer-tiny"),
                    rest = " --sections patterns -o " + (scratch / "report").string() + " < " +
                           (scratch / "text").string();
  for (const char* from : {" --prompt -", " --text -"}) {
    const Outcome made = run("analyze " + models + from + rest);
    BOOST_TEST(made.code == 0, made.output);
    const size_t first = made.output.find("note: the text has 20 tokens");
    BOOST_TEST(first != std::string::npos, made.output);
    BOOST_TEST(made.output.find("note: the text has 20 tokens", first + 1) != std::string::npos, made.output);
  }
}

BOOST_AUTO_TEST_CASE(special_tokens_of_a_file) {
  const Scratch scratch;
  const std::string text = (scratch / "text").string();
  write(text, "The fox<|endoftext|>reads");
  const std::string command = "analyze " + model_folder(scratch, "transformer-tiny") + " --text " + text +
                              " --sections maps -o " + (scratch / "report").string();
  const Outcome parsed = run(command + " --parse-specials"), literal = run(command);
  BOOST_TEST(has(parsed, "note: the text has 13 tokens"), parsed.output);
  BOOST_TEST(has(literal, "note: the text has 25 tokens"), literal.output);
}

BOOST_AUTO_TEST_CASE(bad_use) {
  const Scratch scratch;
  const std::string composed = model_folder(scratch, "dcformer-tiny"),
                    plain = model_folder(scratch, "transformer-tiny"), out = " -o " + (scratch / "report").string();
  const auto says = [&](const std::string& arguments, const std::string& message) {
    const Outcome o = run("analyze " + arguments);
    BOOST_TEST(o.code == 2, o.output);
    BOOST_TEST(o.output.find(message) != std::string::npos, o.output);
    BOOST_TEST(!fs::exists(scratch / "report"));
  };
  says(plain + " --prompt abc --sections mixing" + out, "the analysis of mixing is of composed heads");
  says(composed + " --compare " + plain + " --prompt abc --sections mixing" + out,
       "transformer-tiny: the analysis of mixing is of composed heads");
  says(composed + " --prompt abc --window 8" + out, "the text is shorter than the window of the analysis");
  says(composed + " --prompt '" + kText + "' --window 41" + out, "expected 2 to the model's longest sequence of 40");
  says(composed + " --prompt a" + out, "expected at least 2 tokens, found 1");
  says(composed + out, "expected one of --text FILE and --prompt TEXT");
  says(composed + " --prompt abc --sections map" + out, "did you mean");
  says(composed + " --prompt abc -o " + composed, "holds a model");
  says(composed + " --prompt abc --for slides" + out, "bad value for --for: expected paper");
}

BOOST_AUTO_TEST_SUITE_END()
