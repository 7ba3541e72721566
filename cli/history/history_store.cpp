#include "cli/history/history_store.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <system_error>

#include "cli/output.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

/// Throws std::system_error.
class LockedFile {
 public:
  explicit LockedFile(const fs::path& file)
      : fd_(::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {
    if (fd_ < 0 || ::flock(fd_, LOCK_EX) != 0) {
      const int error = errno;
      if (fd_ >= 0) ::close(fd_);
      throw std::system_error(error, std::generic_category(), file.string());
    }
  }
  ~LockedFile() { ::close(fd_); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  void append(std::string_view text) const {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size()))
      throw std::system_error(written < 0 ? errno : ENOSPC, std::generic_category(), "history");
  }

 private:
  int fd_;
};

/// The newer half of the lines.
std::string newer_half(const std::string& text) {
  const std::size_t cut = text.find('\n', text.size() / 2);
  return cut == std::string::npos ? "" : text.substr(cut + 1);
}

}  // namespace

std::optional<fs::path> data_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value != nullptr ? value : "");
  };
  if (variable("RECKON_HISTORY") == "off") return std::nullopt;
  // The specification: a relative path is to be ignored.
  if (const fs::path data = variable("XDG_DATA_HOME"); data.is_absolute()) return data / "reckon";
  if (const fs::path home = variable("HOME"); home.is_absolute())
    return home / ".local" / "share" / "reckon";
  return std::nullopt;
}

std::optional<fs::path> history_file() {
  const auto directory = data_directory();
  if (!directory) return std::nullopt;
  return *directory / "history.jsonl";
}

void keep(const HistoryRecord& record, std::uintmax_t most) {
  const auto file = history_file();
  if (!file) return;
  try {
    fs::create_directories(file->parent_path());
    // A lock of its own: the history itself may be replaced while somebody waits for it.
    const LockedFile lock(file->parent_path() / "history.lock");
    if (fs::exists(*file) && fs::file_size(*file) > most)
      write_file(*file, newer_half(read_text(*file)));
    LockedFile(*file).append(to_line(record));
  } catch (const std::exception& error) {
    print_error(fmt::format("reckon: warning: not kept in the history: {}\n", error.what()));
  }
}

std::vector<OwnRun> runs_kept() {
  const auto file = history_file();
  std::error_code none;
  if (!file || !fs::exists(*file, none)) return {};
  std::vector<OwnRun> runs;
  for (const HistoryRecord& record : parse_history(read_text(*file)).records)
    if (record.own) runs.push_back(*record.own);
  return runs;
}

std::string utc_now() {
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

}  // namespace reckon::cli
