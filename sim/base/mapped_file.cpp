#include "sim/base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "sim/base/text/printable.h"

namespace reckon {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& file) : path_(file.string()) {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) fail("cannot be opened");
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return fd_; }
  [[noreturn]] void fail(std::string_view what) const {
    throw std::runtime_error(
        fmt::format("{} {}: {}", printable_file(path_), what, std::strerror(errno)));
  }
  std::string read_all() const {
    std::string all;
    std::array<char, 65536> part;
    for (;;) {
      const ssize_t n = ::read(fd_, part.data(), part.size());
      if (n < 0) fail("cannot be read");
      if (n == 0) return all;
      if (all.size() + std::size_t(n) > kLongestStream)
        throw std::runtime_error(fmt::format("{} does not end: over {} MiB came from it",
                                             printable_file(path_), kLongestStream >> 20U));
      all.append(part.data(), static_cast<std::size_t>(n));
    }
  }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& file) {
  const Descriptor descriptor(file);
  struct stat about {};
  if (::fstat(descriptor.number(), &about) != 0) descriptor.fail("cannot be read");
  const auto size = static_cast<std::size_t>(about.st_size);
  if (S_ISREG(about.st_mode) && size > 0) {
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.number(), 0);
    if (at != MAP_FAILED) {
      mapped_ = at;
      bytes_ = {static_cast<const char*>(at), size};
      return;
    }
  }
  read_ = descriptor.read_all();
  bytes_ = read_;
}

std::string read_whole(const std::filesystem::path& file) { return Descriptor(file).read_all(); }

MappedFile::~MappedFile() {
  if (mapped_ != nullptr) ::munmap(mapped_, bytes_.size());
}

}  // namespace reckon
