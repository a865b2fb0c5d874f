// Checks of exercise 13: each function is killed at every call, and meets every power loss that the disk may have then.
#include EXERCISE

#include <set>

#include "course/13_safe_run/disk.h"
#include "course/checks.h"

using course::Disk;
using course::expect;

namespace {

// After a kill at any call of `body`, and after any power loss then, test(disk, where, returned) is called; `where` is
// the history in words. The last time, body returns, and nothing but power can be lost.
void at_every_call(const Disk& before, const std::function<void(Disk&)>& body,
                   const std::function<void(Disk&, const std::string& where, bool returned)>& test) {
  bool returned = false;
  for (int kill = 0; !returned; ++kill) {
    Disk disk = before;
    disk.kill_at(kill);
    try {
      body(disk);
      returned = true;
    } catch (const course::Killed&) {
    }
    std::string calls;
    for (const std::string& call : disk.history()) calls += (calls.empty() ? "" : ", ") + call;
    disk.kill_at(-1);
    Disk alone = disk;
    test(alone, returned ? calls : "killed in the last call of " + calls, returned);
    for (Disk::State& state : disk.after_power_loss()) {
      test(state.disk,
           course::words("power lost ", returned ? "after " : "in the last call of ", calls,
                         state.lost.empty() ? "" : "; ", state.lost),
           returned);
    }
  }
}

std::string shown(const std::string& bytes) {
  std::string out = "\"";
  for (const char c : bytes) out += c >= ' ' && c < 127 ? std::string(1, c) : "\\" + std::to_string(c & 255);
  return out + "\"";
}

const std::string kOld = "weights of step 1", kNew = "weights of step 2, longer";

Disk with_old(const std::string& name, const std::string& bytes) {
  Disk disk;
  for (const std::string& file : {name, name + ".tmp"}) {
    disk.create(file);
    disk.write(file, file == name ? bytes : "left by a killed run");
    disk.sync(file);
  }
  disk.sync_folder();
  return disk;
}

// The state of a step, told from others.
std::string state_of(int step) { return course::words("state ", step); }

void expect_saved(const std::string& where, const std::optional<exercise::Saved>& found, int least, int most) {
  const std::string wanted =
      least == most ? course::words("step ", least) : course::words("step ", least, " or ", most);
  expect(found.has_value(), where, ": expected load() to give ", wanted, ", found nothing");
  expect(found->step >= least && found->step <= most, where, ": expected load() to give ", wanted, ", found step ",
         found->step);
  expect(found->state == state_of(found->step), where, ": expected load() to give ", shown(state_of(found->step)),
         ", found ", shown(found->state));
}

}  // namespace

