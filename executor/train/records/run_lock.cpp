#include "executor/train/records/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

namespace reckon {
namespace {

std::string process_text(pid_t process) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", process, host.data());
}

std::string text_of(const std::filesystem::path& file) {
  std::string text = read_file_text(file);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string holder_of(const std::filesystem::path& file) {
  const std::string text = text_of(file);
  return text.empty() ? "another process" : text;
}

/// The open file is still the one of that name: nobody removed it before it was locked.
bool is_in_place(int descriptor, const std::filesystem::path& file) {
  struct stat own {
  }, named{};
  return ::fstat(descriptor, &own) == 0 && ::stat(file.c_str(), &named) == 0 &&
         own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

/// The watcher of the run is dead; its workers, who hold the lock with it, are about to be.
bool is_dying(const std::string& holder) {
  int process = 0;
  if (std::sscanf(holder.c_str(), "process %d on ", &process) != 1 || process <= 0) return false;
  return holder == process_text(process) && ::kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& directory) {
  using std::chrono::milliseconds;
  constexpr milliseconds kNap{20}, kPatience{10'000};
  const std::filesystem::path file = directory / "lock";
  file_ = open_file(file, O_RDWR | O_CREAT);
  milliseconds waited{0};
  for (;;) {
    const bool locked = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
    const int reason = errno;
    if (locked && is_in_place(file_.get(), file)) break;
    if (locked) {
      file_ = open_file(file, O_RDWR | O_CREAT);
      continue;
    }
    if (reason == EINTR) continue;
    if (reason == EWOULDBLOCK && waited < kPatience && is_dying(holder_of(file))) {
      std::this_thread::sleep_for(kNap);
      waited += kNap;
      continue;
    }
    if (reason == EWOULDBLOCK && waited >= kPatience)
      throw FileError(
          fmt::format("{} is in use by what {} has started, which is gone itself; end that, or "
                      "choose another directory",
                      directory.string(), holder_of(file)));
    if (reason == EWOULDBLOCK)
      throw FileError(fmt::format("{} is in use by {}; wait for it, or choose another directory",
                                  directory.string(), holder_of(file)));
    throw FileError(fmt::format("cannot lock {}: {}", file.string(), std::strerror(reason)));
  }
  // Who holds it is for people; the lock itself is the kernel's.
  const std::string who = process_text(::getpid()) + '\n';
  if (::ftruncate(file_.get(), 0) == 0 &&
      ::pwrite(file_.get(), who.data(), who.size(), 0) == ssize_t(who.size()))
    return;
  throw FileError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
}

RunLock::Look RunLock::look(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "lock";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  const FileHandle handle = open_file(file, O_RDONLY);
  Look look{.holder = text_of(file)};
  look.held = ::flock(handle.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  look.dead = !look.held && is_dying(look.holder);
  return look;
}

std::optional<RunLock> RunLock::if_free(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "lock";
  FileHandle handle = open_file(file, O_RDWR | O_CREAT);
  if (::flock(handle.get(), LOCK_EX | LOCK_NB) != 0 || !is_in_place(handle.get(), file))
    return std::nullopt;
  return RunLock(handle.release());
}

void RunLock::remove(const std::filesystem::path& directory) {
  if (::unlink((directory / "lock").c_str()) == 0) flush_directory(directory);
}

}  // namespace reckon
