#include "apps/train/log/metrics.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>

#include "apps/train/log/metrics_server.h"
#include "tests/apps/exposition.h"
#include "tests/apps/serve/client.h"
#include "tests/apps/train/runs.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using apps::LogRow, apps::MetricsFile, apps::MetricsServer, apps::RunMetrics, apps::serve::BoundAddress;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(train_metrics)

namespace {

using Values = std::map<std::string, double>;
// The value of a metric of this run; NaN where it is not there.
double value_of(const Values& values, const std::string& metric, const std::string& run) {
  const auto at = values.find("braid_train_" + metric + "{run=\"" + run + "\"}");
  return at == values.end() ? NAN : at->second;
}

int free_port() { return BoundAddress("127.0.0.1", 0).port(); }

}  // namespace

BOOST_AUTO_TEST_CASE(text_of_a_row) {
  RunMetrics metrics("a\"\\\n", 10, {});
  LogRow row(1, {{"loss", 2.5}, {"tokens", 896}, {"memory_mb", 1.5}, {"elapsed_s", 0.25}});
  row.unix_time = 1795759427.25;
  row.sources = {{"loss.s", 1.5}, {"loss.t", NAN}};
  metrics.update(row);
  const std::string text = metrics.text();
  BOOST_TEST(
      text.starts_with("# HELP braid_train_running 1 while the run trains, 0 when it has ended.\n"
                       "# TYPE braid_train_running gauge\n"
                       "braid_train_running{run=\"a\\\"\\\\\\n\"} 1\n"));
  const Values values = read_exposition(text);
  const auto is = [&](const std::string& metric, double value) {
    BOOST_TEST(value_of(values, metric, "a\\\"\\\\\\n") == value, metric << " in\n" << text);
  };
  is("step", 1), is("steps", 10), is("loss", 2.5), is("tokens_total", 896), is("peak_memory_bytes", 1.5e6);
  is("step_seconds", 0.25), is("last_step_timestamp_seconds", 1795759427.25);
  BOOST_TEST(values.at("braid_train_source_loss{run=\"a\\\"\\\\\\n\",source=\"s\"}") == 1.5);
  BOOST_TEST(values.size() == 9u);  // nothing that the row lacks
}

// What a row lacks stays. The time of a step is between two rows that follow each other.
BOOST_AUTO_TEST_CASE(values_of_several_rows) {
  RunMetrics metrics("r", 10, {LogRow(3, {{"val_loss", 4}, {"loss", 9}, {"elapsed_s", 6}})});
  const auto value = [&](const std::string& metric) { return value_of(read_exposition(metrics.text()), metric, "r"); };
  BOOST_TEST(value("step") == 3);
  BOOST_TEST(std::isnan(value("step_seconds")));
  metrics.update(LogRow(4, {{"loss", 3}, {"elapsed_s", 8.5}}));
  BOOST_TEST(value("loss") == 3);
  BOOST_TEST(value("validation_loss") == 4);
  BOOST_TEST(value("step_seconds") == 2.5);
  BOOST_TEST(std::isnan(value("learning_rate")));
  metrics.update(LogRow(4, {{"val_loss", 2}, {"elapsed_s", 8.5}}));  // completed after a resume
  BOOST_TEST(value("validation_loss") == 2);
  BOOST_TEST(value("step_seconds") == 2.5);
  BOOST_TEST(value("running") == 1);
  metrics.end();
  BOOST_TEST(value("running") == 0);
}

BOOST_AUTO_TEST_CASE(when_the_file_is_written) {
  const Scratch scratch;
  const std::string path = (scratch / "run.prom").string();
  RunMetrics metrics("r", 10, {});
  const auto value = [&](const std::string& metric) { return value_of(read_exposition(slurp(path)), metric, "r"); };
  {
    MetricsFile file(path, metrics);
    BOOST_TEST(value("step") == 0);
    metrics.update(LogRow(1));
    file.update(false);  // less than a second later
    BOOST_TEST(value("step") == 0);
    file.update(true);
    BOOST_TEST(value("step") == 1);
    BOOST_TEST(value("running") == 1);
    metrics.end();
  }
  BOOST_TEST(value("running") == 0);
  BOOST_TEST(std::distance(fs::directory_iterator(scratch.path), {}) == 1);
  BRAID_CHECK_FAILS(MetricsFile((scratch / "no/run.prom").string(), metrics), ErrorKind::output, "no/run.prom");
}

