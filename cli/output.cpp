#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "sim/base/mapped_file.h"
#include "sim/base/text/printable.h"

namespace reckon::cli {
namespace {

long now_ms() {
  using namespace std::chrono;
  return long(duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count());
}

}  // namespace

std::string read_text(const std::filesystem::path& file) { return read_whole(file); }

void write_file(const std::filesystem::path& file, std::string_view text) {
  // Byte by byte for whoever reads it from a pipe.
  if (file == "-" && ::isatty(STDOUT_FILENO) == 0) {
    write_text(STDOUT_FILENO, text, "standard output");
    return;
  }
  if (file == "-") return print(text);
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored)) {
    // A pipe or a device such as /dev/stderr cannot be renamed over.
    const int direct = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (direct < 0)
      throw std::runtime_error(
          fmt::format("cannot write {}: {}", printable(file.string()), std::strerror(errno)));
    write_text(direct, text, file.string());
    ::close(direct);
    return;
  }
  // What a link points to is replaced, not the link.
  const bool link = std::filesystem::is_symlink(file, ignored);
  std::filesystem::path target = link ? std::filesystem::canonical(file, ignored) : file;
  if (target.empty()) target = file;  // a link to what is not there
  const std::string beside = fmt::format("{}.part-{}", target.string(), ::getpid());
  struct stat before {};
  const mode_t mode = ::stat(target.c_str(), &before) == 0 ? before.st_mode & 07777u : 0;
  const int descriptor = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    throw std::runtime_error(
        fmt::format("cannot write {}: {}", printable(file.string()), std::strerror(errno)));
  try {
    write_text(descriptor, text, file.string());
    if (mode != 0) ::fchmod(descriptor, mode);
    if (::close(descriptor) != 0 || std::rename(beside.c_str(), target.c_str()) != 0)
      throw std::runtime_error(
          fmt::format("cannot write {}: {}", printable(file.string()), std::strerror(errno)));
  } catch (...) {
    ::unlink(beside.c_str());
    throw;
  }
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1), begin_ms_(now_ms()) {}

ProgressLine::~ProgressLine() {
  if (shown_) print_control("\r\033[K");
}

std::function<void(double)> ProgressLine::callback() {
  if (!terminal_) return {};
  return [this](double share) { show(fmt::format("simulating {:3.0f} %", 100 * share)); };
}

std::function<void(const std::string&)> ProgressLine::text_callback() {
  if (!terminal_) return {};
  return [this](const std::string& text) { show(text); };
}

void ProgressLine::show(const std::string& text) {
  constexpr long kQuietMs = 2000, kBetweenMs = 100;
  const long now = now_ms();
  if (now - begin_ms_ < kQuietMs || now - last_ms_ < kBetweenMs) return;
  last_ms_ = now;
  shown_ = true;
  print_control("\r" + printable(text) + "\033[K");
  std::fflush(stderr);
}

}  // namespace reckon::cli
