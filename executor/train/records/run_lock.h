#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "executor/train/checkpoint/durable_file.h"

namespace reckon {

/// One job at a time in a run directory: flock(2) on DIRECTORY/lock, which the kernel releases when
/// the last process that holds it is gone, however it went. Throws FileError naming who holds it.
/// Where that process is dead already it is its workers that are about to be: they are waited for,
/// 10 s at most.
///
/// The lock belongs to the open file: processes that inherit the descriptor keep it
/// held when the one that took it is killed.
class RunLock {
 public:
  explicit RunLock(const std::filesystem::path& directory);
  /// For a child of the holder: takes over the descriptor that it inherited.
  explicit RunLock(int inherited) : file_(inherited) {}
  int descriptor() const { return file_.get(); }

  /// Whether a process holds it. Nobody waits, nothing is written.
  struct Look {
    bool held = false;
    std::string holder;  // "process 12 on host": who holds it, or held it last; "": nobody ever did
    bool dead = false;   // that process was of this machine, and is gone
  };
  static Look look(const std::filesystem::path& directory);
  /// The lock, without a word of who has it; nullopt: a process holds it.
  static std::optional<RunLock> if_free(const std::filesystem::path& directory);
  /// Removes the file, for whoever holds it. A run that waits for it makes a new one.
  void remove(const std::filesystem::path& directory);

 private:
  FileHandle file_;
};

}  // namespace reckon
