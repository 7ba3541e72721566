#pragma once
#include <filesystem>

#include "executor/train/durable_file.h"

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

 private:
  FileHandle file_;
};

}  // namespace reckon
