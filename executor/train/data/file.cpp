#include "executor/train/data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "executor/train/data/source.h"

namespace reckon {

std::int64_t nanoseconds_of(const timespec& time) {
  constexpr std::int64_t kBillion = 1'000'000'000;
  return time.tv_sec * kBillion + time.tv_nsec;
}

DataFile::DataFile(std::filesystem::path path) : path_(std::move(path)) {
  try {
    handle_ = open_file(path_, O_RDONLY);
  } catch (const FileError& e) {
    throw DataError(e.what());
  }
  struct stat status {};
  if (::fstat(handle_.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw DataError(fmt::format("{}: is no file", path_.string()));
  size_ = status.st_size;
  modified_ = nanoseconds_of(status.st_mtim);
}

void DataFile::read(std::int64_t offset, std::span<std::uint8_t> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::int64_t at = offset + static_cast<std::int64_t>(done);
    const ssize_t n = ::pread(handle_.get(), bytes.data() + done, bytes.size() - done, at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) damaged(at, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (n == 0) damaged(at, fmt::format("ends, {} bytes too early", bytes.size() - done));
    done += static_cast<std::size_t>(n);
  }
}

void DataFile::damaged(std::int64_t offset, const std::string& what) const {
  throw DataError(fmt::format("{}: at byte {}: {}", path_.string(), offset, what));
}

}  // namespace reckon
