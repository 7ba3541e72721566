// Exchanges of gradients between processes on an emulated cluster, against the step model: the
// forecast knows the links and the bytes, nothing is fitted. Writes a Markdown table; exit code 1
// when a one-way phase is off by more than the bound, 77 where namespaces are not allowed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include <fmt/format.h>

#include "emulated/emulated_cluster.h"
#include "executor/comm/gloo/gloo_communicator.h"
#include "executor/comm/parameter_server/parameter_server.h"
#include "executor/comm/parameter_server/ps_exchange.h"
#include "sim/step/network/collectives.h"
#include "sim/step/servers/parameter_server.h"
#include "support/processes.h"

namespace {
using namespace reckon;

constexpr int kRuns = 5;  // and one before them that is not counted
constexpr double kBoundOneWay = 0.15;
/// Of an Ethernet frame of 1514 bytes (what tbf counts), 1448 are payload of TCP with time stamps.
constexpr double kPayload = 1448.0 / 1514.0;
constexpr std::uint16_t kPort = 29500;

BytesPerSecond mbit(double rate) { return BytesPerSecond{rate * 1e6 / 8}; }
BytesPerSecond effective(BytesPerSecond link) { return link * kPayload; }

struct Case {
  std::string name;
  std::vector<double> workers;  // Mbit/s of their links
  int servers = 0;              // 0: a ring
  double size = 0;              // MB of parameters
};
/// Mbit/s. Slow enough that a small machine's cores carry all flows of a configuration.
const double kServerLink = 100;

struct Row {
  std::string name, phase;
  Seconds forecast{}, run{};
  bool one_way = true;
  double error() const { return run / forecast - 1; }
};

/// Nobody goes on before all have come.
void meet(Membership& membership, int round, int ranks) {
  const auto key = [&](int rank) { return fmt::format("meet {} {}", round, rank); };
  membership.set(key(membership.rank()), {});
  for (int r = 0; r < ranks; ++r) membership.get(key(r), Deadline::after(Seconds{60}));
}

ServerJob job_of(const Case& c) {
  const std::size_t count = std::size_t(c.size * 1e6 / sizeof(float));
  std::vector<ParameterRange> layers;  // 32 alike
  for (std::size_t l = 0; l < 32; ++l)
    layers.push_back({count * l / 32, count * (l + 1) / 32 - count * l / 32});
  return {.keys = server_keys(layers, std::vector<double>(std::size_t(c.servers), 1)),
          .workers = int(c.workers.size()),
          .phases_apart = true,
          .optimizer = SgdMomentum{},
          .trained = {{0, count, true}}};
}

std::string work(Membership& membership, const ServerJob& job) {
  std::vector<float> values(job.keys.count()), gradients(job.keys.count(), 0.001F);
  const auto exchange = make_ps_exchange(membership, "reckon", job, Seconds{60});
  exchange->start({values, gradients});
  std::string lines;
  for (int step = 0; step <= kRuns; ++step) {
    meet(membership, step, job.workers);
    exchange->gradient_ready({0, gradients.size()});
    const ExchangeTimes t = exchange->finish_step(step, 0.1);
    lines += fmt::format("{} {}\n", t.push.count(), t.pull.count());
  }
  return lines;
}

std::string ring(Membership& membership, double megabytes) {
  const auto communicator = make_gloo_communicator(
      membership, {.timeout = Seconds{60}, .all_reduce = GlooOptions::AllReduce::ring});
  std::vector<float> values(std::size_t(megabytes * 1e6 / sizeof(float)), 1);
  std::string lines;
  for (int run = 0; run <= kRuns; ++run) {
    communicator->barrier();
    const auto begin = std::chrono::steady_clock::now();
    communicator->all_reduce(std::span(values));
    lines += fmt::format("{} 0\n", Seconds{std::chrono::steady_clock::now() - begin}.count());
  }
  return lines;
}

/// What the process of `rank` reports: two numbers a run.
std::string run_member(const Case& c, const EmulatedCluster& cluster, const JobSecret& secret,
                       int rank) {
  const int workers = int(c.workers.size());
  cluster.enter(rank);
  RendezvousOptions options{.secret = secret,
                            .rank = rank,
                            .size = workers + c.servers,
                            .master = {EmulatedCluster::address(0), kPort},
                            .address = EmulatedCluster::address(rank),
                            .deadline = Seconds{30}};
  if (rank < workers) {
    const auto membership = Membership::join(options);
    return c.servers > 0 ? work(*membership, job_of(c)) : ring(*membership, c.size);
  }
  Socket listener = listen_on({EmulatedCluster::address(rank), 0});
  options.role = Role::parameter_server;
  options.port = listener.local().port;
  const auto membership = Membership::join(options);
  run_parameter_server(*membership, "reckon", rank - workers, job_of(c), std::move(listener),
                       Seconds{60});
  return "";
}

/// Median over the counted runs of the longest time of any worker, for each of the two numbers.
std::pair<Seconds, Seconds> medians(const std::vector<ProcessOutcome>& outcomes, int workers) {
  std::vector<double> first(kRuns), second(kRuns);
  for (int w = 0; w < workers; ++w) {
    const ProcessOutcome& outcome = outcomes[std::size_t(w)];
    if (outcome.code != 0) throw std::runtime_error(outcome.output);
    std::istringstream lines(outcome.output);
    for (int run = -1; run < kRuns; ++run) {
      double a = 0, b = 0;
      if (!(lines >> a >> b)) throw std::runtime_error("a run is missing: " + outcome.output);
      if (run < 0) continue;
      first[std::size_t(run)] = std::max(first[std::size_t(run)], a);
      second[std::size_t(run)] = std::max(second[std::size_t(run)], b);
    }
  }
  std::ranges::sort(first);
  std::ranges::sort(second);
  return {Seconds{first[kRuns / 2]}, Seconds{second[kRuns / 2]}};
}

/// Push and pull of one synchronous step of the step model, without compute or server work: links
/// are alike in both directions, so each takes half.
Seconds forecast_one_way(const Case& c) {
  ParameterServerSetup setup{.servers = c.servers,
                             .server_nic = effective(mbit(kServerLink)),
                             .apply_rate = BytesPerSecond{1e15},
                             .groups = {{.size = Bytes{c.size * 1e6}}}};
  for (const double link : c.workers)
    setup.classes.push_back({.count = 1, .nic = effective(mbit(link))});
  return makespan(synchronous_step(setup, false, false), *make_fluid_network()) / 2;
}

Seconds forecast_ring(const Case& c) {
  // A ring is as slow as its slowest link.
  const Fabric fabric{.nodes = int(c.workers.size()),
                      .nic = effective(mbit(std::ranges::min(c.workers)))};
  return makespan(ring_all_reduce(fabric, Bytes{c.size * 1e6}), *make_fluid_network());
}

std::vector<Row> run_case(const Case& c) {
  std::vector<BytesPerSecond> links;
  for (const double link : c.workers) links.push_back(mbit(link));
  for (int s = 0; s < c.servers; ++s) links.push_back(mbit(kServerLink));
  const EmulatedCluster cluster(links);
  const int workers = int(c.workers.size());
  const JobSecret secret = JobSecret::random();
  const auto outcomes = run_processes(
      workers + c.servers, [&](int rank) { return run_member(c, cluster, secret, rank); },
      Seconds{120});
  const auto [first, second] = medians(outcomes, workers);
  if (c.servers == 0) return {{c.name, "ring all-reduce", forecast_ring(c), first, false}};
  const Seconds one_way = forecast_one_way(c);
  return {{c.name, "push", one_way, first}, {c.name, "pull", one_way, second}};
}
}  // namespace

