#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <map>
#include <random>

#include "chaos/kills.h"
#include "chaos/place.h"
#include "chaos/save_kinds.h"

// Trainings under each layout and each policy of saves, killed at random: what was announced as
// saved is gone on from, and they end with the bits of an undisturbed run. RECKON_CHAOS_SEED and
// RECKON_CHAOS_ROUND repeat what was drawn, RECKON_CHAOS_ONLY says for which of them,
// RECKON_CHAOS_KILLS how often.
using namespace reckon;
using namespace reckon::test;

namespace {

/// Of one kind of training.
struct KilledTrainings {
  KillTally tally;
  int trainings = 0, starts = 0, restores = 0;
};

std::string text_of_kills(const std::string& name, const KilledTrainings& k) {
  std::string struck;
  for (const auto& [whom, times] : k.tally.struck)
    struck += fmt::format("{}{} {}", struck.empty() ? "" : ", ", times, whom);
  return fmt::format("{}: {} kills ({}), {} within a save; {} trainings, {} starts, {} restores",
                     name, k.tally.kills, struck, k.tally.in_save, k.trainings, k.starts,
                     k.restores);
}

void add_to(KilledTrainings& all, const KillTally& tally, const TrainingJob& job) {
  all.tally.kills += tally.kills;
  all.tally.in_save += tally.in_save;
  for (const auto& [whom, times] : tally.struck) all.tally.struck[whom] += times;
  ++all.trainings;
  all.starts += job.starts();
  all.restores += job.restores();
}

/// Goes round `kinds`, a training each, until so many kills have struck; says what they did.
/// Throws Lost.
KilledTrainings kill_trainings(const std::vector<SaveKind>& kinds, int kills, int at_most_each,
                               std::uint64_t seed) {
  const auto wanted = [](const SaveKind& kind) { return chaos_wants(kind.kind.name); };
  if (std::ranges::none_of(kinds, wanted)) throw Lost("RECKON_CHAOS_ONLY names none of them");
  std::printf("RECKON_CHAOS_SEED=%llu\n", static_cast<unsigned long long>(seed));
  const ChaosPlace place;
  std::map<std::string, TrainedResult> undisturbed;
  std::map<std::string, KilledTrainings> of_kind;
  KilledTrainings all;
  const auto say = [&] {
    for (const auto& [name, k] : of_kind) std::printf("%s\n", text_of_kills(name, k).c_str());
    std::printf("%s\n", text_of_kills("all", all).c_str());
    std::fflush(stdout);
  };
  try {
    for (std::uint32_t round = chaos_round(0); all.tally.kills < kills; ++round)
      for (std::uint32_t k = 0; k < kinds.size() && all.tally.kills < kills; ++k) {
        const auto& [layout, kind] = kinds[k];
        if (!wanted(kinds[k])) continue;
        if (!undisturbed.contains(layout))
          undisturbed[layout] = TrainingJob::undisturbed(place.w, kind);
        FaultCount count;
        TrainingJob job(place.w, kind, undisturbed.at(layout), count);
        const KillTally tally =
            run_under_kills(job, count,
                            {.seed = seed,
                             .kind = k,
                             .round = round,
                             .kills = std::min(at_most_each, kills - all.tally.kills)});
        add_to(of_kind[kind.name], tally, job);
        add_to(all, tally, job);
        std::printf("%d kills, round %u, %s: nothing is lost\n", all.tally.kills, round,
                    kind.name.c_str());
        std::fflush(stdout);
      }
  } catch (const Lost&) {
    say();
    throw;
  }
  say();
  return all;
}

}  // namespace

TEST_CASE("kills at random lose nothing that a training has announced as saved") {
  std::vector<SaveKind> sample;
  for (const SaveKind& kind : save_kinds())
    for (const char* wanted :
         {"ZeRO 3: storage, in place", "pipeline 2: disks", "tensor 2: memory and copies"})
      if (kind.kind.name == wanted) sample.push_back(kind);
  REQUIRE(sample.size() == 3);
  KilledTrainings all;
  CHECK_NOTHROW(all = kill_trainings(sample, chaos_kills(6), 2, chaos_seed(19)));
  CHECK(all.tally.kills >= 6);
  CHECK(all.starts > all.trainings);
}

TEST_CASE("1,000 kills over layouts and save policies: nothing is lost", "[.long]") {
  KilledTrainings all;
  REQUIRE_NOTHROW(
      all = kill_trainings(save_kinds(), chaos_kills(1000), 8, chaos_seed(std::random_device{}())));
  CHECK(all.tally.in_save > all.tally.kills / 10);  // so that this tests something
}
