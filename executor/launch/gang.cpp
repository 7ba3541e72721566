#include "executor/launch/gang.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <tuple>

#include "executor/comm/errors.h"
#include "executor/train/stop_signal.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Clock = std::chrono::steady_clock;
using Watched = WatchedProcess;

class Gang {
 public:
  Gang(const GangOptions& options, const GangEvents& events) : options_(options), events_(events) {
    members_ = options_.running;
    for (const ProcessSpec& spec : options_.members)
      members_.push_back(std::make_shared<Watched>(spec));
  }

  GangEnd run(const std::function<StopRequest()>& stop) {
    while (!all_ended()) {
      wait();
      read_pipes();
      collect_ends();
      obey(stop ? stop() : StopRequest::none);
      look_for_silence();
      look_for_hang();
      dismiss();
      if (kill_at_ && Clock::now() >= *kill_at_) signal_all(SIGKILL);
      if (events_.tick) events_.tick();
    }
    read_pipes();
    wait_for_remains();
    return result();
  }

 private:
  /// Children of members hold the lock of the run that they inherited: until they are gone the run
  /// is in use. They are killed already; where nobody reaps them their number stays for ever.
  void wait_for_remains() const {
    const auto until = Clock::now() + std::chrono::seconds(1);
    const auto remains = [](const auto& m) { return m->process.has_remains(); };
    while (Clock::now() < until && std::any_of(members_.begin(), members_.end(), remains))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  bool all_ended() const {
    return std::ranges::all_of(members_,
                               [&](const auto& m) { return m->end || (has_left(*m) && !asked_); });
  }

  bool has_left(const Watched& m) const { return options_.stays && m.has_left(options_.attempt); }

  /// Until something happens, at most a tenth of a second.
  void wait() {
    constexpr int kTickMilliseconds = 100;
    std::vector<pollfd> polled;
    const auto add = [&](const std::vector<std::shared_ptr<Watched>>& processes) {
      for (const auto& m : processes) {
        if (m->output_open) polled.push_back({m->process.output(), POLLIN, 0});
        if (m->progress_open) polled.push_back({m->process.progress(), POLLIN, 0});
        if (!m->end && m->process.handle() >= 0) polled.push_back({m->process.handle(), POLLIN, 0});
      }
    };
    add(members_);
    add(options_.beside);
    ::poll(polled.data(), polled.size(), kTickMilliseconds);
  }

  void read_pipes() {
    for (std::size_t k = 0; k < members_.size() + options_.beside.size(); ++k) {
      const bool beside = k >= members_.size();
      Watched& m = beside ? *options_.beside[k - members_.size()] : *members_[k];
      m.read(
          [&](std::string_view line) {
            if (events_.output) events_.output(int(k), line);
          },
          [&](const ProgressReport& report) {
            if (!beside && has_left(m)) on_left(int(k), report.told);
            if (events_.progress) events_.progress(int(k), report);
          });
    }
  }

  /// It waits for the next start: because it was told to, or because its peers are lost.
  void on_left(int member, bool told) {
    regroups_ = regroups_ || told;
    if (told || regroups_ || culprit_) return;
    culprit_ = member;
    culprit_is_victim_ = true;
    kill_within(options_.grace);
  }

  void collect_ends() {
    for (std::size_t k = 0; k < members_.size(); ++k) {
      Watched& m = *members_[k];
      const bool left = has_left(m);
      if (m.end || !m.look_for_end() || left) continue;
      if (first_ended_)
        m.end = ProcessEnd{};
      else if (!m.end->good())
        on_failure(int(k));
      else if (k == 0 && options_.ends_with_first && !culprit_ && !asked_)
        first_ended_ = Clock::now();
    }
    for (const auto& m : options_.beside) m->look_for_end();
  }

  /// The job is done; who is left waits for somebody who is gone.
  void dismiss() {
    if (!first_ended_ || dismissed_ || Clock::now() - *first_ended_ < options_.grace) return;
    dismissed_ = true;
    signal_all(SIGTERM);
    kill_within(options_.notice);
  }

  /// The first that fails is to blame, unless it only lost another that is found dead as well.
  void on_failure(int member) {
    const ProcessEnd& end = *members_[std::size_t(member)]->end;
    if (options_.foreign) return on_foreign_failure(member);
    const bool victim = end.code == kExitLostPeer || killed_by_us_;
    if (!culprit_ || (culprit_is_victim_ && !victim)) {
      culprit_ = member;
      culprit_is_victim_ = victim;
    }
    const bool stopping = end.code == kExitStoppedOnRequest;
    // Who stops before the ranks have met leaves nothing to be saved.
    const bool nothing_yet = asked_ && !options_.stays && !begun();
    kill_within(stopping  ? (nothing_yet ? kGraceOfStart : options_.notice)
                : begun() ? options_.grace
                          : std::min(options_.grace, kGraceOfStart));
  }

  void on_foreign_failure(int member) {
    if (culprit_) return;
    culprit_ = member;
    if (!asked_) signal_all(SIGTERM);
    kill_within(options_.grace);
  }

  /// Does anybody do more than start? Who starts has nothing to save, and may wait for the lost one
  /// for as long as a start may take.
  bool begun() const {
    return std::ranges::any_of(members_, [](const auto& m) {
      return m->last && m->last->phase > ProgressPhase::starting;
    });
  }
  static constexpr Seconds kGraceOfStart{0.5};

  void obey(StopRequest request) {
    if (request != StopRequest::none && !asked_) {
      asked_ = true;
      own_ = request == StopRequest::own;
      const bool longer = own_ && options_.own_notice;
      notice_ = longer ? std::max(options_.notice, options_.own_notice()) : options_.notice;
      signal_all(SIGTERM);
      kill_within(notice_);
    }
    if (own_ && request > StopRequest::own) {
      own_ = false;
      notice_ = options_.notice;
      kill_within(notice_);
    }
    if (request == StopRequest::at_once) {
      at_once_ = true;
      kill_within(Seconds{0});
    }
  }

  void kill_within(Seconds time) {
    const Clock::time_point at = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
    if (!kill_at_ || at < *kill_at_) kill_at_ = at;
  }

  void signal_all(int number) {
    killed_by_us_ = killed_by_us_ || number == SIGKILL;
    for (const auto& m : members_)
      if (!m->end && (number != SIGKILL || asked_ || !has_left(*m))) m->process.signal(number);
    if (number == SIGTERM && asked_)
      for (const auto& m : options_.beside) m->process.signal(number);
  }

  static std::tuple<std::int64_t, int, int> distance(const Watched& m) {
    const int stopped = state_of_process(m.process.id()) == 'T' ? 0 : 1;
    if (!m.last) return {-1, 0, stopped};
    return {m.last->step, int(m.last->phase), stopped};
  }

  bool watched(std::size_t k) const {
    const Watched& m = *members_[k];
    return !m.end && m.reports && !has_left(m);
  }

  static bool is_opening(const Watched& m) {
    return m.last && m.last->phase == ProgressPhase::opening;
  }
  static bool is_at_start(const Watched& m) {
    return is_opening(m) || (m.last && m.last->phase == ProgressPhase::starting);
  }

  static bool takes_its_time(const Watched& m) {
    return !m.last || is_at_start(m) || m.last->phase == ProgressPhase::restoring ||
           m.last->phase == ProgressPhase::evaluating || m.last->phase == ProgressPhase::saving;
  }

  Seconds limit_of(const Watched& m) const {
    if (!m.last) return options_.start_deadline;
    if (options_.progress_deadline == Seconds{0} || !takes_its_time(m))
      return options_.progress_deadline;
    return std::max(options_.progress_deadline, options_.start_deadline);
  }

  bool silent(const Watched& m, Clock::time_point now) const {
    const Seconds limit = limit_of(m);
    return limit.count() > 0 && now - m.heard > limit;
  }

  /// While one takes its time in a long phase, what those ahead of it wait is not their silence; of
  /// one that opens its data also those that wait to meet it.
  void forgive_waiting(Clock::time_point now) {
    for (std::size_t k = 0; k < members_.size(); ++k) {
      const Watched& long_one = *members_[k];
      if (!watched(k) || !takes_its_time(long_one) || silent(long_one, now)) continue;
      for (const auto& m : members_) {
        const bool meets = is_opening(long_one) && !is_opening(*m) && is_at_start(*m);
        if ((meets || !takes_its_time(*m)) && distance(*m) >= distance(long_one)) m->heard = now;
      }
    }
  }

  /// One that does not report, and is stopped: the others wait for it.
  std::optional<int> stopped_server() const {
    for (std::size_t k = 0; k < members_.size(); ++k)
      if (!members_[k]->end && !members_[k]->reports &&
          state_of_process(members_[k]->process.id()) == 'T')
        return int(k);
    return std::nullopt;
  }

  /// In lockstep all wait for the one that hangs: it is the one that came least far, and of several
  /// such one that is stopped.
  void look_for_silence() {
    if (culprit_ || asked_) return;
    const Clock::time_point now = Clock::now();
    forgive_waiting(now);
    int found = -1;
    for (std::size_t k = 0; k < members_.size(); ++k) {
      const Watched& m = *members_[k];
      if (!watched(k) || !silent(m, now)) continue;
      if (found < 0 || distance(m) < distance(*members_[std::size_t(found)])) found = int(k);
    }
    if (found < 0) return;
    culprit_ = stopped_server().value_or(found);
    found = *culprit_;
    hung_ = true;
    members_[std::size_t(found)]->process.signal(SIGKILL);
    kill_within(options_.grace);
  }

  void look_for_hang() {
    if (culprit_ || asked_ || first_ended_ || hung_ || !options_.hangs) return;
    hang_ = options_.hangs();
    if (hang_.empty()) return;
    hung_ = true;
    signal_all(SIGTERM);
    kill_within(options_.grace);
  }

  /// As it ended; of one that waits for the next start as if it had.
  static ProcessEnd end_of(const Watched& m) {
    return m.end.value_or(ProcessEnd{.code = kExitLostPeer, .signal = 0});
  }

  std::string reason() const {
    if (!culprit_) return "";
    const Watched& m = *members_[std::size_t(*culprit_)];
    if (!m.end) return fmt::format("{} lost the others", m.name);
    if (at_once_ && m.end->signal == SIGKILL && killed_by_us_)
      return "killed before it had saved, as it was asked to end at once";
    if (asked_ && m.end->signal == SIGKILL && killed_by_us_)
      return fmt::format("{} did not stop within {}", m.name, format_duration(notice_));
    if (!hung_) return m.name + ' ' + to_text(*m.end);
    if (!m.reports)
      return fmt::format("{} stands still: no progress of the others for {}", m.name,
                         format_duration(options_.progress_deadline));
    if (!m.last)
      return fmt::format("{} did not say anything within {}", m.name,
                         format_duration(options_.start_deadline));
    if (is_opening(m))
      return fmt::format("{} hung while it opened its data: no progress for {}", m.name,
                         format_duration(limit_of(m)));
    return fmt::format("{} hung in step {} ({}): no progress for {}", m.name, m.last->step,
                       to_text(m.last->phase), format_duration(limit_of(m)));
  }

  GangEnd result() const {
    GangEnd r;
    for (const auto& m : members_) r.ends.push_back(end_of(*m));
    r.asked = asked_;
    r.hung = hung_;
    r.regroups = regroups_ && !culprit_ && !asked_;
    // Who is asked before it catches the signal ends by it. Who waits for that one in its start
    // loses it, or is killed with nothing to save.
    const bool in_start = !begun();
    const bool stopped_well =
        asked_ && std::all_of(r.ends.begin(), r.ends.end(), [&](const auto& e) {
          return e.good() || e.code == kExitStoppedOnRequest || e.signal == SIGTERM ||
                 (in_start && (e.code == kExitLostPeer || e.signal == SIGKILL));
        });
    if (stopped_well) {
      const bool finished =
          std::all_of(r.ends.begin(), r.ends.end(), [](const auto& e) { return e.good(); });
      r.code = finished ? 0 : kExitStoppedOnRequest;
      r.reason = finished ? "" : "stopped on request";
      return r;
    }
    if (!hang_.empty() && !asked_) {  // whatever a program makes of its SIGTERM
      r.reason = hang_;
      r.code = 128 + SIGKILL;
      return r;
    }
    r.asked = asked_ && !own_;
    r.culprit = culprit_;
    r.reason = reason();
    if (culprit_) {
      const ProcessEnd& end = r.ends[std::size_t(*culprit_)];
      r.code = end.signal != 0 ? 128 + end.signal : end.code;
      r.last_words = members_[std::size_t(*culprit_)]->last_words;
    }
    return r;
  }

  const GangOptions& options_;
  const GangEvents& events_;
  std::vector<std::shared_ptr<Watched>> members_;
  std::optional<int> culprit_;
  std::optional<Clock::time_point> kill_at_, first_ended_;
  std::string hang_;  // GangOptions::hangs
  Seconds notice_{};  // of the request that came
  bool own_ = false;  // it was StopRequest::own
  bool dismissed_ = false, culprit_is_victim_ = false, hung_ = false, asked_ = false,
       at_once_ = false, killed_by_us_ = false, regroups_ = false;
};

}  // namespace

Seconds time_for_own_stop(Seconds step, Seconds save) {
  constexpr Seconds kLeast{60};
  constexpr double kSlower = 3;
  return kLeast + kSlower * (step + save);
}

StopRequest requested_by_signals() {
  const int requests = stop_requests();
  return requests == 0   ? StopRequest::none
         : requests == 1 ? StopRequest::graceful
                         : StopRequest::at_once;
}

GangEnd run_gang(GangOptions options, const GangEvents& events,
                 const std::function<StopRequest()>& stop) {
  Gang gang(options, events);
  options.rendezvous.close();
  return gang.run(stop);
}

}  // namespace reckon
