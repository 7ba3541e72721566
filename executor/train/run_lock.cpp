#include "executor/train/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace reckon {
namespace {

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

std::string holder_of(const std::filesystem::path& file) {
  std::string text = read_file_text(file);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "another process" : text;
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "lock";
  file_ = open_file(file, O_RDWR | O_CREAT);
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK)
      throw FileError(fmt::format("{} is in use by {}; wait for it, or choose another directory",
                                  directory.string(), holder_of(file)));
    throw FileError(fmt::format("cannot lock {}: {}", file.string(), std::strerror(errno)));
  }
  // Who holds it is for people; the lock itself is the kernel's.
  const std::string who = this_process() + '\n';
  if (::ftruncate(file_.get(), 0) == 0 &&
      ::pwrite(file_.get(), who.data(), who.size(), 0) == ssize_t(who.size()))
    return;
  throw FileError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
}

}  // namespace reckon
