#include <rapidcheck.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "sim/base/mapped_file.h"
#include "sim/base/parallel.h"
#include "sim/queue/gavel/gavel.h"
#include "sim/queue/gavel/linear_program.h"

using namespace reckon;
using P = SchedulingPolicy;

namespace {

const std::vector<P> kProgramPolicies{
    P::max_min_fairness,       P::max_min_fairness_perf,     P::max_min_fairness_water_filling_perf,
    P::finish_time_fairness,   P::finish_time_fairness_perf, P::min_total_duration,
    P::min_total_duration_perf};

const std::vector<GavelKind> kV100AndK80{{"v100", 1}, {"k80", 1}};

GavelClaim claim(std::vector<double> rates, double steps = 1000, int gpus = 1) {
  return {.rates = std::move(rates), .gpus = gpus, .steps = steps};
}

/// What max-min fairness is about: throughput over that of an equal share, times GPUs.
double normalised(const GavelAllocation& x, std::size_t job, const GavelClaim& c,
                  const std::vector<GavelKind>& kinds) {
  return x.throughput(job, c) / equal_throughput(c, kinds) * c.gpus;
}

struct RandomCase {
  std::vector<GavelClaim> claims;
  std::vector<GavelKind> kinds;
};
RandomCase random_case() {
  RandomCase out;
  const int kinds = *rc::gen::inRange(1, 4), jobs = *rc::gen::inRange(1, 12);
  for (int k = 0; k < kinds; ++k)
    out.kinds.push_back({std::string(1, char('a' + k)), *rc::gen::inRange(1, 9)});
  const auto most = std::max_element(out.kinds.begin(), out.kinds.end(),
                                     [](const auto& a, const auto& b) { return a.gpus < b.gpus; });
  for (int m = 0; m < jobs; ++m) {
    GavelClaim c;
    c.gpus = *rc::gen::inRange(1, most->gpus + 1);
    for (const GavelKind& kind : out.kinds)
      c.rates.push_back(kind.gpus < c.gpus ? 0 : *rc::gen::inRange(0, 1000) / 100.0);
    // It runs on the kind with most GPUs at least.
    c.rates[std::size_t(most - out.kinds.begin())] = *rc::gen::inRange(1, 1000) / 100.0;
    c.steps = *rc::gen::inRange(1, 100'000);
    c.since_submit = Seconds{double(*rc::gen::inRange(0, 10'000))};
    c.alone_so_far = Seconds{double(*rc::gen::inRange(0, 10'000))};
    out.claims.push_back(std::move(c));
  }
  return out;
}

void check_capacity(const GavelAllocation& x, const RandomCase& c) {
  constexpr double kRounding = 1e-6;
  for (std::size_t k = 0; k < c.kinds.size(); ++k) {
    double gpus = 0;
    for (std::size_t m = 0; m < c.claims.size(); ++m) gpus += x.at(m, k) * c.claims[m].gpus;
    RC_ASSERT(gpus <= c.kinds[k].gpus + kRounding);
  }
  for (std::size_t m = 0; m < c.claims.size(); ++m) {
    double time = 0;
    for (std::size_t k = 0; k < c.kinds.size(); ++k) {
      RC_ASSERT(x.at(m, k) >= 0);
      time += x.at(m, k);
    }
    RC_ASSERT(time <= 1 + kRounding);
    RC_ASSERT(x.throughput(m, c.claims[m]) > 0);  // nobody starves
  }
}

double rho(const GavelAllocation& x, std::size_t m, const RandomCase& c) {
  const GavelClaim& claim = c.claims[m];
  return (claim.since_submit.count() + claim.steps / x.throughput(m, claim)) /
         (claim.alone_so_far.count() +
          claim.steps / isolated_throughput(claim, c.kinds, c.claims.size()));
}

double worst(const GavelAllocation& x, const RandomCase& c, P policy) {
  double out = 0;
  for (std::size_t m = 0; m < c.claims.size(); ++m)
    out = std::max(out, policy == P::finish_time_fairness_perf ? rho(x, m, c)
                        : policy == P::min_total_duration_perf
                            ? c.claims[m].steps / x.throughput(m, c.claims[m])
                            : 1 / normalised(x, m, c.claims[m], c.kinds));
  return out;
}

JobRequest steps_job(std::int64_t steps, std::vector<double> rates, double submit = 0,
                     int gpus = 1) {
  return {.submit = SimTime{} + to_clock(Seconds{submit}),
          .worker = pod_of_gpus(gpus),
          .work = StepsByKind{steps, std::move(rates)}};
}

GavelRules rules_of(P policy) { return {.policy = policy}; }

}  // namespace

TEST_CASE("a linear program has its optimum and its prices") {
  // max 3x + 2y, x + y <= 4, x + 3y <= 7, x <= 3: x = 3, y = 1. One more of the first row makes
  // y = 2 (+2), one more of the third x = 4, y = 0 (+1); the second has 6 of its 7.
  LinearProgram program;
  const std::size_t x = program.add_column(3), y = program.add_column(2);
  program.add_row(-LinearProgram::kNone, 4);
  program.add_row(-LinearProgram::kNone, 7);
  program.add_row(-LinearProgram::kNone, 3);
  program.rows[0].entries = {{x, 1}, {y, 1}};
  program.rows[1].entries = {{x, 1}, {y, 3}};
  program.rows[2].entries = {{x, 1}};
  const LinearSolution s = solve(program);
  CHECK(s.objective == Approx(11));
  CHECK(s.values[x] == Approx(3));
  CHECK(s.values[y] == Approx(1));
  CHECK(s.prices[0] == Approx(2));
  CHECK(s.prices[1] == Approx(0).margin(1e-9));
  CHECK(s.prices[2] == Approx(1));
}

TEST_CASE("max-min fairness on the example of the paper") {
  // Sec. 4.1: three jobs with T = (40 10; 12 4; 100 50) on one V100 and one K80 get X^het = (0.45
  // 0; 0.45 0.09; 0.09 0.91), about 10 % more than a third of both. By hand, with z of an equal
  // share (25, 8 and 75 steps a second) each and X = (a 0; b 1 - c; d c):
  //   40 a = 25 z, 12 b + 4 (1 - c) = 8 z, 100 d + 50 c = 75 z, a + b + d = 1, d + c = 1:
  //   d = 1.5 z - 1, c = 2 - 1.5 z, b = (z + 2) / 6, a = 0.625 z.
  const double z = (5.0 / 3) / (0.625 + 1.0 / 6 + 1.5);
  const std::vector<GavelClaim> claims{claim({40, 10}), claim({12, 4}), claim({100, 50})};
  const GavelAllocation x = allocate(P::max_min_fairness_perf, claims, kV100AndK80);
  for (std::size_t m = 0; m < 3; ++m) CHECK(normalised(x, m, claims[m], kV100AndK80) == Approx(z));
  CHECK(z / (2.0 / 3) == Approx(1.09).margin(0.01));  // over an isolated third of both
  const double paper[3][2] = {{0.45, 0.0}, {0.45, 0.09}, {0.09, 0.91}};
  for (std::size_t m = 0; m < 3; ++m)
    for (std::size_t k = 0; k < 2; ++k) CHECK(x.at(m, k) == Approx(paper[m][k]).margin(0.0051));
}

TEST_CASE("blind to the kinds, three jobs share two GPUs alike") {
  const std::vector<GavelClaim> claims{claim({40, 10}), claim({12, 4}), claim({100, 50})};
  const GavelAllocation x = allocate(P::max_min_fairness, claims, kV100AndK80);
  for (std::size_t m = 0; m < 3; ++m) CHECK(x.at(m, 0) + x.at(m, 1) == Approx(2.0 / 3));
}

TEST_CASE("a gang has less time than a job of one GPU") {
  // Two GPUs; a gang of two and a single one, equally fast anywhere: g X alike, so 2 a = b, and
  // 2 a + b = 2 where b <= 1: a = 1/2, b = 1.
  const std::vector<GavelKind> two{{"v100", 2}};
  const std::vector<GavelClaim> claims{claim({10}, 1000, 2), claim({10})};
  const GavelAllocation x = allocate(P::max_min_fairness_perf, claims, two);
  CHECK(x.at(0, 0) == Approx(0.5));
  CHECK(x.at(1, 0) == Approx(1));
}

TEST_CASE("the makespan of two jobs is the least where each has its better kind") {
  // 1,000 steps each, (10 2) and (10 8): each on its better kind they end after 100 and 125 s.
  // Sooner, where both run all the time, job 1 a of it on the V100: they end together at
  // 10 a + 2 (1 - a) = 10 (1 - a) + 8 a: a = 0.8, 8.4 steps a second, 119 s.
  const std::vector<GavelClaim> claims{claim({10, 2}), claim({10, 8})};
  const GavelAllocation x = allocate(P::min_total_duration_perf, claims, kV100AndK80);
  CHECK(x.throughput(0, claims[0]) == Approx(8.4));
  CHECK(x.throughput(1, claims[1]) == Approx(8.4));
  CHECK(x.at(0, 0) == Approx(0.8));
}

TEST_CASE("finish-time fairness helps who has waited") {
  // One GPU, two jobs of 100 steps at 1 a second. Alone on a half each takes 200 s. Job 1 has
  // waited 100 s: (100 + 100 / a) / 200 = (100 / b) / 200, a + b = 1: 100 a b + 100 b = 100 a, a (1
  // - a) + (1 - a) = a, a = (sqrt(5) - 1) / 2.
  std::vector<GavelClaim> claims{claim({1}, 100), claim({1}, 100)};
  claims[0].since_submit = Seconds{100};
  const std::vector<GavelKind> one{{"v100", 1}};
  for (const P policy : {P::finish_time_fairness, P::finish_time_fairness_perf}) {
    const GavelAllocation x = allocate(policy, claims, one);
    CHECK(x.at(0, 0) == Approx((std::sqrt(5) - 1) / 2).epsilon(1e-4));
    CHECK(x.at(0, 0) + x.at(1, 0) == Approx(1));
  }
}

TEST_CASE("water filling raises whom the poorest does not hold down") {
  // Job 1 runs on the K80 alone and is held down by its sharing with job 2; jobs 3 and 4 share the
  // V100s, where nobody else runs.
  const std::vector<GavelKind> kinds{{"k80", 1}, {"v100", 2}};
  const std::vector<GavelClaim> claims{claim({1, 0}), claim({1, 0}), claim({0, 4}), claim({0, 4})};
  const GavelAllocation x = allocate(P::max_min_fairness_water_filling_perf, claims, kinds);
  for (const std::size_t m : {0, 1}) CHECK(x.at(m, 0) == Approx(0.5));
  for (const std::size_t m : {2, 3}) CHECK(x.at(m, 1) == Approx(1));
}

TEST_CASE("allocations keep to the GPUs that there are, and nobody starves") {
  CHECK(rc::check([] {
    const RandomCase c = random_case();
    for (const P policy : kProgramPolicies) check_capacity(allocate(policy, c.claims, c.kinds), c);
  }));
}

TEST_CASE("no exchange of time between two jobs makes the worst better") {
  // An optimum: whatever small part one job gives to another, the worst value gets no better.
  CHECK(rc::check([] {
    const RandomCase c = random_case();
    constexpr double kPart = 0.01, kRounding = 1e-4;
    for (const P policy : {P::max_min_fairness_perf, P::max_min_fairness_water_filling_perf,
                           P::finish_time_fairness_perf, P::min_total_duration_perf}) {
      const GavelAllocation x = allocate(policy, c.claims, c.kinds);
      const double before = worst(x, c, policy);
      for (std::size_t a = 0; a < c.claims.size(); ++a)
        for (std::size_t b = 0; b < c.claims.size(); ++b)
          for (std::size_t from = 0; from < c.kinds.size(); ++from)
            for (std::size_t to = 0; to < c.kinds.size(); ++to) {
              if (a == b) continue;
              // a leaves `from` for `to`, b the other way; as many GPUs move both ways.
              const double part = kPart * std::min(x.at(a, from) * c.claims[a].gpus,
                                                   x.at(b, to) * c.claims[b].gpus);
              GavelAllocation y = x;
              y.at(a, from) -= part / c.claims[a].gpus;
              y.at(b, to) -= part / c.claims[b].gpus;
              y.at(b, from) += part / c.claims[b].gpus;
              y.at(a, to) += part / c.claims[a].gpus;
              if (std::max(y.at(a, from) + y.at(a, to), y.at(b, from) + y.at(b, to)) > 1) continue;
              RC_ASSERT(worst(y, c, policy) >= before * (1 - kRounding));
            }
    }
  }));
}

TEST_CASE("water filling leaves the poorest where max-min fairness has it, and the others higher") {
  CHECK(rc::check([] {
    const RandomCase c = random_case();
    const auto sorted = [&](P policy) {
      const GavelAllocation x = allocate(policy, c.claims, c.kinds);
      std::vector<double> values;
      for (std::size_t m = 0; m < c.claims.size(); ++m)
        values.push_back(normalised(x, m, c.claims[m], c.kinds));
      std::sort(values.begin(), values.end());
      return values;
    };
    const auto plain = sorted(P::max_min_fairness_perf);
    const auto filled = sorted(P::max_min_fairness_water_filling_perf);
    constexpr double kRounding = 1e-5;
    RC_ASSERT(std::abs(filled[0] - plain[0]) <= kRounding * plain[0]);
    for (std::size_t m = 1; m < plain.size(); ++m) {
      if (filled[m] > plain[m] * (1 + kRounding)) break;  // in order of the values, the first is
      RC_ASSERT(filled[m] >= plain[m] * (1 - kRounding));
    }
  }));
}

TEST_CASE("aware of the kinds nobody has less than an n-th of the cluster") {
  // X^isolated is one of the allocations, so that finish-time fairness is at most 1 for new jobs,
  // and its owners have at least the throughput of their n-th: the sharing incentive of Sec. 4.
  CHECK(rc::check([] {
    RandomCase c = random_case();
    for (GavelClaim& claim : c.claims) claim.since_submit = claim.alone_so_far = Seconds{0};
    const GavelAllocation x = allocate(P::finish_time_fairness_perf, c.claims, c.kinds);
    for (std::size_t m = 0; m < c.claims.size(); ++m) RC_ASSERT(rho(x, m, c) <= 1 + 1e-6);
  }));
}

TEST_CASE("rounds give each job its share of time on each kind") {
  // The paper's example for 400 rounds: each is within 1 % of its time, and of its steps.
  constexpr int kRounds = 400;
  const std::vector<JobRequest> jobs{steps_job(100'000'000, {10, 40}),
                                     steps_job(100'000'000, {4, 12}),
                                     steps_job(100'000'000, {50, 100})};
  const std::vector<GavelKind> kinds{{"k80", 1}, {"v100", 1}};
  std::vector<GavelClaim> claims;
  for (const JobRequest& job : jobs) claims.push_back(claim(std::get<StepsByKind>(job.work).rates));
  const GavelAllocation x = allocate(P::max_min_fairness_perf, claims, kinds);
  std::vector<GavelStretch> stretches;
  // No job ends or comes: one decision for ever.
  run_gavel(jobs, kinds, rules_of(P::max_min_fairness_perf), 0, 3, &stretches);
  std::vector<double> had(6);
  for (const GavelStretch& s : stretches)
    if (s.begin < SimTime{} + std::chrono::seconds(360 * kRounds))
      had[s.job * 2 + s.kind] += to_seconds(s.end - s.begin).count() / (360.0 * kRounds);
  for (std::size_t m = 0; m < 3; ++m)
    for (std::size_t k = 0; k < 2; ++k) CHECK(had[m * 2 + k] == Approx(x.at(m, k)).margin(0.01));
}

TEST_CASE("rounds keep to the GPUs, one kind a job, and every step is made once") {
  CHECK(rc::check([] {
    RandomCase c = random_case();
    for (GavelClaim& claim : c.claims)  // some hundred rounds
      claim.steps =
          std::min(claim.steps,
                   std::floor(20'000 * *std::max_element(claim.rates.begin(), claim.rates.end())));
    std::erase_if(c.claims, [](const GavelClaim& claim) { return claim.steps < 1; });
    const P policy = *rc::gen::elementOf(kProgramPolicies);
    std::vector<JobRequest> jobs;
    for (const GavelClaim& claim : c.claims)
      jobs.push_back(steps_job(std::int64_t(claim.steps), claim.rates, *rc::gen::inRange(0, 20'000),
                               claim.gpus));
    std::sort(jobs.begin(), jobs.end(),
              [](const JobRequest& a, const JobRequest& b) { return a.submit < b.submit; });
    std::vector<GavelStretch> stretches;
    const QueueRun run = run_gavel(jobs, c.kinds, rules_of(policy), 0, jobs.size(), &stretches);
    std::vector<std::int64_t> steps(jobs.size());
    double gpu_seconds = 0;
    for (const GavelStretch& s : stretches) {
      steps[s.job] += s.steps;
      gpu_seconds += to_seconds(s.end - s.begin).count() * jobs[s.job].gpus();
      int beside = 0;
      std::set<std::size_t> seen;
      // Stretches are in order of their rounds.
      const auto of_round =
          std::equal_range(stretches.begin(), stretches.end(), s,
                           [](const auto& a, const auto& b) { return a.begin < b.begin; });
      for (auto at = of_round.first; at != of_round.second; ++at) {
        const GavelStretch& other = *at;
        RC_ASSERT(seen.insert(other.job).second);
        beside += other.kind == s.kind ? jobs[other.job].gpus() : 0;
      }
      RC_ASSERT(beside <= c.kinds[s.kind].gpus);
      RC_ASSERT(s.begin >= jobs[s.job].submit);
    }
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const bool never = std::count(run.never.begin(), run.never.end(), j) > 0;
      RC_ASSERT(steps[j] == (never ? 0 : std::get<StepsByKind>(jobs[j].work).steps));
      RC_ASSERT(run.jobs[j].end.has_value() == !never);
    }
    RC_ASSERT(std::abs(gpu_seconds - run.gpu_seconds) <= 1e-6 * (1 + gpu_seconds));
  }));
}

TEST_CASE("jobs that are all there at the begin are done soonest under the least makespan") {
  // 24 jobs on two GPUs of each kind, in rounds of 36 s, which are short against the whole.
  const std::vector<GavelKind> kinds{{"k80", 2}, {"v100", 2}};
  std::vector<JobRequest> jobs;
  for (int k = 0; k < 24; ++k)
    jobs.push_back(steps_job(20'000 + 7'001 * (k * k % 11), {1.0 + k % 3, 3.0 + k % 7}));
  const auto makespan = [&](P policy) {
    GavelRules rules = rules_of(policy);
    rules.round = Seconds{36};
    rules.between_decisions = Seconds{36};
    return run_gavel(jobs, kinds, rules, 0, jobs.size()).makespan_seconds;
  };
  const double least = makespan(P::min_total_duration_perf);
  for (const P policy : kProgramPolicies) CHECK(least <= makespan(policy) * 1.001);
  // And it is what the program of the first decision says, but for the rounds.
  std::vector<GavelClaim> claims;
  for (const JobRequest& job : jobs) {
    const auto& work = std::get<StepsByKind>(job.work);
    claims.push_back(claim(work.rates, double(work.steps)));
  }
  const GavelAllocation x = allocate(P::min_total_duration_perf, claims, kinds);
  double planned = 0;
  for (std::size_t m = 0; m < claims.size(); ++m)
    planned = std::max(planned, claims[m].steps / x.throughput(m, claims[m]));
  CHECK(least >= planned * 0.9999);
  CHECK(least == Approx(planned).epsilon(0.02));
}

TEST_CASE("knowing the kinds ends jobs of the small list sooner, on any number of threads") {
  const std::string folder = RECKON_SOURCE_DIR "/scenarios/traces/gavel/";
  const MappedFile rates(folder + "simulation_throughputs.json");
  const MappedFile file(folder + "fifo_perf_6.csv");
  const std::vector<GavelKind> kinds{{"k80", 6}, {"p100", 6}, {"v100", 6}};
  const auto table = read_throughputs("rates", rates.bytes());
  REQUIRE(table);
  const auto list = read_gavel_jobs("list", file.bytes(), *table, kinds, 24);
  REQUIRE(list);
  const std::vector<P> policies{P::max_min_fairness, P::max_min_fairness_perf, P::max_min_fairness,
                                P::max_min_fairness_perf};
  std::vector<QueueRun> runs(policies.size());
  parallel_for(policies.size(), 4, [&](std::size_t k) {
    runs[k] = run_gavel(list->jobs, kinds, rules_of(policies[k]), list->running, 200);
  });
  for (const std::size_t k : {0, 1}) {
    CHECK(runs[k].completion.mean == runs[k + 2].completion.mean);
    CHECK(runs[k].gpu_seconds == runs[k + 2].gpu_seconds);
  }
  CHECK(runs[1].completion.mean < runs[0].completion.mean);
}
