#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include "chaos/fault_loop.h"
#include "chaos/place.h"
#include "chaos/serving_job.h"
#include "chaos/training_job.h"

// Real jobs under faults at random: processes killed, stopped and slowed, full disks, cut
// connections, strangers. Nothing may be lost (docs/security.md). RECKON_CHAOS_SEED and
// RECKON_CHAOS_ROUND repeat what was drawn; RECKON_CHAOS_SECONDS says for how long.
using namespace reckon;
using namespace reckon::test;

namespace {

constexpr Seconds kBetweenAlike{0.1};  // faults of one kind of harm

enum class Kind : std::uint32_t { ring, synchronous, asynchronous, serving };

/// The jobs of one place, again and again.
class Jobs {
 public:
  explicit Jobs(std::uint64_t seed) : seed_(seed) {
    std::printf("RECKON_CHAOS_SEED=%llu\n", static_cast<unsigned long long>(seed));
    for (const FaultKind& kind : fault_kinds())
      if (!kind.impossible.empty())
        std::printf("SKIPPED fault '%s': %s\n", kind.name, kind.impossible.c_str());
  }

  /// Jobs of that kind, one after the other, until faults have struck for so long; `only` those
  /// that do such harm. Throws Lost. Returns how often the jobs were started again.
  int run(Kind kind, Seconds faults_for, std::optional<Harm> only = std::nullopt) {
    int again = 0;
    prepare(kind);
    const Deadline until = Deadline::after(faults_for);
    do {
      FaultCount count;
      const std::unique_ptr<Job> job = make(kind, count, only);
      const FaultLoopOptions options{.seed = seed_,
                                     .kind = std::uint32_t(kind),
                                     .round = rounds_[std::size_t(kind)]++,
                                     .faults_for = until.left(),
                                     .gap = only ? kBetweenAlike : Seconds{0.4},
                                     .only = only};
      const FaultTally tally = run_under_faults(*job, count, options);
      for (const auto& [name, times] : tally) all_[name] += times;
      ++jobs_;
      if (only == Harm::strangers && job->starts() > 1) std::printf("%s\n", job->said().c_str());
      again += job->starts() - 1;
      std::printf("%s, round %u: %s; %s\n", job->name().c_str(), options.round,
                  text_of(tally).c_str(), job->summary().c_str());
      std::fflush(stdout);
    } while (!until.passed());
    return again;
  }
  std::string summary() const { return fmt::format("{} jobs; {}", jobs_, text_of(all_)); }

 private:
  /// What undisturbed jobs of that kind end with.
  void prepare(Kind kind) {
    if (kind == Kind::serving && !served_) served_ = ServingJob::trained(place_.w);
    if (kind == Kind::serving || trained_.contains(kind)) return;
    trained_[kind] = TrainingJob::undisturbed(place_.w, training(kind));
  }
  static TrainingKind training(Kind kind) {
    return kind == Kind::ring          ? ring_of_workers()
           : kind == Kind::synchronous ? synchronous_servers()
                                       : asynchronous_servers();
  }
  std::unique_ptr<Job> make(Kind kind, const FaultCount& count, std::optional<Harm> only) const {
    if (kind == Kind::serving) return std::make_unique<ServingJob>(place_.w, *served_, count);
    TrainingKind training = Jobs::training(kind);
    // A busy machine may keep a process waiting for two seconds, which no stranger has done.
    if (only == Harm::strangers) training.hang = Seconds{30};
    return std::make_unique<TrainingJob>(place_.w, training, trained_.at(kind), count);
  }
  static std::string text_of(const FaultTally& tally) {
    std::string text;
    for (const auto& [kind, count] : tally)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kind);
    return text.empty() ? "no fault" : text;
  }

  const std::uint64_t seed_;
  ChaosPlace place_;
  std::map<Kind, TrainedResult> trained_;
  std::optional<TrainedModel> served_;
  std::array<std::uint32_t, 4> rounds_{chaos_round(0), chaos_round(0), chaos_round(0),
                                       chaos_round(0)};
  int jobs_ = 0;
  FaultTally all_;
};

void some_seconds_of(Kind kind) {
  Jobs jobs(chaos_seed(15));
  CHECK_NOTHROW(jobs.run(kind, chaos_duration(Seconds{5})));
}

}  // namespace

TEST_CASE("a record that is gone, or another, is found") {
  const Workspace w;
  const std::string file = w.write("records", "one\ntwo\nthr");
  RecordWatch watch(file);
  watch.look();
  w.write("records", "one\ntwo\n");  // what was torn may go
  watch.look();
  watch.look_at_all();
  w.write("records", "one\nTWO\n");
  CHECK_THROWS_AS(watch.look_at_all(), Lost);
  w.write("records", "one\n");
  CHECK_THROWS_AS(watch.look(), Lost);
}

TEST_CASE("under faults at random a ring of workers loses nothing") { some_seconds_of(Kind::ring); }
TEST_CASE("under faults at random synchronous parameter servers lose nothing") {
  some_seconds_of(Kind::synchronous);
}
TEST_CASE("under faults at random asynchronous parameter servers lose nothing") {
  some_seconds_of(Kind::asynchronous);
}
TEST_CASE("under faults at random a server answers rightly or refuses") {
  some_seconds_of(Kind::serving);
}

TEST_CASE("strangers alone end no process of a job") {
  const Kind kind = GENERATE(Kind::ring, Kind::synchronous, Kind::asynchronous, Kind::serving);
  Jobs jobs(chaos_seed(15));
  int again = -1;
  CHECK_NOTHROW(again = jobs.run(kind, chaos_duration(Seconds{3}), Harm::strangers));
  CHECK(again == 0);
}

TEST_CASE("an hour of faults at random over all kinds of jobs: nothing is lost", "[.long]") {
  constexpr Seconds kEach{20};
  Jobs jobs(chaos_seed(std::random_device{}()));
  const Deadline until = Deadline::after(chaos_duration(Seconds{3600}));
  while (!until.passed())
    for (const Kind kind : {Kind::ring, Kind::synchronous, Kind::asynchronous, Kind::serving})
      REQUIRE_NOTHROW(jobs.run(kind, kEach));
  std::printf("%s\n", jobs.summary().c_str());
}
