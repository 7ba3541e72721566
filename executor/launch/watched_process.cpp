#include "executor/launch/watched_process.h"

#include <utility>

namespace reckon {

WatchedProcess::WatchedProcess(const ProcessSpec& spec, FileHandle watcher)
    : name(spec.name), reports(spec.reports), process(spec), orders(std::move(watcher)) {}

void WatchedProcess::read(const std::function<void(std::string_view line)>& output,
                          const std::function<void(const ProgressReport&)>& progress) {
  if (output_open)
    output_open = output_lines_.read_from(process.output(), [&](std::string_view line) {
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) last_words = line;
      output(line);
    });
  if (progress_open)
    progress_open = progress_lines_.read_from(process.progress(), [&](std::string_view line) {
      const auto report = parse_progress(line);
      if (!report) return;
      last = report;
      heard = Clock::now();
      progress(*report);
    });
}

const std::optional<ProcessEnd>& WatchedProcess::look_for_end() {
  if (!end) end = process.poll_end();
  return end;
}

void WatchedProcess::seat(int own, std::string called) {
  rank = own;
  name = std::move(called);
  last.reset();
  heard = Clock::now();
}

}  // namespace reckon
