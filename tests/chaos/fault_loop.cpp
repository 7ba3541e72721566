#include "chaos/fault_loop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <list>
#include <thread>

namespace reckon::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Purpose kGaps{"test_chaos_gaps"}, kStrike{"test_chaos_strike"};
constexpr std::size_t kAtOnce = 2;

struct Active {
  const FaultKind* kind;
  std::unique_ptr<Fault> fault;
  Deadline end;
};

std::vector<FaultKind> kinds_of(const FaultLoopOptions& options) {
  std::vector<FaultKind> kinds = fault_kinds();
  std::erase_if(kinds, [&](const FaultKind& k) { return options.only && k.harm != *options.only; });
  return kinds;
}

class FaultLoop {
 public:
  FaultLoop(Job& job, FaultCount& count, const FaultLoopOptions& options)
      : job_(job),
        count_(count),
        options_(options),
        kinds_(kinds_of(options)),
        gaps_(options.seed, options.round, kGaps, options.kind) {}

  FaultTally run() {
    try {
      const Deadline until = Deadline::after(options_.faults_for);
      Deadline next = Deadline::after(options_.gap * gaps_.exponential());
      while (!until.passed() && !job_.over()) {
        tap_.listen();
        look_after();
        if (!next.passed() || active_.size() >= kAtOnce) continue;
        strike();
        next = Deadline::after(options_.gap * gaps_.exponential());
      }
      end_all();
      see_through(job_, options_.patience, [&] { look_after(); });
    } catch (const std::exception& lost) {
      throw Lost(fmt::format(
          "{}: {}\nfaults: {}\nagain: RECKON_CHAOS_SEED={} RECKON_CHAOS_ROUND={}", job_.name(),
          lost.what(), fmt::join(history_, "; "), options_.seed, options_.round));
    }
    return tally_;
  }

 private:
  /// One look at the job and at what strikes it.
  void look_after() {
    job_.tick();
    for (auto a = active_.begin(); a != active_.end();) {
      a->fault->tick();
      a = a->end.passed() ? end(a) : std::next(a);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }

  /// Whatever happened before, the k-th is always the same.
  void strike() {
    constexpr std::uint32_t kMostStrikes = 1 << 16;
    RandomStream luck(options_.seed, options_.round, kStrike,
                      options_.kind * kMostStrikes + strikes_++);
    const FaultKind& kind = kinds_[std::size_t(luck.uniform() * double(kinds_.size()))];
    const Seconds lasts = kind.longest * luck.uniform();
    if (!kind.impossible.empty()) return;
    ++tally_[kind.name];
    history_.push_back(fmt::format("{:.2f} s {} for {:.2f} s",
                                   Seconds(Clock::now() - begin_).count(), kind.name,
                                   lasts.count()));
    constexpr std::size_t kRemembered = 30;
    if (history_.size() > kRemembered) history_.pop_front();
    count_.begin(kind.harm);
    FaultTarget target{job_, tap_};
    active_.push_back({&kind, kind.begin(target, luck), Deadline::after(lasts)});
  }

  std::list<Active>::iterator end(std::list<Active>::iterator a) {
    const Harm harm = a->kind->harm;
    a->fault.reset();
    count_.end(harm);
    return active_.erase(a);
  }
  void end_all() {
    while (!active_.empty()) end(active_.begin());
  }

  Job& job_;
  FaultCount& count_;
  const FaultLoopOptions options_;
  const std::vector<FaultKind> kinds_;
  WireTap tap_;
  RandomStream gaps_;
  std::list<Active> active_;
  std::uint32_t strikes_ = 0;
  const Clock::time_point begin_ = Clock::now();
  std::deque<std::string> history_;
  FaultTally tally_;
};

std::string setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

FaultTally run_under_faults(Job& job, FaultCount& count, const FaultLoopOptions& options) {
  return FaultLoop(job, count, options).run();
}

void see_through(Job& job, Seconds patience, const std::function<void()>& look_after) {
  job.finish();
  const Deadline until = Deadline::after(patience);
  while (!job.over()) {
    if (until.passed())
      throw Lost(fmt::format("it is not done {} s after the last fault", patience.count()));
    look_after();
  }
  job.check();
}

std::uint64_t chaos_seed(std::uint64_t otherwise) {
  const std::string text = setting("RECKON_CHAOS_SEED");
  return text.empty() ? otherwise : std::stoull(text);
}
std::uint32_t chaos_round(std::uint32_t otherwise) {
  const std::string text = setting("RECKON_CHAOS_ROUND");
  return text.empty() ? otherwise : std::uint32_t(std::stoul(text));
}
Seconds chaos_duration(Seconds otherwise) {
  const std::string text = setting("RECKON_CHAOS_SECONDS");
  return text.empty() ? otherwise : Seconds{std::stod(text)};
}
int chaos_kills(int otherwise) {
  const std::string text = setting("RECKON_CHAOS_KILLS");
  return text.empty() ? otherwise : std::stoi(text);
}
bool chaos_wants(const std::string& name) {
  return name.find(setting("RECKON_CHAOS_ONLY")) != std::string::npos;
}

}  // namespace reckon::test
