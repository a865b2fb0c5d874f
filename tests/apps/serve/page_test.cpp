// The page for browsers and /v1/inspect: every file as it stands in the tree, and an inspection over HTTP as the
// library gives it. scripts/check_page drives the page in a real browser.
#include <boost/test/unit_test.hpp>
#include <regex>

#include "apps/serve/page/page_files.h"
#include "braid/models/inspect/inspection_json.h"
#include "braid/tensor/io/reader.h"
#include "tests/apps/serve/test_server.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(serve_page)

using nlohmann::json;

namespace {

constexpr int64_t kLargestFile = 1 << 20;
const std::string kFolder = source_dir() + "/apps/serve/page/";

std::string in_tree(const std::string& path) {
  return io::read_text_file(kFolder + (path == "/" ? "index.html" : path.substr(6)), kLargestFile);
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_are_those_of_the_tree) {
  TestServer server({.access = {.key = "secret"}});  // the page itself needs no key: it asks for it
  BOOST_TEST(apps::serve::page_files().size() >= 10u);
  for (const apps::serve::PageFile& file : apps::serve::page_files()) {
    BOOST_TEST_CONTEXT(file.path) {
      const Answer answer = Client(server.port()).get(file.path);
      BOOST_TEST(answer.status == 200);
      BOOST_TEST((answer.body == in_tree(file.path)));
      BOOST_TEST(answer.fields.at("content-type") == file.type);
      BOOST_TEST(answer.fields.at("content-security-policy").starts_with("default-src 'self'"));
    }
  }
  for (const char* path : {"/page/", "/page/none.js", "/page/../README.md", "/page/index.html/", "/Page/main.js"})
    BOOST_TEST(Client(server.port()).get(path, "Authorization: Bearer secret\r\n").status == 404, path);
}

// Nothing that the policy forbids, or that would reach another server.
BOOST_AUTO_TEST_CASE(files_name_only_one_another) {
  const std::regex reference("(src|href)=\"([^\"]*)\"|from '([^']*)'|import\\('([^']*)'\\)");
  for (const apps::serve::PageFile& file : apps::serve::page_files()) {
    const std::string text(file.contents), path = file.path;
    BOOST_TEST_CONTEXT(path) {
      BOOST_TEST(text.find("style=\"") == std::string::npos);
      BOOST_TEST(!std::regex_search(text, std::regex("<script(?![^>]*src=)|\\son[a-z]+=\"|url\\(")));
      for (std::sregex_iterator at(text.begin(), text.end(), reference), end; at != end; ++at) {
        const std::string found = (*at)[2].str() + (*at)[3].str() + (*at)[4].str();
        const std::string target = found.starts_with("./") ? "/page/" + found.substr(2) : found;
        const bool link = target.starts_with("#") || target.find("arxiv.org") != std::string::npos;
        BOOST_TEST((link || apps::serve::find_page_file(target) != nullptr), found);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_inspection_is_that_of_the_library) {
  TestServer server;
  const std::string body = R"({"prompt": "the fox", "layer": 1, "pair": [4, 2], "candidates": 3,
    "scales": [{"layer": 0, "pre": {"query": 0.5}, "post": {"static": 0, "key_gate": 0}}])";
  models::InspectionRequest request{.tokens = server.tokenizer.encode("the fox"),
                                    .layer = 1,
                                    .pair = std::pair<int64_t, int64_t>{4, 2},
                                    .candidates = 3};
  nn::CompositionScale factors;
  factors.pre.query = 0.5;
  factors.post.base = factors.post.key_gate = 0;
  request.scales = {{0, factors}};
  const models::Inspection want = models::inspect(*server.model, request);
  const Answer answer = server.post("/v1/inspect", body + "}");
  BOOST_TEST(answer.status == 200);
  BOOST_TEST((answer.json() == json::parse(models::inspection_json(want, &server.tokenizer))));
  const Answer binary = server.post("/v1/inspect", body + R"(, "format": "safetensors", "dtype": "f16"})");
  BOOST_TEST(binary.fields.at("content-type") == "application/octet-stream");
  BOOST_TEST((binary.body == models::inspection_safetensors(want, &server.tokenizer, DType::f16)));
}

// It has what the tokenizer puts before a text, like a prompt.
BOOST_AUTO_TEST_CASE(an_inspected_text_begins_as_a_prompt_does) {
  const auto tokenizer = models::text::parse_tokenizer(
      R"({"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0,
      "a": 1, "<s>": 2}}, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}},
      {"Sequence": {"id": "A"}}], "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [2]}}}})",
      "t.json");
  const auto model = TestServer::make_model(-1, "64");
  apps::serve::Service service(*model, *tokenizer, TestServer::with_defaults({}));
  const apps::serve::Server server(service, {});
  const Answer text = Client(server.port()).post("/v1/inspect", R"({"prompt": "a"})");
  BOOST_TEST(text.status == 200, text.body);
  BOOST_TEST((text.body == Client(server.port()).post("/v1/inspect", R"({"tokens": [2, 1]})").body));
}

