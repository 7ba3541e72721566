#include "executor/train/records/progress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t begin = line.find_first_not_of(" \r\n");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::size_t length = std::min(line.find_first_of(" \r\n"), line.size());
    words.push_back(line.substr(0, length));
    line.remove_prefix(length);
  }
  return words;
}

constexpr std::string_view kOwnPart = "own=";

}  // namespace

std::string to_line(const ProgressReport& r) {
  if (r.phase == ProgressPhase::waiting)
    return fmt::format("{} waiting {} {}\n", r.step, r.attempt, r.told ? 1 : 0);
  if (r.phase != ProgressPhase::done) return fmt::format("{} {}\n", r.step, to_text(r.phase));
  const bool known = r.loss && std::isfinite(*r.loss);
  return fmt::format("{} done {} {} {}{}{}\n", r.step, r.seconds.count(), r.samples,
                     known ? fmt::format("{}", *r.loss) : "-",
                     r.saved ? fmt::format(" {}", r.saved->count()) : "",
                     r.own ? fmt::format(" {}{}", kOwnPart, r.own->count()) : "");
}

std::optional<ProgressReport> parse_progress(std::string_view line) {
  std::vector<std::string_view> words = split(line);
  if (words.size() < 2) return std::nullopt;
  const auto step = parse_integer(words[0]);
  const auto phase = from_text<ProgressPhase>(words[1]);
  if (!step || !phase) return std::nullopt;
  ProgressReport report{.step = *step, .phase = *phase, .loss = {}};
  if (report.phase == ProgressPhase::waiting) {
    if (words.size() != 4) return std::nullopt;
    const auto attempt = parse_integer(words[2]), told = parse_integer(words[3]);
    if (!attempt || !told) return std::nullopt;
    report.attempt = *attempt;
    report.told = *told != 0;
    return report;
  }
  if (report.phase != ProgressPhase::done)
    return words.size() == 2 ? std::optional(report) : std::nullopt;
  if (words.back().starts_with(kOwnPart)) {
    const auto own = parse_number(words.back().substr(kOwnPart.size()));
    if (!own) return std::nullopt;
    report.own = Seconds{*own};
    words.pop_back();
  }
  if (words.size() != 5 && words.size() != 6) return std::nullopt;
  const auto seconds = parse_number(words[2]);
  const auto samples = parse_integer(words[3]);
  if (!seconds || !samples) return std::nullopt;
  report.seconds = Seconds{*seconds};
  report.samples = *samples;
  if (words.size() == 6) {
    const auto saved = parse_number(words[5]);
    if (!saved) return std::nullopt;
    report.saved = Seconds{*saved};
  }
  if (words[4] == "-") return report;
  const auto loss = parse_number(words[4]);
  if (!loss) return std::nullopt;
  report.loss = *loss;
  return report;
}

ProgressPipe::ProgressPipe() {
  const char* value = std::getenv(kVariable);
  const auto number = value ? parse_integer(value) : parse_integer("");
  if (!number || *number < 3) return;
  const int descriptor = int(*number);
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0) return;
  ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  descriptor_ = descriptor;
}

void ProgressPipe::report(const ProgressReport& report) {
  if (descriptor_ < 0) return;
  const std::string line = to_line(report);
  // Shorter than PIPE_BUF: written whole or not at all.
  if (::write(descriptor_, line.data(), line.size()) < 0 && errno == EPIPE) descriptor_ = -1;
}

}  // namespace reckon
