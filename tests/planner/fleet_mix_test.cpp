#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "planner/fleet/mix.h"
#include "sim/base/random.h"
#include "support/skip.h"

// The pool mix against another solver and against a loop over everything.
using namespace reckon;
using namespace reckon::planner;
using Json = nlohmann::json;

namespace {

class FleetDice {
 public:
  explicit FleetDice(std::uint32_t which) : stream_(20261122, which, Purpose{"fleet test"}, 0) {}
  int from(int low, int high) {
    return low + int(stream_.uniform() * double(high - low + 1)) % (high - low + 1);
  }
  double real(double low, double high) { return low + stream_.uniform() * (high - low); }

 private:
  RandomStream stream_;
};

constexpr double kHour = 3600;

/// Jobs with options on a few pools, quotas, perhaps held nodes, deadlines and a budget.
Fleet random_fleet(std::uint32_t which, int most_jobs, int most_options) {
  FleetDice dice(which);
  Fleet f;
  f.period = 24 * kHour;
  const int pools = dice.from(1, 3);
  for (int p = 0; p < pools; ++p) {
    FleetPool pool;
    pool.hardware.per_node = dice.from(1, 4);
    pool.held = p == 0 && dice.from(0, 2) == 0;
    pool.most_held = pool.held ? dice.from(2, 5) : 0;
    pool.held_usd_hour = pool.held ? dice.real(0.1, 1) : 0;
    pool.fee_usd_hour = dice.from(0, 1) == 1 ? 0.1 : 0;
    if (dice.from(0, 1) == 1) {
      pool.quota = fmt::format("quota-{}", p % 2);
      f.quota[pool.quota] = dice.from(4, 16);
    }
    f.pools.push_back(pool);
  }
  const int kinds = dice.from(1, most_jobs);
  for (int k = 0; k < kinds; ++k) {
    std::vector<FleetOption> options;
    const int n = dice.from(1, most_options);
    for (int i = 0; i < n; ++i) {
      FleetOption o;
      o.pool = std::size_t(dice.from(0, pools - 1));
      o.split.nodes = dice.from(1, 3);
      o.seconds = dice.real(1, 8) * kHour;
      o.held_to = o.seconds * dice.real(1, 1.3);
      o.usd = f.pools[o.pool].held ? 0 : o.nodes() * o.seconds / kHour * dice.real(0.5, 2);
      options.push_back(o);
    }
    f.options.push_back(options);
    FleetJob job;
    job.name = fmt::format("job-{}", k);
    job.kind = std::size_t(k);
    job.submit = dice.real(0, 6) * kHour;
    if (dice.from(0, 1) == 1) job.deadline = Limit{dice.real(4, 18) * kHour, std::nullopt, "d"};
    f.jobs.push_back(job);
  }
  if (dice.from(0, 3) == 0) f.budget = Limit{dice.real(3, 60), std::nullopt, "b"};
  return f;
}

Json json_of(const Mip& program) {
  const auto limit = [](double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); };
  Json out{{"columns", Json::array()}, {"rows", Json::array()}};
  for (const Mip::Column& c : program.columns)
    out["columns"].push_back(
        {{"cost", c.cost}, {"low", limit(c.low)}, {"high", limit(c.high)}, {"whole", c.whole}});
  for (const Mip::Row& r : program.rows) {
    Json entries = Json::array();
    for (const Mip::Entry& e : r.entries) entries.push_back(Json::array({e.column, e.value}));
    out["rows"].push_back({{"low", limit(r.low)}, {"high", limit(r.high)}, {"entries", entries}});
  }
  return out;
}

/// Does a choice keep every row of the program? By its definition, not by its rows.
bool is_possible(const Fleet& f, const MixProgram& program, const std::vector<std::size_t>& picked,
                 const std::vector<int>& held, double& usd) {
  const double slot = f.period / kSlots;
  usd = 0;
  std::vector<double> ends(f.pools.size());
  for (const std::size_t at : picked) {
    const MixProgram::Start& s = program.starts[at];
    const FleetOption& o = f.options[f.jobs[s.job].kind][s.option];
    usd += o.usd + kWaiting * (s.at - f.jobs[s.job].submit) / kHour;
    ends[o.pool] = std::max(ends[o.pool], s.at + o.seconds);
  }
  for (std::size_t p = 0; p < f.pools.size(); ++p) {
    usd += f.pools[p].fee_usd_hour / kHour * ends[p];
    usd += f.pools[p].held_usd_hour * f.period / kHour * held[p];
  }
  for (int t = 0; t < 2 * kSlots; ++t) {
    std::vector<int> on_pool(f.pools.size());
    std::map<std::string, int> by_quota;
    for (const std::size_t at : picked) {
      const MixProgram::Start& s = program.starts[at];
      const FleetOption& o = f.options[f.jobs[s.job].kind][s.option];
      const FleetPool& pool = f.pools[o.pool];
      const bool there = s.at < (t + 1) * slot - 1e-5 && s.at + o.seconds > t * slot + 1e-5;
      if (!there) continue;
      on_pool[o.pool] += o.nodes();
      if (!pool.held && !pool.quota.empty())
        by_quota[pool.quota] += o.nodes() * pool.hardware.per_node;
    }
    for (std::size_t p = 0; p < f.pools.size(); ++p) {
      if (f.pools[p].held && on_pool[p] > held[p]) return false;
      if (f.pools[p].held && !f.pools[p].quota.empty())
        by_quota[f.pools[p].quota] += held[p] * f.pools[p].hardware.per_node;
    }
    for (const auto& [key, count] : by_quota)
      if (count > f.quota.at(key)) return false;
  }
  return !f.budget || usd <= f.budget->value + 1e-9;
}

