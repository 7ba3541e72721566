#include "executor/kubernetes/pods/pod_log.h"

#include <unistd.h>

#include <array>

namespace reckon::kubernetes {

namespace {

/// What a kubelet answers in place of a log that went with its container.
bool is_of_kubelet(std::string_view line) {
  return line.starts_with("unable to retrieve container logs for ") ||
         line.starts_with("rpc error: code = ");
}

}  // namespace

std::string sortable_time(std::string_view line, std::string_view& rest) {
  constexpr std::string_view kPattern = "0000-00-00T00:00:00";
  constexpr std::size_t kDigits = 9;
  rest = line;
  if (line.size() <= kPattern.size()) return "";
  for (std::size_t k = 0; k < kPattern.size(); ++k) {
    const bool digit = line[k] >= '0' && line[k] <= '9';
    if (kPattern[k] == '0' ? !digit : line[k] != kPattern[k]) return "";
  }
  std::size_t at = kPattern.size();
  std::string fraction;
  if (line[at] == '.')
    for (++at; at < line.size() && line[at] >= '0' && line[at] <= '9'; ++at) fraction += line[at];
  const std::size_t space = line.find(' ', at);  // behind "Z" or an offset
  if (space == std::string_view::npos || fraction.size() > kDigits) return "";
  fraction.resize(kDigits, '0');
  rest = line.substr(space + 1);
  return std::string(line.substr(0, kPattern.size())) + '.' + fraction +
         std::string(line.substr(at, space - at));
}

PodLog::PodLog(const Kubectl& kubectl, std::string pod, OnLine on_line)
    : kubectl_(kubectl), pod_(std::move(pod)), on_line_(std::move(on_line)) {}

void PodLog::connect(bool ended) {
  Words words{"logs", pod_, "--follow", "--timestamps"};
  if (!last_.empty()) {
    words.emplace_back("--since-time");  // whole seconds: what is there twice is left out below
    constexpr std::size_t kSeconds = 19, kNanoseconds = 29;  // 2026-11-22T03:00:00.123456789Z
    words.push_back(last_.substr(0, kSeconds) + last_.substr(kNanoseconds));
  }
  behind_end_ = ended;
  lines_ = LineReader();
  errors_.clear();
  process_ = kubectl_.start(words);
  output_open_ = true;
}

void PodLog::poll(bool ended) {
  if (done_) return;
  if (!process_) {
    if (Clock::now() >= next_) connect(ended);
    return;
  }
  if (output_open_)
    output_open_ =
        lines_.read_from(process_->output(), [this](std::string_view line) { on_line(line); });
  std::array<char, 4096> part{};
  for (ssize_t n; (n = ::read(process_->errors(), part.data(), part.size())) > 0;)
    errors_.append(part.data(), std::size_t(n));
  if (output_open_) return;
  if (const auto end = process_->poll_end()) on_end(*end);
}

void PodLog::reconnect() {
  process_.reset();
  next_ = {};
}

void PodLog::on_line(std::string_view line) {
  std::string_view rest;
  const std::string time = sortable_time(line, rest);
  if (!time.empty()) {
    if (time <= last_) return;
    last_ = time;
    backoff_.reset();
  } else if (is_of_kubelet(line)) {
    return;
  }
  if (!rest.empty()) on_line_(rest);
}

void PodLog::on_end(const ProcessEnd& end) {
  process_.reset();
  const bool gone = failure_of(errors_) == KubectlFailure::missing;
  if (gone || (end.good() && behind_end_)) {
    done_ = true;
    return;
  }
  next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(backoff_.next());
}

}  // namespace reckon::kubernetes
