// A disk with one folder that remembers what was synced. It can be killed at a call, and lose power: then unsynced
// bytes and names are there or not, in part, in any order, as POSIX allows.
#pragma once
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace course {

struct Killed {};  // what a call throws at which the program is killed; do not catch it

class Disk {
 public:
  // What a program calls. A missing file is an error.
  void create(const std::string& name) {  // an empty file; empties the one that is there
    call("create(" + name + ")", [&] {
      if (names_.count(name)) {
        file(name).bytes.clear(), file(name).synced = false;
      } else {
        files_.push_back({});
        set(name, static_cast<int>(files_.size()) - 1, "create(" + name + ")");
      }
    });
  }
  void write(const std::string& name, const std::string& bytes) {  // appends
    const bool killed = call_ == kill_at_;
    file(name).synced = false;
    file(name).bytes += killed ? bytes.substr(0, bytes.size() / 2) : bytes;
    call("write(" + name + ", " + std::to_string(bytes.size()) + " bytes)", [] {});
  }
  void sync(const std::string& name) {  // the bytes of the file are on the disk; its name may not be
    call("sync(" + name + ")", [&] { file(name).synced = true, file(name).kept = file(name).bytes; });
  }
  void rename(const std::string& from, const std::string& to) {  // replaces the file `to`, if there is one
    const int moved = names_.count(from) ? names_.at(from) : (file(from), 0);
    call("rename(" + from + ", " + to + ")", [&] {
      pending_.push_back({"rename(" + from + ", " + to + ")", {{from, -1}, {to, moved}}});
      apply(names_, pending_.back());
    });
  }
  void remove(const std::string& name) {
    file(name);
    call("remove(" + name + ")", [&] { set(name, -1, "remove(" + name + ")"); });
  }
  void sync_folder() {  // the names are on the disk
    call("sync_folder()", [&] { kept_names_ = names_, pending_.clear(); });
  }
  std::vector<std::string> list() const {  // all names, in alphabetic order
    std::vector<std::string> out;
    for (const auto& [name, index] : names_) out.push_back(name);
    return out;
  }
  const std::string& read(const std::string& name) const { return const_cast<Disk*>(this)->file(name).bytes; }

  // What the checks call.
  void kill_at(int call) { kill_at_ = call, call_ = 0, history_.clear(); }  // -1: never
  int calls() const { return call_; }
  const std::vector<std::string>& history() const { return history_; }
  void damage(const std::string& name, size_t at) { file(name).bytes.at(at) ^= 4, file(name).kept = file(name).bytes; }

  struct State;
  // Every folder that may be there after a power loss now. Of more than 8 unsynced names, the older are kept.
  std::vector<State> after_power_loss() const;

 private:
  struct File {
    std::string bytes, kept;  // as programs see it; as it was last synced
    bool synced = false;
  };
  struct Change {
    std::string call;
    std::vector<std::pair<std::string, int>> names;  // name -> file, -1 for none
  };
  using Names = std::map<std::string, int>;

  template <class Effect>
  void call(const std::string& what, const Effect& effect) {
    history_.push_back(what);
    if (call_++ == kill_at_) throw Killed{};
    effect();
  }
  File& file(const std::string& name) {
    if (!names_.count(name)) throw std::runtime_error("there is no file " + name);
    return files_[static_cast<size_t>(names_.at(name))];
  }
  void set(const std::string& name, int index, const std::string& what) {
    pending_.push_back({what, {{name, index}}});
    apply(names_, pending_.back());
  }
  static void apply(Names& names, const Change& change) {
    for (const auto& [name, index] : change.names)
      if (index < 0)
        names.erase(name);
      else
        names[name] = index;
  }
  static void keep_bytes(std::vector<State>& states, const std::string& name, int index);

  std::vector<File> files_;
  Names names_, kept_names_;
  std::vector<Change> pending_;  // not synced, in the order of the calls
  std::vector<std::string> history_;
  int call_ = 0, kill_at_ = -1;
};

struct Disk::State {
  std::string lost;  // in words
  Disk disk;
};

// Each file with unsynced bytes: those of the last sync, none, half of them, as many zeros, or all.
inline void Disk::keep_bytes(std::vector<State>& states, const std::string& name, int index) {
  std::vector<State> out;
  for (const State& state : states) {
    const File& file = state.disk.files_[static_cast<size_t>(index)];
    const size_t size = file.bytes.size();
    const std::pair<const char*, std::string> ways[] = {{"the bytes of the last sync", file.kept},
                                                        {"half of its bytes", file.bytes.substr(0, size / 2)},
                                                        {"zeros in place of its bytes", std::string(size, '\0')},
                                                        {"none of its bytes", ""},
                                                        {"", file.bytes}};
    for (const auto& [what, bytes] : ways) {
      State next = state;
      File& kept = next.disk.files_[static_cast<size_t>(index)];
      kept = {bytes, bytes, true};
      if (*what) next.lost += (next.lost.empty() ? "" : ", ") + name + " has " + what;
      out.push_back(std::move(next));
    }
  }
  states = std::move(out);
}

inline std::vector<Disk::State> Disk::after_power_loss() const {
  std::vector<State> out;
  const size_t fixed = pending_.size() > 8 ? pending_.size() - 8 : 0;
  for (size_t subset = 0; subset < size_t{1} << (pending_.size() - fixed); ++subset) {
    State state;
    state.disk.files_ = files_, state.disk.names_ = kept_names_;
    for (size_t i = 0; i < pending_.size(); ++i) {
      if (i < fixed || subset >> (i - fixed) & 1)
        apply(state.disk.names_, pending_[i]);
      else
        state.lost += (state.lost.empty() ? "the folder does not know of " : ", ") + pending_[i].call;
    }
    state.disk.kept_names_ = state.disk.names_;
    std::vector<State> states{state};
    for (const auto& [name, index] : state.disk.names_)
      if (!files_[static_cast<size_t>(index)].synced) keep_bytes(states, name, index);
    out.insert(out.end(), states.begin(), states.end());
  }
  return out;
}

}  // namespace course
