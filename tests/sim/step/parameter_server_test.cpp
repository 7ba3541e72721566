#include "sim/step/servers/parameter_server.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

using namespace reckon;

namespace {

constexpr BytesPerSecond kPlenty{1e15};

/// W workers with a NIC each, P servers, M bytes in `groups` equal groups; no compute, no latency.
ParameterServerSetup setup(int workers, int servers, double bytes, int groups = 1) {
  ParameterServerSetup s;
  s.classes = {{.count = workers, .per_node = 1, .nic = 1.25_GBps}};
  s.servers = servers;
  s.server_nic = 1.25_GBps;
  s.apply_rate = kPlenty;
  for (int g = 0; g < groups; ++g) s.groups.push_back({.size = Bytes{bytes / groups}});
  return s;
}

double seconds(const NetworkProblem& p) { return makespan(p, *make_fluid_network()).count(); }

}  // namespace

TEST_CASE("a synchronous step without compute takes 2 max(W/P, 1) M / B") {
  const double m = 1.024e9;  // divides by all P below
  for (const auto& [w, p] : {std::pair{1, 1}, {2, 1}, {8, 2}, {2, 8}, {64, 16}, {1024, 32}}) {
    INFO(w << " workers, " << p << " servers");
    const double expected = 2 * std::max(double(w) / p, 1.0) * m / 1.25e9;
    CHECK(seconds(synchronous_step(setup(w, p, m))) == Approx(expected).epsilon(1e-12));
    CHECK(seconds(synchronous_step(setup(w, p, m, 8))) == Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("one way alone takes max(W/P, 1) M / B, and waits for the slowest link") {
  const double m = 1.024e9;  // divides by all P below
  for (const auto& [w, p] : {std::pair{1, 1}, {4, 1}, {8, 2}, {2, 8}, {64, 16}})
    for (const OneWay way : {OneWay::push, OneWay::pull}) {
      INFO(w << " workers, " << p << " servers");
      const double expected = std::max(double(w) / p, 1.0) * m / 1.25e9;
      CHECK(seconds(one_way(setup(w, p, m, 8), way)) == Approx(expected).epsilon(1e-12));
    }
  auto s = setup(3, 1, 1.25e9);
  s.classes = {{.count = 1, .per_node = 1, .nic = 0.25_GBps},
               {.count = 2, .per_node = 1, .nic = 1.25_GBps}};
  CHECK(seconds(one_way(s, OneWay::push)) == Approx(5));  // 1.25 GB at 0.25 GB/s
  CHECK(seconds(one_way(s, OneWay::push, false)) == Approx(5));
}

TEST_CASE("folded and unfolded parameter-server steps take the same time") {
  auto s = setup(6, 4, 4.8e8, 3);
  for (auto& g : s.groups) {
    g.forward = Seconds{0.05};
    g.backward = Seconds{0.1};
  }
  s.latency = Seconds{1e-4};
  s.update = Seconds{0.03};
  CHECK(seconds(synchronous_step(s, false)) == Approx(seconds(synchronous_step(s))).epsilon(1e-9));
  // Two workers a node share its NIC; a third class sits on the servers' host.
  s.classes = {{.count = 4, .per_node = 2, .nic = 1.25_GBps},
               {.count = 1, .per_node = 1, .nic = 1.25_GBps},
               {.count = 2, .per_node = 1, .nic = 10.0_GBps, .local = true}};
  CHECK(seconds(synchronous_step(s, false)) == Approx(seconds(synchronous_step(s))).epsilon(1e-9));
  s.apply_rate = 0.2_GBps;  // servers' CPUs are the bottleneck
  CHECK(seconds(synchronous_step(s, false)) == Approx(seconds(synchronous_step(s))).epsilon(1e-9));
}

TEST_CASE("folding the servers does not change an asynchronous run") {
  auto s = setup(5, 4, 4.8e8, 2);
  for (auto& g : s.groups) g.forward = g.backward = Seconds{0.1};
  const auto network = make_fluid_network();
  const auto folded = asynchronous_steps(s, 4, 1, 0.05, true);
  const auto whole = asynchronous_steps(s, 4, 1, 0.05, false);
  CHECK(seconds(whole.problem) == Approx(seconds(folded.problem)).epsilon(1e-9));
}

TEST_CASE("overlap hides transfers, but a step is never faster than compute or transfers alone") {
  CHECK(rc::check([] {
    auto s = setup(*rc::gen::inRange(1, 12), *rc::gen::inRange(1, 6),
                   1e6 * *rc::gen::inRange(1, 900), *rc::gen::inRange(1, 9));
    double compute = 0;
    for (auto& g : s.groups) {
      g.forward = Seconds{*rc::gen::inRange(0, 100) / 1e3};
      g.backward = Seconds{*rc::gen::inRange(0, 100) / 1e3};
      compute += (g.forward + g.backward).count();
    }
    auto silent = s;
    for (auto& g : silent.groups) g.forward = g.backward = Seconds{};
    const double communication = seconds(synchronous_step(silent));
    const double with = seconds(synchronous_step(s));
    const double without = seconds(synchronous_step(s, true, false));
    RC_ASSERT(with <= without * (1 + 1e-9));
    RC_ASSERT(with >= std::max(compute, communication) * (1 - 1e-9));
    RC_ASSERT(without <= (compute + communication) * (1 + 1e-9));
  }));
}

TEST_CASE("more servers never make a step slower") {
  double before = 1e300;
  for (const int p : {1, 2, 3, 4, 8, 16, 32}) {
    const double now = seconds(synchronous_step(setup(16, p, 9.6e8)));
    CHECK(now <= before * (1 + 1e-9));
    before = now;
  }
}

TEST_CASE("an asynchronous worker alone does a step in the time of a synchronous one") {
  auto s = setup(1, 2, 4e8, 2);
  for (auto& g : s.groups) g.forward = g.backward = Seconds{0.1};
  const double step = seconds(synchronous_step(s));
  CHECK(asynchronous_pace(s, 0, 0, *make_fluid_network()).rate == Approx(1 / step).epsilon(1e-9));
}

TEST_CASE("asynchronous workers fill the servers' NICs and no more") {
  // 16 workers, one server, M = 100 MB: the server's NIC passes 12.5 pushes a second, compute would
  // allow 160.
  auto s = setup(16, 1, 1e8);
  s.groups[0].forward = s.groups[0].backward = Seconds{0.05};
  const double rate = asynchronous_pace(s, 0, 0.02, *make_fluid_network()).rate;
  CHECK(rate <= 12.5 * (1 + 1e-6));
  // Pulls and pushes each need the whole NIC in their direction, so neither direction is always
  // busy.
  CHECK(rate >= 12.5 * 0.8);
  // With 16 servers and little compute in the way, each worker moves at its own pace: 1 / (0.1 s +
  // 2 x 80 ms) each.
  const double wide = asynchronous_pace(setup(16, 16, 1e8), 0, 0, *make_fluid_network()).rate;
  CHECK(wide == Approx(16 / 0.16).epsilon(0.05));
}

TEST_CASE("a staleness bound never makes asynchronous training faster") {
  auto s = setup(8, 2, 2e8, 2);
  for (auto& g : s.groups) g.forward = g.backward = Seconds{0.2};
  const auto network = make_fluid_network();
  const double free = asynchronous_pace(s, 0, 0.2, *network).rate;
  const double loose = asynchronous_pace(s, 4, 0.2, *network).rate;
  const double tight = asynchronous_pace(s, 1, 0.2, *network).rate;
  CHECK(loose <= free * 1.02);
  CHECK(tight <= loose * 1.02);
  CHECK(tight < free);
}

TEST_CASE("backup workers cut the wait for the slowest") {
  CHECK(straggler_factor(1, 0, 0.1) == 1);
  CHECK(straggler_factor(64, 0, 0) == 1);
  // Mean of the largest of 100 standard normals is 2.508 (tables); Blom's formula gives 2.499.
  CHECK(straggler_factor(100, 0, 0.1) == Approx(1.2508).epsilon(0.001));
  CHECK(straggler_factor(100, 5, 0.1) < straggler_factor(100, 0, 0.1));
}

namespace {

/// Servers on the workers' own nodes, one worker each.
ParameterServerSetup colocated(int workers, int servers, double bytes, int groups = 1) {
  auto s = setup(workers, servers, bytes, groups);
  s.classes = {
      {.count = servers, .per_node = 1, .nic = 1.25_GBps, .with_servers = true, .bus = kPlenty}};
  if (workers > servers)
    s.classes.push_back({.count = workers - servers, .per_node = 1, .nic = 1.25_GBps});
  return s;
}

}  // namespace

TEST_CASE("a server on every worker's node moves what a ring moves") {
  // Of M a worker keeps 1/N at home: N - 1 of N parts out and as many in, twice [Jiang et al. 2020,
  // "BytePS", Sec. 2]: 2 (N - 1) / N M / B.
  const double m = 1.024e9;
  for (const int n : {2, 4, 8, 64}) {
    CAPTURE(n);
    const double expected = 2.0 * (n - 1) / n * m / 1.25e9;
    CHECK(seconds(synchronous_step(colocated(n, n, m))) == Approx(expected).epsilon(1e-12));
  }
  CHECK(seconds(synchronous_step(colocated(1, 1, m))) < 1e-3);  // nobody to talk to
}

TEST_CASE("one server of two workers' nodes passes what the other worker moves") {
  // Its own worker does not use the NIC: M down and M up.
  const double m = 1.25e9;
  CHECK(seconds(synchronous_step(colocated(2, 1, m))) == Approx(2));
}

TEST_CASE("folded and unfolded steps with colocated servers take the same time") {
  for (const auto& [w, p] : {std::pair{4, 4}, {6, 3}, {8, 2}, {5, 1}}) {
    CAPTURE(w, p);
    auto s = colocated(w, p, 4.8e8, 3);
    s.classes[0].bus = 4.0_GBps;
    s.apply_rate = 3.0_GBps;
    for (auto& g : s.groups) g.forward = g.backward = Seconds{0.05};
    CHECK(seconds(synchronous_step(s, false)) ==
          Approx(seconds(synchronous_step(s))).epsilon(1e-9));
    CHECK(seconds(one_way(s, OneWay::push, false)) ==
          Approx(seconds(one_way(s, OneWay::push))).epsilon(1e-9));
  }
  // Two workers a node.
  auto s = colocated(8, 4, 4.8e8, 2);
  s.classes = {{.count = 8, .per_node = 2, .nic = 1.25_GBps, .with_servers = true, .bus = 4.0_GBps},
               {.count = 4, .per_node = 2, .nic = 1.25_GBps}};
  CHECK(seconds(synchronous_step(s, false)) == Approx(seconds(synchronous_step(s))).epsilon(1e-9));
}

TEST_CASE("the server with the largest variable is what a step waits for") {
  // 8 workers, 4 servers; 3 of 4 GB on one of them: 2 x 8 x 3 GB / 1.25 GB/s whatever the others
  // do.
  auto s = setup(8, 4, 0, 1);
  s.groups = {{.size = Bytes{4e9}, .shards = {Bytes{3e9}, Bytes{1e9}, Bytes{}, Bytes{}}}};
  CHECK(s.to_busiest_server() == Bytes{3e9});
  CHECK(seconds(synchronous_step(s)) == Approx(2 * 8 * 3 / 1.25));
  CHECK(seconds(synchronous_step(s, false)) == Approx(2 * 8 * 3 / 1.25));
}

TEST_CASE("a variable that is all on one server keeps the other servers' variables from nothing") {
  // 4 GB on the first server, then 1 GB on the second: the second is long done.
  auto s = setup(8, 2, 0, 1);
  s.groups = {{.size = Bytes{4e9}, .shards = {Bytes{4e9}, Bytes{}}},
              {.size = Bytes{1e9}, .shards = {Bytes{}, Bytes{1e9}}}};
  for (const bool fold : {true, false})
    CHECK(seconds(synchronous_step(s, fold)) == Approx(2 * 8 * 4 / 1.25));
}

TEST_CASE("variables are placed in turn, by bytes, or cut") {
  const std::vector<Bytes> variables{Bytes{1}, Bytes{10}, Bytes{2}, Bytes{3}};
  const auto held = [&](ServerShards rule, double partition) {
    std::vector<double> bytes(2);
    for (const auto& of : placed_on_servers(variables, 2, rule, Bytes{partition}))
      for (std::size_t k = 0; k < 2; ++k) bytes[k] += of[k].v;
    return bytes;
  };
  CHECK(held(ServerShards::even, 0) == std::vector<double>{8, 8});
  CHECK(held(ServerShards::round_robin, 0) == std::vector<double>{3, 13});  // 1, 2 and 10, 3
  CHECK(held(ServerShards::balanced, 0) == std::vector<double>{6, 10});     // 1, 2, 3 and 10
  // 10 as 4 pieces of 2.5: 1, 2.5, 2.5 and 3 on one server; 2.5, 2.5 and 2 on the other.
  CHECK(held(ServerShards::balanced, 3) == std::vector<double>{9, 7});
}
