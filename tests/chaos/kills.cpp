#include "chaos/kills.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include "executor/comm/socket.h"

namespace reckon::test {
namespace {

constexpr Purpose kKills{"test_chaos_kills"};
constexpr Seconds kLook{0.001};  // between two looks at the job

enum class Whom { rank, node, ranks, launcher, all };
constexpr const char* kNames[] = {"rank", "rank with its node", "several ranks", "reckon run",
                                  "all"};

/// What the k-th kill is, whatever happened before.
struct KillPlan {
  Whom whom;
  bool at_once;     // a while after the kill before it, be the job ready or not
  int saves;        // else: so many saves must have begun since,
  Seconds behind;   // and then this much more
  double which;     // of the ranks, from 0 to 1
  double how_many;  // of them

  KillPlan(RandomStream& luck, bool has_copies) {
    constexpr Seconds kLongestStart{0.8}, kLongestSave{0.012};
    constexpr int kMostSaves = 3;
    const double u = luck.uniform();
    whom = u < 0.35   ? Whom::rank
           : u < 0.5  ? (has_copies ? Whom::node : Whom::rank)
           : u < 0.7  ? Whom::ranks
           : u < 0.85 ? Whom::launcher
                      : Whom::all;
    at_once = luck.uniform() < 0.15;
    saves = 1 + int(luck.uniform() * kMostSaves);
    behind = (at_once ? kLongestStart : kLongestSave) * luck.uniform();
    which = luck.uniform();
    how_many = luck.uniform();
  }
};

/// As its command line says; -1: it has none yet.
int rank_of_process(pid_t id) {
  std::istringstream words(read_all("/proc/" + std::to_string(id) + "/cmdline"));
  for (std::string word; std::getline(words, word, '\0');)
    if (word == "--rank" && std::getline(words, word, '\0')) return std::stoi(word);
  return -1;
}

/// All processes of a job stand still, so that what they have announced does not change while it is
/// looked at and they are killed. Those that are not go on.
class Standstill {
 public:
  explicit Standstill(const Job& job) {
    // First the one that starts others.
    if (const auto first = job.processes(); !first.empty()) stop(first.front());
    const auto there = job.processes();
    if (there.empty()) ids_.clear();  // it ended in between
    for (const pid_t id : there)
      if (std::ranges::count(ids_, id) == 0) stop(id);
  }
  ~Standstill() {
    for (const pid_t id : ids_) ::kill(id, SIGCONT);
  }
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

  const std::vector<pid_t>& all() const { return ids_; }

  /// Until they are gone.
  void kill(const std::vector<pid_t>& victims) {
    constexpr Seconds kPatience{5};
    std::vector<Socket> ends;  // pidfds: readable at the end of the last thread
    for (const pid_t id : victims) ends.emplace_back(int(::syscall(SYS_pidfd_open, id, 0)));
    for (const pid_t id : victims) ::kill(id, SIGKILL);
    std::erase_if(ids_, [&](pid_t id) { return std::ranges::count(victims, id) > 0; });
    for (const Socket& end : ends)
      if (end) (void)wait_readable(end, Deadline::after(kPatience));
  }

 private:
  void stop(pid_t id) {
    constexpr Seconds kPatience{0.2};
    ::kill(id, SIGSTOP);
    ids_.push_back(id);
    const Deadline until = Deadline::after(kPatience);
    while (state_of_process(id) != 'T' && state_of_process(id) != 'Z' && !until.passed())
      std::this_thread::yield();
  }
  std::vector<pid_t> ids_;
};

class KillLoop {
 public:
  KillLoop(TrainingJob& job, FaultCount& count, const KillOptions& options)
      : job_(job), count_(count), options_(options) {}

  KillTally run() {
    try {
      const bool has_copies = job_.kind().nodes && job_.kind().nodes->replicas > 1;
      for (int k = 0; k < options_.kills && !job_.over(); ++k) {
        constexpr std::uint32_t kMostKills = 1 << 16;
        RandomStream luck(options_.seed, options_.round, kKills,
                          options_.kind * kMostKills + std::uint32_t(k));
        const KillPlan plan(luck, has_copies);
        if (wait_for(plan)) strike(plan);
      }
      see_through(job_, options_.patience, [&] { look_after(); });
    } catch (const std::exception& lost) {
      throw Lost(
          fmt::format("{}: {}\nkills: {}\nagain: RECKON_CHAOS_SEED={} RECKON_CHAOS_ROUND={} "
                      "RECKON_CHAOS_ONLY='{}'",
                      job_.name(), lost.what(), fmt::join(history_, "; "), options_.seed,
                      options_.round, job_.name()));
    }
    return tally_;
  }

