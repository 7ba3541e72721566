#include "sim/step/network/fluid/fluid.h"

#include <catch2/catch.hpp>

using namespace reckon;

namespace {

constexpr double kNic = 1.25e9;  // 10 Gbit/s

/// Finish dates by the fluid model.
std::vector<Seconds> fluid(const Network& network, const ActivityGraph& graph) {
  return make_fluid_network()->run(network, graph);
}

}  // namespace

TEST_CASE("one transfer takes its size over the capacity of its narrowest link, after its delay") {
  Network net;
  const LinkId wide = net.add_link(BytesPerSecond{kNic}),
               narrow = net.add_link(BytesPerSecond{kNic / 5});
  const PathId path = net.add_path({wide, narrow});
  ActivityGraph graph;
  graph.add({.delay = Seconds{0.25}, .size = Bytes{kNic}, .path = path});
  CHECK(fluid(net, graph)[0].count() == Approx(5.25).epsilon(1e-14));  // 1.25e9 B at 0.25e9 B/s
}

TEST_CASE("two flows halve a link until the shorter one ends, then the longer one has all of it") {
  Network net;
  const PathId path = net.add_path({net.add_link(BytesPerSecond{kNic})});
  ActivityGraph graph;
  graph.add({.size = Bytes{kNic}, .path = path});
  graph.add({.size = Bytes{3 * kNic}, .path = path});
  const auto finish = fluid(net, graph);
  CHECK(finish[0].count() == Approx(2).epsilon(1e-14));  // half the link: 1 s of data in 2 s
  CHECK(finish[1].count() ==
        Approx(4).epsilon(1e-14));  // 4 s of data over a link that is never idle
}

TEST_CASE("a capped flow leaves what it cannot use to the others") {
  Network net;
  const PathId path = net.add_path({net.add_link(BytesPerSecond{kNic})});
  ActivityGraph graph;
  graph.add({.size = Bytes{kNic}, .path = path, .cap = BytesPerSecond{kNic / 4}});
  graph.add({.size = Bytes{kNic}, .path = path});
  const auto finish = fluid(net, graph);
  CHECK(finish[0].count() == Approx(4).epsilon(1e-14));
  CHECK(finish[1].count() == Approx(4.0 / 3).epsilon(1e-14));  // 3/4 of the link
}

TEST_CASE("max-min rates of the textbook's three links: 1/3, 1/3, 1/3, 2/3 and 1") {
  // Bertsekas & Gallager, fig. 6.6 in spirit: link A carries flows 0-2, B carries 2 and 3, C
  // carries 3 and 4; capacities 1, 1, 5/3. A fills first at 1/3; B leaves 2/3 to flow 3; C leaves 1
  // to flow 4.
  Network net;
  const LinkId a = net.add_link(BytesPerSecond{1}), b = net.add_link(BytesPerSecond{1}),
               c = net.add_link(BytesPerSecond{5.0 / 3});
  const PathId on_a = net.add_path({a}), on_ab = net.add_path({a, b}), on_bc = net.add_path({b, c}),
               on_c = net.add_path({c});
  const std::vector<FlowDemand> flows{{on_a}, {on_a}, {on_ab}, {on_bc}, {on_c}};
  const auto rates = max_min_rates(net, flows);
  const double expected[] = {1.0 / 3, 1.0 / 3, 1.0 / 3, 2.0 / 3, 1};
  for (std::size_t f = 0; f < 5; ++f) CHECK(rates[f].v == Approx(expected[f]).epsilon(1e-14));
}

TEST_CASE("multiplicity counts as that many flows, each with a share of its own") {
  Network net;
  const PathId path = net.add_path({net.add_link(BytesPerSecond{kNic})});
  ActivityGraph graph;
  graph.add({.size = Bytes{kNic}, .path = path, .multiplicity = 3});
  graph.add({.size = Bytes{kNic}, .path = path});
  const auto finish = fluid(net, graph);
  CHECK(finish[0].count() == Approx(4).epsilon(1e-14));  // 4 flows, a quarter each
  CHECK(finish[1].count() == Approx(4).epsilon(1e-14));
}

TEST_CASE("an activity starts when the last of those it waits for has finished") {
  Network net;
  const PathId path = net.add_path({net.add_link(BytesPerSecond{kNic})});
  ActivityGraph graph;
  const ActivityId compute = graph.add({.delay = Seconds{3}});
  const ActivityId push = graph.add({.size = Bytes{kNic}, .path = path});
  const ActivityId both = graph.barrier(std::vector{compute, push});
  const ActivityId pull =
      graph.add({.delay = Seconds{0.5}, .size = Bytes{kNic}, .path = path}, {both});
  const auto finish = fluid(net, graph);
  CHECK(finish[index(push)].count() == Approx(1));
  CHECK(finish[index(both)].count() == Approx(3));
  CHECK(finish[index(pull)].count() == Approx(4.5));  // 3 + 0.5 + 1
}

