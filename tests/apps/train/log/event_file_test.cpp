#include "apps/train/log/event_file.h"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <map>

#include "tests/apps/train/runs.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(event_file)

using apps::EventFile, apps::LogRow;

namespace {

// A reader of its own: the checksum bit by bit, the messages by the field numbers of TensorFlow's event.proto.
uint32_t crc32c_bit_by_bit(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return ~crc;
}
uint32_t masked(const std::string& bytes) {
  const uint32_t crc = crc32c_bit_by_bit(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class T>
T take(const std::string& bytes, size_t& at) {
  T value{};
  BOOST_REQUIRE(at + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof value);
  at += sizeof value;
  return value;
}
uint64_t varint(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<unsigned char>(bytes, at);
    value |= uint64_t(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

struct Message {  // field number -> its values
  std::multimap<int, uint64_t> whole;
  std::multimap<int, double> real;
  std::multimap<int, std::string> bytes;
  explicit Message(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const uint64_t key = varint(text, at);
      const int number = int(key >> 3), wire = int(key & 7);
      if (wire == 0) whole.emplace(number, varint(text, at));
      if (wire == 1) real.emplace(number, take<double>(text, at));
      if (wire == 5) real.emplace(number, take<float>(text, at));
      if (wire == 2) {
        const uint64_t n = varint(text, at);
        BOOST_REQUIRE(n <= text.size() - at);
        bytes.emplace(number, text.substr(at, n));
        at += n;
      }
      BOOST_REQUIRE((wire == 0 || wire == 1 || wire == 2 || wire == 5));
    }
  }
};

struct Event {
  int64_t step = 0;
  double time = 0;
  std::string version;
  bool starts = false;
  std::map<std::string, double> values;
};

std::vector<Event> events(const std::filesystem::path& file) {
  const std::string text = slurp(file);
  std::vector<Event> all;
  for (size_t at = 0; at < text.size();) {
    const std::string head = text.substr(at, 8);
    const auto n = take<uint64_t>(text, at);
    BOOST_REQUIRE_EQUAL(take<uint32_t>(text, at), masked(head));
    BOOST_REQUIRE(n <= text.size() - at);
    const std::string body = text.substr(at, n);
    at += n;
    BOOST_REQUIRE_EQUAL(take<uint32_t>(text, at), masked(body));
    const Message m(body);
    Event e;
    if (m.whole.contains(2)) e.step = int64_t(m.whole.find(2)->second);
    e.time = m.real.find(1)->second;
    if (m.bytes.contains(3)) e.version = m.bytes.find(3)->second;
    if (m.bytes.contains(7)) e.starts = Message(m.bytes.find(7)->second).whole.find(1)->second == 1;
    if (m.bytes.contains(5)) {
      const Message summary(m.bytes.find(5)->second);
      for (const auto& [number, value] : summary.bytes) {
        const Message v(value);
        e.values[v.bytes.find(1)->second] = v.real.find(2)->second;
      }
    }
    all.push_back(e);
  }
  return all;
}

std::vector<std::filesystem::path> files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int64_t> steps(const std::filesystem::path& folder) {
  std::vector<int64_t> all;
  for (const auto& file : files(folder))
    for (const Event& e : events(file))
      if (!e.values.empty()) all.push_back(e.step);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(values_are_framed_as_tensorboard_reads_them) {
  BOOST_TEST(crc32c_bit_by_bit("123456789") == 0xE3069283u);
  const Scratch scratch;
  {
    EventFile file(scratch.path, 0);
    file.append(LogRow(1, {{"loss", 5.5}, {"lr", 0.001}}));
    file.append(LogRow(300, {{"loss", 4.25}, {"val_loss", INFINITY}}));
  }
  BOOST_REQUIRE_EQUAL(files(scratch.path).size(), 1u);
  BOOST_TEST(files(scratch.path)[0].filename().string().starts_with("events.out.tfevents."));
  const std::vector<Event> all = events(files(scratch.path)[0]);
  BOOST_REQUIRE_EQUAL(all.size(), 3u);
  BOOST_TEST(all[0].version == "brain.Event:2");
  BOOST_TEST(!all[1].starts);
  BOOST_TEST(all[1].step == 1);
  BOOST_TEST(all[1].time > 1.6e9);
  BOOST_TEST(all[1].values.size() == 2u);
  BOOST_TEST(all[1].values.at("loss/train") == 5.5);
  BOOST_TEST(all[1].values.at("optimizer/learning_rate") == double(0.001f));
  BOOST_TEST(all[2].step == 300);
  BOOST_TEST(all[2].values.at("loss/validation") == INFINITY);
}

// Killed after step 9 in the middle of a record, while the last checkpoint is of step 6.
BOOST_AUTO_TEST_CASE(a_resumed_run_has_every_step_once) {
  const Scratch scratch;
  {
    EventFile file(scratch.path, 0);
    for (int64_t step = 1; step <= 9; ++step) file.append(LogRow(step, {{"loss", 1}}));
  }
  const std::string torn = slurp(files(scratch.path)[0]);
  write(files(scratch.path)[0], torn.substr(0, torn.size() - 5));
  {
    EventFile file(scratch.path, 6);
    for (int64_t step = 7; step <= 8; ++step) file.append(LogRow(step, {{"loss", 1}}));
  }
  BOOST_TEST(steps(scratch.path) == (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}), boost::test_tools::per_element());
  const std::vector<Event> second = events(files(scratch.path)[1]);
  BOOST_TEST(second[1].starts);
  BOOST_TEST(second[1].step == 7);
}

BOOST_AUTO_TEST_CASE(a_run_writes_them_on_request) {
  const auto out = world().fresh();
  BOOST_TEST(train(out, {"train.steps=4"}).code == 0);
  BOOST_TEST(!std::filesystem::exists(out / "tensorboard"));
  BOOST_TEST(train(out, {"train.steps=6", "log.tensorboard=true"}).code == 0);
  BOOST_TEST(train(out, {"train.steps=8", "log.tensorboard=true"}).code == 0);
  BOOST_TEST(steps(out / "tensorboard") == (std::vector<int64_t>{5, 6, 7, 8}), boost::test_tools::per_element());
  const Event last = events(files(out / "tensorboard")[1]).back();
  BOOST_TEST(last.values.at("loss/train") == double(float(apps::read_log(out).back()["loss"])));
  BOOST_TEST(last.values.contains("loss/validation"));
}

BOOST_AUTO_TEST_SUITE_END()