 private:
  void look_after() {
    job_.tick();
    std::this_thread::sleep_for(kLook);
  }

  /// False: the job is over before.
  bool wait_for(const KillPlan& plan) {
    const Deadline patience = Deadline::after(options_.patience);
    std::int64_t newest = job_.announced().begun();
    for (int saves = 0; !plan.at_once && saves < plan.saves;) {
      look_after();
      if (job_.over()) return false;
      if (patience.passed())
        throw Lost(fmt::format("no save has begun for {} s", options_.patience.count()));
      const std::int64_t now = job_.announced().begun();
      saves += now > newest ? 1 : 0;
      newest = now;
    }
    for (const Deadline until = Deadline::after(plan.behind); !until.passed();)
      if (plan.at_once)
        look_after();
      else
        std::this_thread::sleep_for(kLook / 4);
    job_.tick();
    return !job_.over();
  }

  void strike(const KillPlan& plan) {
    Standstill still(job_);
    if (still.all().empty()) return;  // `reckon run` is to be started again
    const Victims victims = chosen(plan, still.all());
    Announced& announced = job_.announced();
    announced.look();
    const Measurements m = job_.records();
    announced.check(m);
    announced.release();
    if (!plan.at_once && announced.is_saving()) ++tally_.in_save;
    count_.begin(Harm::process);
    still.kill(victims.processes);
    count_.end(Harm::process);
    if (victims.whom == Whom::node) announced.lose_node(*victims.ranks.begin());
    expect_of_memory(m, victims, still.all().size());
    note(victims);
  }

  struct Victims {
    Whom whom;
    std::vector<pid_t> processes;
    std::set<int> ranks;
  };
  /// Of those that are there: it may be `reckon run` alone.
  static Victims chosen(const KillPlan& plan, const std::vector<pid_t>& all) {
    std::vector<pid_t> workers(all.begin() + 1, all.end());
    Victims v{plan.whom, {}, {}};
    if (v.whom == Whom::all) v.processes = all;
    if (v.whom == Whom::launcher || workers.empty()) v = {Whom::launcher, {all.front()}, {}};
    if (!v.processes.empty()) return v;
    const auto count = workers.size();
    const bool several = v.whom == Whom::ranks && count > 1;
    const auto wanted = several ? 2 + std::size_t(plan.how_many * double(count - 1)) : 1;
    std::rotate(workers.begin(), workers.begin() + std::ptrdiff_t(plan.which * double(count)),
                workers.end());
    workers.resize(std::min(wanted, count));
    if (!several && v.whom == Whom::ranks) v.whom = Whom::rank;
    v.processes = workers;
    for (const pid_t id : workers) v.ranks.insert(rank_of_process(id));
    // Before it is a program of its own it has not begun to write.
    if (v.whom == Whom::node && v.ranks.contains(-1)) v.whom = Whom::rank;
    return v;
  }

  /// Where ranks keep the state, those that are left bring it into the next start; unless one of
  /// this start was lost before, which may be the one that was to get it.
  void expect_of_memory(const Measurements& m, const Victims& victims, std::size_t left) {
    const std::int64_t start = m.runs.empty() ? -1 : m.runs.back().attempt;
    const bool first = start > struck_start_;
    struck_start_ = start;
    const bool known = !victims.ranks.empty() && !victims.ranks.contains(-1);
    const std::size_t all = 1 + std::size_t(job_.kind().workers);
    const bool all_are_there = left + victims.processes.size() == all;
    if (job_.kind().keeps_state && first && known && all_are_there)
      job_.announced().holds(m, victims.ranks);
  }

  void note(const Victims& victims) {
    const char* name = kNames[std::size_t(victims.whom)];
    ++tally_.kills;
    ++tally_.struck[name];
    history_.push_back(fmt::format(
        "{:.2f} s {}{}", Seconds(Clock::now() - begin_).count(), name,
        victims.ranks.empty() ? "" : fmt::format(" {}", fmt::join(victims.ranks, ","))));
  }

  using Clock = std::chrono::steady_clock;
  TrainingJob& job_;
  FaultCount& count_;
  const KillOptions options_;
  const Clock::time_point begin_ = Clock::now();
  std::int64_t struck_start_ = -1;
  std::vector<std::string> history_;
  KillTally tally_;
};

}  // namespace

KillTally run_under_kills(TrainingJob& job, FaultCount& count, const KillOptions& options) {
  return KillLoop(job, count, options).run();
}

}  // namespace reckon::test
