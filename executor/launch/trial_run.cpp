#include "executor/launch/trial_run.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <deque>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Clock = std::chrono::steady_clock;

/// What the lines of a foreign program add up to.
class LogReader {
 public:
  explicit LogReader(const ProgressPattern& pattern) : pattern_(pattern) {}

  void line(std::string_view text) {
    const auto found = pattern_.match(text);
    if (!found || !found->tells_pace()) return;
    ++lines_;
    if (found->loss) loss = found->loss;
    if (found->samples_per_second) samples_per_second = found->samples_per_second;
    if (found->seconds) own_.push_back(found->seconds->count());
    if (found->step) advance(*found->step);
  }

  std::int64_t steps() const { return last_step_ ? *last_step_ - first_step_ : lines_; }
  bool any() const { return lines_ > 0; }
  /// Between lines where steps advanced, by the clock.
  const std::vector<double>& between() const { return between_; }
  const std::vector<double>& own() const { return own_; }
  double whole_by_clock() const {
    return steps() > 0 ? Seconds{last_ - first_}.count() / double(steps()) : 0;
  }

  std::optional<double> loss, samples_per_second;

 private:
  void advance(std::int64_t step) {
    const auto now = Clock::now();
    if (!last_step_) {
      first_step_ = step;
      first_ = now;
    } else if (step > *last_step_) {
      between_.push_back(Seconds{now - last_}.count() / double(step - *last_step_));
    } else {
      return;  // the same step again; an epoch that counts anew tells nothing
    }
    last_step_ = step;
    last_ = now;
  }

  const ProgressPattern& pattern_;
  std::int64_t lines_ = 0, first_step_ = 0;
  std::optional<std::int64_t> last_step_;
  Clock::time_point first_{}, last_{};
  std::vector<double> between_, own_;
};

/// The last lines of a program, for who asks why.
class Tail {
 public:
  void line(std::string_view text) {
    constexpr std::size_t kLines = 8, kWidth = 200;
    lines_.emplace_back(text.substr(0, kWidth));
    if (lines_.size() > kLines) lines_.pop_front();
  }
  std::string text() const {
    std::string out;
    for (const std::string& line : lines_) out += "\n  | " + line;
    return out;
  }

 private:
  std::deque<std::string> lines_;
};

TrialSample sample_of(const LogReader& log) {
  TrialSample s;
  s.steps = log.steps();
  s.loss = log.loss;
  s.samples_per_second = log.samples_per_second;
  const bool own = !log.own().empty();
  s.seconds = own ? log.own() : log.between();
  s.clock = own ? "the program's own clock" : "the time between its lines";
  if (!own || log.between().empty()) return s;
  constexpr double kDisagree = 0.2;
  double said = 0;
  for (const double v : s.seconds) said += v / double(s.seconds.size());
  if (std::abs(log.whole_by_clock() / said - 1) > kDisagree)
    s.warnings.push_back(fmt::format(
        "the program says {} a step, the clock between its lines {}: does it print in "
        "blocks, or leave out what it waits for?",
        format_duration(Seconds{said}), format_duration(Seconds{log.whole_by_clock()})));
  return s;
}

}  // namespace

TrialSample run_trial(const TrialOptions& options, const std::function<void(std::int64_t)>& on_step,
                      const std::function<StopRequest()>& stop) {
  const ProgressPattern pattern = options.pattern.value_or(ProgressPattern());
  LogReader log(pattern);
  Tail tail;
  TrialSample ours;
  ours.clock = "the program's own clock";
  bool enough = false, late = false, asked = false;
  const auto count = [&](std::int64_t steps) {
    enough = enough || steps >= options.steps;
    if (on_step) on_step(steps);
  };
  GangEvents events;
  events.output = [&](int, std::string_view line) {
    tail.line(line);
    if (!options.pattern || enough) return;
    log.line(line);
    count(log.steps());
  };
  events.progress = [&](int, const ProgressReport& r) {
    if (r.phase != ProgressPhase::done || enough) return;
    ours.seconds.push_back(r.seconds.count());
    ours.loss = r.loss;
    count(++ours.steps);
  };
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(options.timeout);
  GangOptions gang;
  gang.members = {options.process};
  gang.notice = options.notice;
  const GangEnd end = run_gang(std::move(gang), events, [&] {
    asked = asked || (stop && stop() != StopRequest::none);
    late = late || (!enough && Clock::now() > until);
    return enough || late || asked ? StopRequest::graceful : StopRequest::none;
  });
  TrialSample sample = options.pattern ? sample_of(log) : std::move(ours);
  if (asked) throw TrialError("the trial was stopped");
  if (enough) return sample;
  if (late)
    throw TrialError(fmt::format("after {} only {} of {} steps were done{}",
                                 format_duration(options.timeout), sample.steps, options.steps,
                                 tail.text()));
  if (end.code != 0) throw TrialError(fmt::format("{}{}", end.reason, tail.text()));
  if (options.pattern && !log.any())
    throw TrialError("the program ended without printing a line of progress" + tail.text());
  return sample;  // it had fewer steps to do
}

}  // namespace reckon