int main() {
  course::Checks check;
  check("checksum: CRC-32", "r is unsigned, and so is each byte", [] {
    const std::pair<const char*, uint32_t> known[] = {
        {"", 0}, {"a", 0xe8b7be43}, {"123456789", 0xcbf43926}, {"\xff\x80", 0x3f456cad}};
    for (const auto& [bytes, value] : known)
      expect(exercise::checksum(bytes) == value, "checksum of ", shown(bytes), ": expected ", value, ", found ",
             exercise::checksum(bytes));
  });
  check("pack and unpack", "the size and the checksum before the state", [] {
    for (const std::string& state : {kOld, std::string(), std::string(5, '\0')}) {
      course::hint(nullptr);
      const std::string file = exercise::pack(state);
      expect(exercise::unpack(file) == state, "expected unpack(pack(", shown(state), ")) to be the same");
      course::hint("compare the size of the file with the one that it names; is the header there at all?");
      for (size_t size = 0; size < file.size(); ++size)
        expect(!exercise::unpack(file.substr(0, size)), "pack(", shown(state), ") cut off after ", size, " of ",
               file.size(), " bytes: expected nullopt");
      expect(!exercise::unpack(file + "x"), "pack(", shown(state), ") and one more byte: expected nullopt");
      course::hint("compare the checksum; every byte of the header has to matter, too");
      for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
        std::string other = file;
        other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
        expect(!exercise::unpack(other), "pack(", shown(state), ") with bit ", bit % 8, " of byte ", bit / 8,
               " changed: expected nullopt");
      }
      course::hint("the checksum of no bytes is 0: begin the file with something that is not");
      expect(!exercise::unpack(std::string(file.size(), '\0')), file.size(), " zeros: expected nullopt");
    }
  });
  check("replace: the old or the new bytes", "which call makes the bytes safe, and which the name?", [] {
    at_every_call(
        with_old("weights", kOld), [](Disk& disk) { exercise::replace(disk, "weights", kNew); },
        [](const Disk& disk, const std::string& where, bool returned) {
          for (const std::string& name : disk.list())
            if (name == "weights") {
              const std::string& found = disk.read(name);
              expect(found == kNew || (!returned && found == kOld), where, ": expected weights to be ",
                     returned ? "" : shown(kOld) + " or ", shown(kNew), ", found ", shown(found));
              return;
            }
          expect(false, where, ": expected the file weights, found none");
        });
  });
  check("load: the newest whole checkpoint",
        "the newest is the one of the largest step_of(name); nullopt where no name has one", [] {
          Disk disk;
          expect(!exercise::load(disk), "an empty folder: expected nullopt");
          for (const int step : {9, 10, 11, 100}) {
            exercise::replace(disk, exercise::name_of(step), exercise::pack(state_of(step)));
            expect_saved("steps 9 to " + std::to_string(step), exercise::load(disk), step, step);
          }
          course::hint("step_of() is -1 for what is no checkpoint");
          exercise::replace(disk, exercise::name_of(200) + ".tmp", exercise::pack("unfinished"));
          expect_saved("steps 9, 10, 11, 100 and a step-00000200.tmp", exercise::load(disk), 100, 100);
          course::hint("where unpack() takes the newest for damaged, the one before it is the newest");
          disk.damage(exercise::name_of(100), exercise::pack(state_of(100)).size() - 1);
          expect_saved("steps 9, 10, 11, and 100 with a bit of its state changed", exercise::load(disk), 11, 11);
        });
  check("save: no kill or power loss takes the state away", "remove old ones only when the new one is safe", [] {
    for (const int keep : {1, 2}) {
      at_every_call(
          with_old(exercise::name_of(1), exercise::pack(state_of(1))),
          [&](Disk& disk) { exercise::save(disk, 2, state_of(2), keep); },
          [](const Disk& disk, const std::string& where, bool returned) {
            expect_saved(where, exercise::load(disk), returned ? 2 : 1, 2);
          });
    }
  });
  check("save: the newest whole ones stay", "remove all but the newest `keep`, temporaries too", [] {
    Disk disk = with_old(exercise::name_of(1), exercise::pack(state_of(1)));
    const auto expect_files = [&](const std::string& after, const std::vector<int>& steps) {
      std::string expected, found;
      for (const int step : steps) expected += " " + exercise::name_of(step);
      for (const std::string& name : disk.list()) found += " " + name;
      expect(found == expected, after, ": expected the files", expected, ", found", found);
    };
    for (const int step : {2, 3}) exercise::save(disk, step, state_of(step), 2);
    expect_files("steps 1, 2, 3 with keep = 2", {2, 3});
    course::hint("a damaged one does not count as kept, and goes");
    disk.damage(exercise::name_of(3), exercise::pack(state_of(3)).size() - 1);
    exercise::save(disk, 4, state_of(4), 2);
    expect_files("step 4 with keep = 2, where step 3 is damaged", {2, 4});
    course::hint("`keep` says how many stay");
    exercise::save(disk, 5, state_of(5), 1);
    expect_files("step 5 with keep = 1", {5});
  });
  check("run: killed anywhere, it ends in the same state", "the number in the checkpoint is that of the last step done",
        [] {
          int first = 0;
          const auto step = [&](const std::string& state, int number) {
            if (first == 0) first = number;
            expect(number >= 1 && number <= 5, "expected steps 1 to 5, found step ", number);
            return state + std::to_string(number);
          };
          int published = 0;  // the newest checkpoint at the kill
          std::set<int> all;  // of these
          at_every_call(
              Disk(),
              [&](Disk& disk) {
                const std::string end = exercise::run(disk, "0", 5, 2, step);
                expect(end == "012345", "run() without a kill: expected \"012345\", found ", shown(end));
              },
              [&](Disk& disk, const std::string& where, bool returned) {
                const std::optional<exercise::Saved> saved = exercise::load(disk);
                published = saved ? saved->step : 0;
                all.insert(published);
                expect(!returned || published == 5, where, ": expected a checkpoint of step 5, found ", published);
                first = 0;
                const std::string end = exercise::run(disk, "0", 5, 2, step);
                expect(end == "012345", where, "; run() again: expected \"012345\", found ", shown(end));
                expect(first == 0 ? published == 5 : first == published + 1, where, "; run() again from step ",
                       published, ": expected it to begin with step ", published + 1, ", found ", first);
              });
          course::hint("save() where number is a multiple of `every`, and after the last step");
          std::string found;
          for (const int number : all) found += number > 0 ? course::words(" ", number) : "";
          expect(found == " 2 4 5", "5 steps, saved every 2: expected checkpoints of the steps 2 4 5, found", found);
        });
  return check.result();
}