BOOST_AUTO_TEST_CASE(inspections_out_of_range_are_rejected) {
  TestServer server;
  for (const auto& [body, words] : std::vector<std::pair<std::string, std::string>>{
           {"{}", "expected one of 'prompt' and 'tokens', found neither"},
           {R"({"prompt": "a", "tokens": [1]})", "found both"},
           {R"({"tokens": "MARKER"})", "bad value of 'tokens': expected a list of token ids, found a string"},
           {R"({"tokens": [300]})", "bad value of 'tokens[0]': expected a token id from 0 to 257"},
           {R"({"tokens": []})", "tokens: expected 1 to 64 of them, found 0"},
           {R"({"tokens": [1], "layer": 99})", "layer: expected a number from 0 to"},
           {R"({"tokens": [1], "layer": -1})", "bad value of 'layer'"},
           {R"({"tokens": [1], "layer": 0, "pair": [0]})", "bad value of 'pair': expected [query, key]"},
           {R"({"tokens": [1], "layer": 0, "pair": [0, 1]})", "pair: expected a number from 0 to 0, found 1"},
           {R"({"tokens": [1], "candidates": 65})", "bad value of 'candidates': expected an integer from 0 to 64"},
           {R"({"tokens": [1], "scales": {}})", "bad value of 'scales': expected a list of objects"},
           {R"({"tokens": [1], "scales": [{"pre": {"query": 2}}]})", "bad value of 'scales[0].pre.query'"},
           {R"({"tokens": [1], "scales": [{"pre": {"MARKER": 1}}]})", "has a factor that is not known"},
           {R"({"tokens": [1], "format": "MARKER"})", "bad value of 'format': expected json or safetensors"},
           {R"({"tokens": [1], "dtype": "f64"})", "bad value of 'dtype': expected f32 or f16"}}) {
    const Answer answer = server.post("/v1/inspect", body);
    BOOST_TEST(answer.status == 400, body);
    BOOST_TEST(answer.body.find(words) != std::string::npos, answer.body);
    BOOST_TEST(answer.body.find("MARKER") == std::string::npos, answer.body);
  }
}

// While inspections wait, the server answers and the model writes.
BOOST_AUTO_TEST_CASE(inspections_beside_completions) {
  TestServer server;
  const std::string look = R"({"prompt": "some text of the client", "layer": 0})";
  const std::string complete = R"({"prompt": "the fox", "max_tokens": 8, "temperature": 0})";
  const json alone = server.post("/v1/inspect", look).json();
  const json text = server.post("/v1/completions", complete).json()["choices"];
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    clients.back()->send(i % 2 == 0 ? Client::post_text("/v1/inspect", look)
                                    : Client::post_text("/v1/completions", complete));
  }
  BOOST_TEST(Client(server.port()).get("/health").status == 200);
  clients[10]->close();  // its inspection is dropped
  for (int i = 0; i < 10; ++i) {
    const Answer answer = clients[static_cast<size_t>(i)]->answer();
    BOOST_TEST(answer.status == 200);
    if (i % 2 == 0) BOOST_TEST((answer.json() == alone));
    if (i % 2 != 0) BOOST_TEST((answer.json()["choices"] == text));
  }
}

BOOST_AUTO_TEST_SUITE_END()
