#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/train/records/run_lock.h"

// What is whole, damaged or left over in the directory of a run
// (executor/train/records/run_directory.h).
namespace reckon {

/// How a damaged part is put right.
struct RunRepair {
  enum class Kind {
    set_lines_aside,  // of `path`, measurements
    set_aside,        // `path`, a set, becomes PATH.refused
    remove,           // `path`, which nobody needs
    move_back         // `from` becomes `path` again, by a rename
  };
  Kind kind;
  std::filesystem::path path, from;
};

struct RunFinding {
  enum class State { sound, damaged, lost };  // damaged: `repairs` put it right
  std::string name;                           // "measurements", "checkpoint 1200"
  State state = State::sound;
  std::vector<std::string> details;  // at least one: what is there, or each damaged place
  std::string todo;                  // what a repair does, or what the user can; "": nothing
  std::vector<RunRepair> repairs;
};

struct RunCheck {
  std::vector<RunFinding> findings;
  std::optional<std::int64_t> resumes_at;  // step of the newest set that is whole
  bool in_use = false;  // by a process that lives: what it is writing now is not looked at
  std::string holder;   // that process

  bool sound() const;
  bool lost() const;
};

/// It has a plan, measurements or checkpoints of a run.
bool is_run_directory(const std::filesystem::path& directory);

/// Reads every byte of a run's directory that has a checksum and changes nothing. `lock` is what
/// RunLock::look() says. Files that are damaged, missing, cut, or no files at all are findings,
/// never errors. `alive` (may be empty) is called again and again while it gets on.
RunCheck check_run(const std::filesystem::path& directory, const RunLock::Look& lock,
                   const std::function<void()>& alive = {});

/// Does the repairs of a finding, for whoever holds the run's lock. Nothing is deleted that holds a
/// record, a parameter or a setting: it is set aside. Throws FileError, std::filesystem's.
void repair(const RunFinding& finding);

}  // namespace reckon