int main() {
  if (const std::string why = EmulatedCluster::why_not(); !why.empty()) {
    fmt::print("SKIPPED: {}\n", why);
    return 77;
  }
  const std::vector<Case> cases{
      {"1 worker, 1 server", {50}, 1, 1},
      {"2 workers, 1 server", {50, 50}, 1, 1},
      {"4 workers, 1 server", {50, 50, 50, 50}, 1, 1},
      {"4 workers, 1 server", {50, 50, 50, 50}, 1, 4},
      {"3 workers, one at 12.5, 1 server", {50, 50, 12.5}, 1, 1},
      {"2 workers at 50 and 25, 2 servers", {50, 25}, 2, 4},
      {"4 workers, 2 servers", {50, 50, 50, 50}, 2, 4},
      {"ring of 2", {50, 50}, 0, 4},
      {"ring of 3", {50, 50, 50}, 0, 1},
      {"ring of 4", {50, 50, 50, 50}, 0, 4},
      {"ring of 4, one at 12.5", {50, 50, 50, 12.5}, 0, 1},
  };
  bool good = true;
  fmt::print("| configuration | MB | phase | forecast (s) | run, median of {} (s) | error |\n",
             kRuns);
  fmt::print("|---|---|---|---|---|---|\n");
  for (const Case& c : cases) {
    try {
      for (const Row& row : run_case(c)) {
        fmt::print("| {} | {} | {} | {:.3f} | {:.3f} | {:+.1f} % |\n", row.name, c.size, row.phase,
                   row.forecast.count(), row.run.count(), row.error() * 100);
        if (row.one_way && std::abs(row.error()) > kBoundOneWay) good = false;
      }
    } catch (const std::exception& error) {
      fmt::print("| {} | {} | failed: {} | | | |\n", c.name, c.size, error.what());
      good = false;
    }
    std::fflush(stdout);
  }
  return good ? 0 : 1;
}
