#include "executor/train/records/measurement_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

namespace reckon {
namespace {

constexpr std::chrono::seconds kBetweenSyncs{10};
constexpr std::chrono::milliseconds kPatience{1000};

[[noreturn]] void fail(const char* what, const std::filesystem::path& file) {
  throw FileError(fmt::format("cannot {} {}: {}", what, file.string(), std::strerror(errno)));
}

/// flock(2) for one append; other writers are processes with an open file of their own. One that
/// was stopped in the middle of its append (a hung worker) keeps the lock for as long: it is waited
/// for with `patience`, and then the others write without it.
class Exclusive {
 public:
  Exclusive(int descriptor, const std::filesystem::path& file, std::chrono::milliseconds patience)
      : descriptor_(descriptor) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + patience;
    for (int tries = 0;; ++tries) {
      held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
      if (held_) return;
      if (errno != EINTR && errno != EWOULDBLOCK) fail("lock", file);
      if (Clock::now() > until) return;
      if (tries < 20)
        std::this_thread::yield();  // an append takes some microseconds
      else
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  ~Exclusive() {
    if (held_) ::flock(descriptor_, LOCK_UN);
  }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;
  bool held() const { return held_; }

 private:
  int descriptor_;
  bool held_ = false;
};

off_t size_of(int descriptor, const std::filesystem::path& file) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0) fail("read", file);
  return about.st_size;
}

/// Where the last whole line ends.
off_t end_of_lines(int descriptor, off_t size, const std::filesystem::path& file) {
  std::array<char, 4096> part{};
  while (size > 0) {
    const off_t begin = std::max<off_t>(0, size - off_t(part.size()));
    const ssize_t n = ::pread(descriptor, part.data(), std::size_t(size - begin), begin);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("read", file);
    for (ssize_t k = n; k > 0; --k)
      if (part[std::size_t(k - 1)] == '\n') return begin + k;
    size = begin;
  }
  return 0;
}

bool needs_sync(const MeasurementRecord& record) {
  return !std::holds_alternative<StepRecord>(record) && !std::holds_alternative<Span>(record);
}

}  // namespace

MeasurementLog::MeasurementLog(std::filesystem::path file)
    : path_(std::move(file)), synced_(std::chrono::steady_clock::now()) {
  const bool fresh = !std::filesystem::exists(path_);
  file_ = open_file(path_, O_RDWR | O_CREAT | O_APPEND);
  if (fresh) flush_directory(path_.parent_path());
  const Exclusive exclusive(file_.get(), path_, kPatience);
  other_hangs_ = !exclusive.held();
  if (exclusive.held()) cut_torn_line();
}

void MeasurementLog::cut_torn_line() {
  const off_t size = size_of(file_.get(), path_);
  if (size == 0) return;
  char last = 0;
  if (::pread(file_.get(), &last, 1, size - 1) == 1 && last == '\n') return;
  const off_t whole = end_of_lines(file_.get(), size, path_);
  if (::ftruncate(file_.get(), whole) != 0) fail("cut off the torn line of", path_);
  torn_bytes_ += std::size_t(size - whole);
}

void MeasurementLog::append(const MeasurementRecord& record) {
  const std::string line = to_line(record);
  {
    const Exclusive exclusive(file_.get(), path_,
                              other_hangs_ ? std::chrono::milliseconds{0} : kPatience);
    other_hangs_ = !exclusive.held();
    if (exclusive.held()) cut_torn_line();
    const off_t before = size_of(file_.get(), path_);
    try {
      write_all(file_.get(), std::as_bytes(std::span(line)), path_);  // at the end: O_APPEND
    } catch (...) {
      // Without the lock there may be lines of others behind it: what is torn is cut off later.
      if (exclusive.held() && ::ftruncate(file_.get(), before) != 0)
        fail("truncate an incomplete line of", path_);
      throw;
    }
  }
  if (needs_sync(record) || std::chrono::steady_clock::now() - synced_ > kBetweenSyncs) sync();
}

void MeasurementLog::sync() {
  if (::fdatasync(file_.get()) != 0) fail("flush", path_);
  synced_ = std::chrono::steady_clock::now();
}

Expected<Measurements> read_measurement_log(const std::filesystem::path& file) {
  return parse_measurements(file.string(), read_file_text(file));
}

std::filesystem::path damaged_lines_of(const std::filesystem::path& file) {
  return file.string() + ".damaged";
}

Expected<Measurements> take_up_measurement_log(const std::filesystem::path& file) {
  const std::string text = read_file_text(file);
  auto read = parse_measurements(file.string(), text);
  if (!read || read->damaged.empty()) return read;
  std::string kept, damaged;
  std::size_t begin = 0;
  for (const DamagedLine& line : read->damaged) {
    const std::string_view bytes = std::string_view(text).substr(line.begin, line.bytes);
    damaged += fmt::format("line {}, {} bytes: {}\n{}\n", line.line, line.bytes,
                           line.why.front().what, bytes);
    kept += std::string_view(text).substr(begin, line.begin - begin);
    for (const std::string& record : line.rescued) kept += record + '\n';
    begin = std::min(line.begin + line.bytes + 1, text.size());  // and its newline
  }
  kept += std::string_view(text).substr(begin);
  const std::filesystem::path beside = damaged_lines_of(file);
  const FileHandle handle = open_file(beside, O_WRONLY | O_CREAT | O_APPEND);
  write_all(handle.get(), std::as_bytes(std::span(damaged)), beside);
  if (::fsync(handle.get()) != 0) fail("flush", beside);
  write_durably(file, kept);
  return read;
}

NextStart next_start(const Measurements& before) {
  NextStart next;
  // A damaged line may have been the `run` of the last attempt, or of all.
  Seconds latest{};
  const auto see = [&](const auto& records) {
    for (const auto& r : records) {
      next.attempt = std::max(next.attempt, r.attempt + 1);
      latest = std::max(latest, r.at);
    }
  };
  see(before.runs), see(before.steps), see(before.checkpoints);
  see(before.interruptions), see(before.ends), see(before.changes);
  see(before.decisions), see(before.evaluations);
  for (const RunRecord& run : before.runs)
    if (const auto clock = RunClock::parse(run.started)) return {next.attempt, *clock};
  const auto passed = std::chrono::duration_cast<RunClock::Time::duration>(latest);
  return {next.attempt, RunClock(next.clock.started() - passed)};
}

}  // namespace reckon
