#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "sim/base/random.h"
#include "sim/queue/backfill/backfill.h"
#include "sim/queue/multifactor/multifactor.h"
#include "sim/queue/preemptive.h"

// Closed forms of queueing theory against long simulations. Lengths are of one GPU; `rate` jobs a
// second; mean 100 s.
using namespace reckon;

namespace {

constexpr double kMean = 100;
using Lengths = std::function<double(RandomStream&)>;

std::vector<JobRequest> poisson_jobs(int count, double rate, const Lengths& length) {
  RandomStream arrivals(17, 0, Purpose{"theory_arrival"}, 0), lengths(17, 0, Purpose{"theory"}, 0);
  std::vector<JobRequest> jobs;
  double now = 0;
  for (int k = 0; k < count; ++k) {
    now += arrivals.exponential() / rate;
    jobs.push_back(
        recorded_job(SimTime{} + to_clock(Seconds{now}), to_clock(Seconds{length(lengths)}), 1));
  }
  return jobs;
}

double exponential_length(RandomStream& s) { return kMean * s.exponential(); }
double uniform_length(RandomStream& s) { return 2 * kMean * s.uniform(); }
/// Mean 100, one job in ten is 30 times as long as the others: squared coefficient of variation
/// 5 and more.
double mixed_length(RandomStream& s) {
  constexpr double kShort = 25.64;  // 0.9 x + 0.1 * 30 x = 100
  return s.uniform() < 0.1 ? 30 * kShort : kShort;
}
constexpr double kMixedSecond = 0.9 * 25.64 * 25.64 + 0.1 * 900 * 25.64 * 25.64;

double waiting(const QueueRun& r) { return r.waiting.mean; }

QueueRun fifo(const std::vector<JobRequest>& jobs, int servers) {
  return run_fifo(jobs, std::vector<NodeGroup>{{servers, 1}}, 0, jobs.size());
}

/// Integral from 0 to `to` by Simpson's rule.
double integral(const std::function<double(double)>& f, double to, int steps = 20'000) {
  const double h = to / steps;
  double sum = f(0) + f(to);
  for (int k = 1; k < steps; ++k) sum += (k % 2 ? 4 : 2) * f(k * h);
  return sum * h / 3;
}

}  // namespace