/// The least cost of all combinations of starts and numbers of held nodes.
std::optional<double> brute_force(const Fleet& f) {
  const MixProgram program = pool_mix_program(f);
  std::vector<std::vector<std::size_t>> by_job(f.jobs.size());
  for (std::size_t k = 0; k < program.starts.size(); ++k)
    by_job[program.starts[k].job].push_back(k);
  std::optional<double> best;
  std::vector<std::size_t> picked;
  const auto try_held = [&](auto&& self, std::vector<int> held) -> void {
    const std::size_t p = held.size();
    if (p < f.pools.size()) {
      const int most = f.pools[p].held ? f.pools[p].most_held : 0;
      for (int n = 0; n <= most; ++n) {
        held.push_back(n);
        self(self, held);
        held.pop_back();
      }
      return;
    }
    double usd = 0;
    if (is_possible(f, program, picked, held, usd) && (!best || usd < *best)) best = usd;
  };
  const auto pick = [&](auto&& self, std::size_t job) -> void {
    if (job == f.jobs.size()) return try_held(try_held, {});
    for (const std::size_t k : by_job[job]) {
      picked.push_back(k);
      self(self, job + 1);
      picked.pop_back();
    }
  };
  pick(pick, 0);
  return best;
}

/// Debian's SciPy belongs to Debian's Python, which need not be the first in the path.
std::string python_with_scipy() {
  for (const char* python : {"python3", "/usr/bin/python3"})
    if (std::system(fmt::format("{} -c 'import scipy.optimize' 2>/dev/null", python).c_str()) == 0)
      return python;
  return "";
}

void skip_without_solver() {
  if (!why_no_solver().empty()) skip_test(why_no_solver());
}

}  // namespace

TEST_CASE("CBC finds the objective that SciPy's HiGHS finds, on 150 random pool mixes") {
  skip_without_solver();
  const std::string python = python_with_scipy();
  if (python.empty()) skip_test("python3-scipy is not installed");
  constexpr std::uint32_t kCases = 150;
  Json programs = Json::array();
  for (std::uint32_t which = 0; which < kCases; ++which)
    programs.push_back(json_of(pool_mix_program(random_fleet(which, 6, 5)).mip));
  const std::string in = RECKON_BINARY_DIR "/pool_mix_programs.json";
  const std::string out = RECKON_BINARY_DIR "/pool_mix_objectives.json";
  std::ofstream(in) << programs;
  REQUIRE(std::system((python + " '" RECKON_SOURCE_DIR "/tests/planner/pool_mix_oracle.py' '" + in +
                       "' > '" + out + "'")
                          .c_str()) == 0);
  const Json objectives = Json::parse(std::ifstream(out));
  REQUIRE(objectives.size() == kCases);
  int none = 0;
  for (std::uint32_t which = 0; which < kCases; ++which) {
    INFO("case " << which);
    const MixAnswer ours = solve_pool_mix(random_fleet(which, 6, 5));
    const Json& theirs = objectives[which];
    if (theirs.is_null()) {
      CHECK(ours.status == MipSolution::Status::infeasible);
      ++none;
      continue;
    }
    REQUIRE(ours.status == MipSolution::Status::optimal);
    CHECK(ours.objective == Approx(double(theirs)).epsilon(1e-6).margin(1e-6));
    CHECK(ours.choice.usd == Approx(ours.objective).margin(6 * 24 * kWaiting));
  }
  CHECK(none > 5);  // both answers occur
  CHECK(none < 120);
}

TEST_CASE("the pool mix is the best of all combinations, on tiny fleets") {
  skip_without_solver();
  int none = 0, compared = 0;
  for (std::uint32_t which = 1000; which < 1060; ++which) {
    const Fleet f = random_fleet(which, 2, 2);
    const MixAnswer ours = solve_pool_mix(f);
    const std::optional<double> best = brute_force(f);
    INFO("case " << which);
    if (!best) {
      CHECK(ours.status == MipSolution::Status::infeasible);
      ++none;
      continue;
    }
    REQUIRE(ours.status == MipSolution::Status::optimal);
    CHECK(ours.objective == Approx(*best).epsilon(1e-6).margin(1e-6));
    ++compared;
  }
  CHECK(none > 3);
  CHECK(compared > 20);
}

TEST_CASE("a limit that gives way never makes the pool mix dearer") {
  skip_without_solver();
  for (std::uint32_t which = 2000; which < 2020; ++which) {
    const Fleet f = random_fleet(which, 4, 4);
    const MixAnswer all = solve_pool_mix(f);
    if (all.status != MipSolution::Status::optimal) continue;
    for (const auto limit : {&MixQuestion::quota, &MixQuestion::deadlines, &MixQuestion::budget}) {
      MixQuestion without;
      without.*limit = false;
      const MixAnswer free = solve_pool_mix(f, without);
      REQUIRE(free.status == MipSolution::Status::optimal);
      CHECK(free.objective <= all.objective * (1 + 1e-9) + 1e-6);
    }
  }
}

TEST_CASE("a program without an answer is told from one without end") {
  skip_without_solver();
  Mip none;
  none.add_row({1, 1, {{none.add_column({1, 0, 0.5, true}), 1}}});
  CHECK(solve(none).status == MipSolution::Status::infeasible);
  Mip endless;
  endless.add_row({0, kNoLimit, {{endless.add_column({-1, 0, kNoLimit, true}), 1}}});
  const auto status = solve(endless).status;
  CHECK(status != MipSolution::Status::optimal);
  CHECK(status != MipSolution::Status::infeasible);
}