BOOST_AUTO_TEST_CASE(what_the_server_answers) {
  const BoundAddress taken("127.0.0.1", 0);
  BoundAddress address("127.0.0.1", 0);
  const int port = address.port();
  MetricsServer server(std::move(address), [] { return "braid_x 1\n"; });
  const Answer answer = Client(port).get("/metrics?a=b");
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.body == "braid_x 1\n");
  BOOST_TEST(answer.fields.at("content-type") == "text/plain; version=0.0.4; charset=utf-8");
  BOOST_TEST(answer.fields.at("connection") == "close");
  BOOST_TEST(Client(port).get("/metrics", "", "HEAD").fields.at("content-length") == "10");
  BOOST_TEST(Client(port).get("/").status == 404);
  BOOST_TEST(Client(port).get("/metrics", "", "DELETE").fields.at("allow") == "GET");
  for (const auto& [request, status] :
       {std::pair<std::string, int>{"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
        {"GET /metrics HTTP/1.1\r\n\r\n", 400},
        {"GET /metrics HTTP/3.0\r\nHost: localhost\r\n\r\n", 505},
        {"rubbish\r\n\r\n", 400},
        {"GET /metrics HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(20000, 'a') + "\r\n\r\n", 431},
        {"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 413}}) {
    Client client(port);
    client.send(request);
    BOOST_TEST(client.answer().status == status, request.substr(0, 80));
  }
  // Clients that say nothing, leave, or say half of it; the next ones get their answer, after two seconds at most each.
  Client silent(port), half(port);
  half.send("GET /metr");
  Client(port).reset();
  Client last(port);
  BOOST_TEST(last.get("/metrics").status == 200);
  BOOST_TEST(silent.ends());
  BOOST_TEST(half.ends());
  const Client open(port);  // does not hold up the end of the server
}

namespace {

// Scrapes until it dies; every text that came is complete.
class Scraper {
 public:
  explicit Scraper(int port)
      : thread_([this, port] {
          while (!stop_) {
            Client client(port);
            if (!client.connected()) {
              sleep_us(1000);
              continue;
            }
            const Answer answer = client.get("/metrics");
            if (answer.status == 200) texts.push_back(answer.body);
          }
        }) {}
  ~Scraper() { stop(); }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::vector<std::string> texts;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void check_values(const Values& values, const fs::path& out) {
  const std::string run = out.string();
  const LogRow last = apps::last_row(out).value();
  BOOST_TEST(value_of(values, "step", run) == 10);
  BOOST_TEST(value_of(values, "steps", run) == 10);
  for (const auto& [metric, value] :
       {std::pair("loss", last["loss"]), std::pair("validation_loss", last["val_loss"]),
        std::pair("tokens_total", last["tokens"]), std::pair("learning_rate", last["lr"]),
        std::pair("gradient_norm", last["grad_norm"]), std::pair("tokens_per_second", last["tok_per_s"]),
        std::pair("mfu_ratio", last["mfu"]), std::pair("peak_memory_bytes", 1e6 * last["memory_mb"])})
    BOOST_TEST(value_of(values, metric, run) == value, metric);
  BOOST_TEST(value_of(values, "step_seconds", run) > 0);
  BOOST_TEST(value_of(values, "last_step_timestamp_seconds", run) > 1.7e9);
}

}  // namespace

// A run that is scraped without a pause writes the bytes of one that is not.
BOOST_AUTO_TEST_CASE(of_a_run) {
  const fs::path out = world().fresh(), file = world().scratch / "of-a-run.prom";
  const int port = free_port();
  Scraper scraper(port);
  std::atomic<bool> stop{false};
  std::vector<std::string> files;  // as other programs see the file
  std::thread reader([&] {
    for (std::string text; !stop; sleep_us(200))
      if (fs::exists(file) && (files.empty() || (text = slurp(file)) != files.back())) files.push_back(slurp(file));
  });
  const Outcome done = train(out, {"log.metrics_port=" + std::to_string(port), "log.metrics_file=" + file.string()});
  scraper.stop();
  stop = true;
  reader.join();
  BOOST_REQUIRE_MESSAGE(done.code == 0, done.output);
  BOOST_TEST(done.output.find("metrics: http://127.0.0.1:" + std::to_string(port) + "/metrics") != std::string::npos);
  check_same(out);
  BOOST_REQUIRE(!scraper.texts.empty());
  double before = 0;
  for (const std::string& text : scraper.texts) {
    const Values values = read_exposition(text);
    BOOST_TEST(value_of(values, "running", out.string()) == 1);
    BOOST_TEST(value_of(values, "step", out.string()) >= before);
    before = value_of(values, "step", out.string());
  }
  BOOST_REQUIRE(files.size() >= 2u);
  for (const std::string& text : files) read_exposition(text);
  const Values last = read_exposition(slurp(file));
  BOOST_TEST(value_of(last, "running", out.string()) == 0);
  check_values(last, out);
  BOOST_TEST(!Client(port).connected());
}

BOOST_AUTO_TEST_CASE(of_a_run_that_is_stopped_and_resumed) {
  const fs::path out = world().fresh(), file = world().scratch / "resumed.prom";
  const int port = free_port();
  const std::vector<std::string> more = {"log.metrics_port=" + std::to_string(port),
                                         "log.metrics_file=" + file.string(), "checkpoint.interval=1",
                                         "train.steps=100000"};
  {
    Process process(settings(out, more));
    read_until(process, "step 2/");
    BOOST_TEST(value_of(read_exposition(Client(port).get("/metrics").body), "running", out.string()) == 1);
    const Client open(port);
    process.signal(SIGTERM);
    const Outcome stopped = process.wait();
    BOOST_TEST(stopped.code == 75, stopped.output);
  }
  const double steps = value_of(read_exposition(slurp(file)), "step", out.string());
  BOOST_TEST(steps >= 2);
  BOOST_TEST(value_of(read_exposition(slurp(file)), "running", out.string()) == 0);
  Process process(settings(out, more));  // the port is free at once
  read_until(process, "metrics: http://");
  const Values values = read_exposition(Client(port).get("/metrics").body);
  BOOST_TEST(value_of(values, "step", out.string()) >= steps);
  BOOST_TEST(value_of(values, "loss", out.string()) > 0);  // of the step before, until the next one
}

BOOST_AUTO_TEST_CASE(ports_and_files_that_cannot_be_had) {
  const int port = free_port();
  const int busy = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  BOOST_REQUIRE(::bind(busy, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  BOOST_REQUIRE(::listen(busy, 1) == 0);
  const fs::path out = world().fresh();
  check_failure(train(out, {"log.metrics_port=" + std::to_string(port)}), 2,
                "log.metrics_port: cannot listen on 127.0.0.1 port " + std::to_string(port) +
                    ": Address already in use; another program has this port: choose another one");
  BOOST_TEST(!fs::exists(out));
  ::close(busy);
  for (const char* value : {"-1", "65536", "0.5", "http"})
    check_failure(train(out, {std::string("log.metrics_port=") + value}), 2, "log.metrics_port");
  BOOST_TEST(!fs::exists(out));
  check_failure(train(out, {"log.metrics_file=/nowhere/run.prom"}), 4, "/nowhere");
  BOOST_TEST(train(out, {"log.prometheus=" + (world().scratch / "old.prom").string()}).code == 0);  // its earlier name
  BOOST_TEST(fs::exists(world().scratch / "old.prom"));
}

BOOST_AUTO_TEST_SUITE_END()