TEST_CASE("waiting of M/G/1 is that of Pollaczek and Khinchine") {
  // W = lambda E[S^2] / (2 (1 - rho))
  const double rate = 0.7 / kMean;
  const auto expected = [&](double second) { return rate * second / (2 * (1 - rate * kMean)); };
  CHECK(waiting(fifo(poisson_jobs(300'000, rate, [](RandomStream&) { return kMean; }), 1)) ==
        Approx(expected(kMean * kMean)).epsilon(0.03));
  CHECK(waiting(fifo(poisson_jobs(300'000, rate, uniform_length), 1)) ==
        Approx(expected(4 * kMean * kMean / 3)).epsilon(0.03));
  CHECK(waiting(fifo(poisson_jobs(400'000, rate, mixed_length), 1)) ==
        Approx(expected(kMixedSecond)).epsilon(0.05));
}

TEST_CASE("waiting of M/G/k lies between its bounds") {
  // Upper: Kingman 1970, "Inequalities in the theory of queues", for GI/G/k:
  // W <= lambda (Var A + Var S / k + (1/k - 1/k^2) / mu^2) / (2 (1 - rho)).
  // Lower: Brumelle 1971, "Some inequalities for parallel-server queues": the wait of one server k
  // times as fast, less (k - 1) / k x E[S^2] / (2 E[S]).
  constexpr int kServers = 4;
  constexpr double kUse = 0.85;
  const double rate = kUse * kServers / kMean;
  for (const auto& [length, second] :
       {std::pair<Lengths, double>{uniform_length, 4 * kMean * kMean / 3},
        std::pair<Lengths, double>{mixed_length, kMixedSecond}}) {
    const double variance = second - kMean * kMean, k = kServers;
    const double upper =
        rate * (1 / (rate * rate) + variance / k + (1 / k - 1 / (k * k)) * kMean * kMean) /
        (2 * (1 - kUse));
    const double lower =
        rate * second / (k * k) / (2 * (1 - kUse)) - (k - 1) / k * second / (2 * kMean);
    const double waited = waiting(fifo(poisson_jobs(200'000, rate, length), kServers));
    CHECK(waited < upper);
    CHECK(waited > lower);
    CHECK(lower > 0);
  }
}

TEST_CASE("waiting by priority is Cobham's") {
  // Cobham 1954, without preemption: W_p = W_0 / ((1 - s_{p-1}) (1 - s_p)), s_p the use by classes
  // up to p, W_0 = lambda E[S^2] / 2. Classes are partitions of Slurm with all nodes.
  constexpr double kUse = 0.8;
  const double rate = kUse / kMean;
  JobList list;
  list.jobs = poisson_jobs(300'000, rate, exponential_length);
  RandomStream classes(17, 0, Purpose{"theory_class"}, 0);
  for (JobRequest& job : list.jobs)
    job.owner.queue = list.names.queues.number(classes.uniform() < 0.25 ? "high" : "low");
  SlurmSpec slurm;
  slurm.weight_partition = 10;
  slurm.partitions = {{.name = "high", .nodes = {}, .priority_job_factor = 10},
                      {.name = "low", .nodes = {}, .priority_job_factor = 1}};
  MultifactorRules rules(list, slurm, {{kAllCells, kAllCells}}, 1);
  const QueueRun r =
      run_backfill(list.jobs, std::vector<NodeGroup>{{1, 1}}, rules, 0, list.jobs.size());
  double sums[2] = {0, 0}, counts[2] = {0, 0};
  for (std::size_t j = 0; j < list.jobs.size(); ++j) {
    const int c = list.names.queues.name(list.jobs[j].owner.queue) == "high" ? 0 : 1;
    sums[c] += to_seconds(*r.jobs[j].start - r.jobs[j].submit).count();
    ++counts[c];
  }
  const double w0 = rate * kMean * kMean;  // E[S^2] = 2 E[S]^2
  CHECK(sums[0] / counts[0] == Approx(w0 / (1 - 0.25 * kUse)).epsilon(0.03));
  CHECK(sums[1] / counts[1] == Approx(w0 / ((1 - 0.25 * kUse) * (1 - kUse))).epsilon(0.05));
}

TEST_CASE("the shortest job first waits as Phipps says") {
  // Phipps 1956: W(x) = lambda E[S^2] / 2 / (1 - rho(x))^2, rho(x) = lambda E[S; S <= x]. Lengths
  // are uniform on 0..200 s: rho(x) = lambda x^2 / 400.
  const double rate = 0.8 / kMean;
  const auto jobs = poisson_jobs(300'000, rate, uniform_length);
  const QueueRun r = run_shortest_job_first(jobs, std::vector<NodeGroup>{{1, 1}}, 0, jobs.size());
  const double w0 = rate * (4 * kMean * kMean / 3) / 2;
  const double expected = integral(
      [&](double x) { return w0 / std::pow(1 - rate * x * x / (4 * kMean), 2) / (2 * kMean); },
      2 * kMean);
  CHECK(waiting(r) == Approx(expected).epsilon(0.03));
}

TEST_CASE("the shortest remaining time first completes as Schrage and Miller say") {
  // Schrage and Miller 1966, M/G/1: T(x) = lambda (E[S^2; S <= x] + x^2 P(S > x)) / (2 (1 -
  // rho(x))^2) + integral of dt / (1 - rho(t)) to x. Exponential lengths.
  const double rate = 0.7 / kMean;
  const auto jobs = poisson_jobs(100'000, rate, exponential_length);
  const QueueRun r = run_preemptive(jobs, std::vector<NodeGroup>{{1, 1}},
                                    PreemptiveOrder::shortest_remaining, 0, jobs.size());
  const auto tail = [](double x) { return std::exp(-x / kMean); };
  const auto rho = [&](double x) { return rate * (kMean - (x + kMean) * tail(x)); };
  constexpr int kSteps = 4000;
  constexpr double kTo = 20 * kMean;
  double residence = 0, expected = 0;
  for (int k = 0; k < kSteps; ++k) {
    const double h = kTo / kSteps, x = (k + 0.5) * h;
    residence += h / 2 / (1 - rho(x));
    const double second =  // E[S^2; S <= x] + x^2 P(S > x)
        2 * kMean * kMean - (2 * kMean * kMean + 2 * kMean * x) * tail(x);
    expected += h * tail(x) / kMean * (rate * second / (2 * std::pow(1 - rho(x), 2)) + residence);
    residence += h / 2 / (1 - rho(x));
  }
  CHECK(r.completion.mean == Approx(expected).epsilon(0.03));
  CHECK(r.completion.mean < 0.6 * kMean / (1 - rate * kMean));  // of FIFO
}

TEST_CASE("the least attained service first is M/M/1's mean, as of all that know no length") {
  const double rate = 0.6 / kMean;
  const auto long_jobs = [](RandomStream& s) { return 100 * kMean * s.exponential(); };
  const auto jobs = poisson_jobs(20'000, rate / 100, long_jobs);
  const QueueRun r = run_preemptive(jobs, std::vector<NodeGroup>{{1, 1}},
                                    PreemptiveOrder::least_attained, 0, jobs.size());
  CHECK(r.completion.mean == Approx(100 * kMean / (1 - 0.6)).epsilon(0.06));
}