TEST_CASE("a transfer of less than a byte takes no time, and parts of a byte are not sent") {
  Network net;
  const PathId path = net.add_path({net.add_link(BytesPerSecond{1})});
  ActivityGraph graph;
  graph.add({.size = Bytes{0.9}, .path = path});
  CHECK(fluid(net, graph)[0].count() == 0);
  ActivityGraph second;
  second.add({.size = Bytes{2.9}, .path = path});
  CHECK(fluid(net, second)[0].count() == 2);
}

TEST_CASE("an empty graph finishes without an answer, on an empty network") {
  CHECK(fluid(Network{}, ActivityGraph{}).empty());
}

TEST_CASE("a synchronous parameter-server step takes 2 max(W/P, 1) M / B") {
  // W workers send M/P to each of P servers, all pull after all have pushed. A server's NIC carries
  // W M/P each way, a worker's M; the busier of the two is never idle.
  const double model = 96e6;
  for (const auto& [workers, servers] : {std::pair{8, 1}, {8, 4}, {4, 8}, {6, 6}, {64, 16}}) {
    Network net;
    std::vector<LinkId> worker_out, worker_in, server_out, server_in;
    const auto nic = [&](int n, std::vector<LinkId>& links) {
      for (int i = 0; i < n; ++i) links.push_back(net.add_link(BytesPerSecond{kNic}));
    };
    nic(workers, worker_out), nic(workers, worker_in), nic(servers, server_out),
        nic(servers, server_in);
    ActivityGraph graph;
    std::vector<ActivityId> pushes;
    const Bytes shard{model / servers};
    for (const LinkId w : worker_out)
      for (const LinkId s : server_in)
        pushes.push_back(graph.add({.size = shard, .path = net.add_path({w, s})}));
    const ActivityId all = graph.barrier(pushes);
    std::vector<ActivityId> pulls;
    for (const LinkId w : worker_in)
      for (const LinkId s : server_out)
        pulls.push_back(graph.add({.size = shard, .path = net.add_path({s, w})}, {all}));
    const ActivityId done = graph.barrier(pulls);
    const double expected = 2 * std::max(double(workers) / servers, 1.0) * model / kNic;
    CHECK(fluid(net, graph)[index(done)].count() == Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("a ring all-reduce over N ranks takes 2 (N - 1) (alpha + M / (N B))") {
  // [Patarasuk & Yuan 2009]: reduce-scatter, then all-gather, N - 1 rounds each, M/N bytes a round.
  const double model = 96e6, alpha = 20e-6;
  for (const int n : {2, 3, 8, 32}) {
    Network net;
    std::vector<PathId> to_next;
    std::vector<LinkId> out, in;
    for (int i = 0; i < n; ++i)
      out.push_back(net.add_link(BytesPerSecond{kNic})),
          in.push_back(net.add_link(BytesPerSecond{kNic}));
    for (std::size_t i = 0; i < out.size(); ++i)
      to_next.push_back(net.add_path({out[i], in[(i + 1) % in.size()]}));
    ActivityGraph graph;
    std::vector<ActivityId> round;
    for (int r = 0; r < 2 * (n - 1); ++r) {
      std::vector<ActivityId> next;
      for (std::size_t i = 0; i < out.size(); ++i) {
        std::vector<ActivityId> after;
        if (r > 0) after = {round[i], round[(i + out.size() - 1) % out.size()]};
        next.push_back(graph.add(
            {.delay = Seconds{alpha}, .size = Bytes{model / n}, .path = to_next[i]}, after));
      }
      round = next;
    }
    const ActivityId done = graph.barrier(round);
    CHECK(fluid(net, graph)[index(done)].count() ==
          Approx(2 * (n - 1) * (alpha + model / n / kNic)).epsilon(1e-12));
  }
}

TEST_CASE("the same model run twice gives every digit again") {
  Network net;
  const LinkId shared = net.add_link(BytesPerSecond{kNic / 3});
  ActivityGraph graph;
  for (int i = 0; i < 50; ++i) {
    const PathId path = net.add_path({net.add_link(BytesPerSecond{kNic / (7 + i % 5)}), shared});
    graph.add({.delay = Seconds{0.01 * (i * 7 % 13)},
               .size = Bytes{1e8 + 1e6 * i},
               .path = path,
               .cap = BytesPerSecond{i % 3 ? 0 : kNic / 90}});
  }
  const auto model = make_fluid_network();
  const auto first = model->run(net, graph);
  CHECK(model->run(net, graph) == first);
  CHECK(make_fluid_network()->run(net, graph) == first);
}
