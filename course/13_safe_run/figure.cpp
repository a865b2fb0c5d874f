// What the file "weights" may be after a power loss, call by call, with and without the sync of its bytes: all states
// of the course's disk.
#include <functional>
#include <set>

#include "course/13_safe_run/disk.h"
#include "course/drawing.h"

using course::Color;
using course::Disk;

namespace {

constexpr double kWidth = 112;

void row(course::Drawing& out, double y, const std::string& name, bool sync) {
  struct Call {
    const char* words;
    std::function<void(Disk&)> make;
  };
  std::vector<Call> calls{{"create(tmp)", [](Disk& disk) { disk.create("tmp"); }},
                          {"write(tmp)", [](Disk& disk) { disk.write("tmp", "new!"); }},
                          {"sync(tmp)", [](Disk& disk) { disk.sync("tmp"); }},
                          {"rename", [](Disk& disk) { disk.rename("tmp", "weights"); }},
                          {"sync_folder()", [](Disk& disk) { disk.sync_folder(); }}};
  Disk disk;
  disk.create("weights"), disk.write("weights", "old!"), disk.sync("weights"), disk.sync_folder();
  out.text(20, y, name);
  double x = 20;
  for (const Call& call : calls) {
    if (sync || call.words != std::string("sync(tmp)")) {
      call.make(disk);
      out.text(x + kWidth / 2, y + 24, call.words, Color::soft, "middle");
      out.arrow(x + 4, y + 32, x + kWidth - 4, y + 32, Color::soft);
      std::set<std::string> found;
      for (const Disk::State& state : disk.after_power_loss()) found.insert(state.disk.read("weights"));
      double line = y + 42;
      for (const std::string& bytes : found) {
        const std::string words = bytes.empty() ? "empty" : bytes[0] == 0 ? "zeros" : bytes;
        const Color color = words == "old!" ? Color::blue : words == "new!" ? Color::green : Color::red;
        out.box(x + 14, line, kWidth - 28, 22, words, color, 0.15);
        line += 26;
      }
    }
    x += kWidth;
  }
}

}  // namespace

int main(int argc, char** argv) {
  course::Drawing out(600, 350, "What a file may be after a power loss while it is replaced, with and without a sync");
  row(out, 24, "with a sync of the bytes, weights may be after a power loss:", true);
  row(out, 160, "without it:", false);
  out.save(argc, argv);
}
