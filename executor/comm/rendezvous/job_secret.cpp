#include "executor/comm/rendezvous/job_secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace reckon {

namespace {
constexpr std::size_t kDigits = 2 * sizeof(Key);
constexpr const char* kHowToMake =
    "make one with: (umask 077 && openssl rand -hex 32 > job.secret), and give all processes of "
    "the job --secret-file job.secret";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const char* what, const std::filesystem::path& file) {
  throw SecretError(
      fmt::format("cannot {} the job's secret {}: {}", what, file.string(), std::strerror(errno)));
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// What has no name (a pipe, a file in memory) is this process' own. A group may read: so
/// Kubernetes gives a pod's user its secrets.
void check_permissions(int fd, const std::filesystem::path& file) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) fail("read", file);
  if (!S_ISREG(about.st_mode) || about.st_nlink == 0) return;
  if ((about.st_mode & (S_IRWXO | S_IWGRP)) != 0)
    throw SecretError(fmt::format(
        "the job's secret {} is open to others (mode {:04o}): make another, and keep it at 0600",
        file.string(), about.st_mode & 07777));
}
}  // namespace

JobSecret JobSecret::random() {
  JobSecret secret;
  fill_randomly(secret.key_);
  return secret;
}

JobSecret JobSecret::parse(const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  const std::size_t last = text.find_last_not_of(kBlanks);
  JobSecret secret;
  bool good = first != std::string::npos && last - first + 1 == kDigits;
  for (std::size_t k = 0; good && k < secret.key_.size(); ++k) {
    const int high = digit_of(text[first + 2 * k]), low = digit_of(text[first + 2 * k + 1]);
    good = high >= 0 && low >= 0;
    secret.key_[k] = std::byte(16 * high + low);
  }
  if (!good) throw SecretError(fmt::format("a job's secret is {} hexadecimal digits", kDigits));
  return secret;
}

JobSecret JobSecret::read(const std::filesystem::path& file) {
  const Descriptor in{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (in.get() < 0) fail("read", file);
  check_permissions(in.get(), file);
  std::string text;
  std::array<char, 4096> piece{};
  while (text.size() < piece.size()) {
    const ssize_t got = ::read(in.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", file);
    if (got == 0) break;
    text.append(piece.data(), std::size_t(got));
  }
  try {
    return parse(text);
  } catch (const SecretError& error) {
    throw SecretError(
        fmt::format("{} holds no secret: {}; {}", file.string(), error.what(), kHowToMake));
  }
}

JobSecret JobSecret::of_process(const std::filesystem::path& option) {
  if (!option.empty()) return read(option);
  if (const char* named = std::getenv(kVariable); named != nullptr && *named != '\0')
    return read(named);
  throw SecretError(
      fmt::format("a job of several processes needs a secret: {} (or {}, set to "
                  "that file's path)",
                  kHowToMake, kVariable));
}

std::string JobSecret::text() const {
  std::string text;
  for (const std::byte b : key_) text += fmt::format("{:02x}", unsigned(b));
  return text;
}

JobSecretFile::JobSecretFile(std::filesystem::path path) : path_(std::move(path)) {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) fail("replace", path_);
  const Descriptor out{
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (out.get() < 0) fail("write", path_);
  const std::string text = JobSecret::random().text() + '\n';
  const bool written = ::fchmod(out.get(), 0600) == 0 &&  // whatever the umask takes away
                       ::write(out.get(), text.data(), text.size()) == ssize_t(text.size());
  if (written) return;
  const int error = errno;
  ::unlink(path_.c_str());
  errno = error;
  fail("write", path_);
}

JobSecretFile::~JobSecretFile() { ::unlink(path_.c_str()); }

}  // namespace reckon
