#include <algorithm>
#include <optional>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/step/servers/parameter_server.h"

// The activity graphs of parameter-server training.
namespace reckon {
namespace {

constexpr Purpose kAsynchronousCompute{"step_asynchronous_compute"};

/// Between one simulated worker and a server, or a bundle of servers that are alike.
struct Route {
  PathId pull{}, push{};
  std::size_t server = 0;
  std::uint32_t multiplicity = 1;  // flows behind it, alike
};

struct WorkerPorts {
  std::vector<Route> routes;
};

/// The links of a node, or of a bundle of nodes that are alike.
struct Node {
  LinkId in{}, out{};
};
struct Server {
  Node node;
  LinkId cpu{};
  bool on_worker = false;  // the node is a worker's too
};

/// What is folded into one representative.
struct Folding {
  bool servers = true, workers = true;
};

/// A network of a parameter-server job. Folded: a class of workers is one simulated worker, its
/// nodes' NICs one bundle; the servers are one bundle. Else every worker is simulated, and its
/// node's NIC is shared by those of the node.
class PortBuilder {
 public:
  PortBuilder(Network& network, const ParameterServerSetup& setup, Folding fold)
      : n_(network), s_(setup), fold_(fold) {}

  std::vector<WorkerPorts> build() {
    for (const auto& c : s_.classes) add_nodes(c);
    add_servers();
    std::size_t node = 0;
    for (const auto& c : s_.classes) {
      const int units = fold_.workers ? 1 : c.count;
      for (int w = 0; w < units; ++w) {
        if (w > 0 && w % c.per_node == 0) ++node;
        add_worker(c, nodes_[node], c.count / units);
      }
      ++node;
    }
    return std::move(workers_);
  }

 private:
  Node add_node(BytesPerSecond nic) { return {n_.add_link(nic), n_.add_link(nic)}; }

  void add_nodes(const WorkerClass& c) {
    const double nodes = double(c.count) / c.per_node;
    if (fold_.workers) {
      nodes_.push_back(add_node(c.nic * nodes));
      return;
    }
    for (int w = 0; w < c.count; w += c.per_node) nodes_.push_back(add_node(c.nic));
  }

  void add_servers() {
    const bool on_workers = !s_.classes.empty() && s_.classes.front().with_servers;
    const double bundle = fold_.servers ? s_.servers : 1;
    for (int k = 0; k < (fold_.servers ? 1 : s_.servers); ++k) {
      const LinkId cpu = n_.add_link(s_.apply_rate * bundle);
      servers_.push_back({on_workers ? nodes_[std::size_t(k)] : add_node(s_.server_nic * bundle),
                          cpu, on_workers});
    }
  }

  /// `weight`: workers that this one stands for.
  void add_worker(const WorkerClass& c, const Node& node, int weight) {
    WorkerPorts& w = workers_.emplace_back();
    const auto behind = [&](int servers) { return std::uint32_t(servers * weight); };
    const int each = fold_.servers ? s_.servers : 1;
    for (std::size_t k = 0; k < servers_.size(); ++k) {
      const Server& server = servers_[k];
      const bool here = server.on_worker && server.node.in == node.in;
      if (!here) {
        w.routes.push_back(c.local ? local(server, node, k, behind(each))
                                   : remote(server, node, k, behind(each)));
        continue;
      }
      const BytesPerSecond bus = c.bus * double(weight);
      w.routes.push_back(local(server, {n_.add_link(bus), n_.add_link(bus)}, k, behind(1)));
      if (each > 1) w.routes.push_back(remote(server, node, k, behind(each - 1)));
    }
  }

  Route local(const Server& s, const Node& bus, std::size_t k, std::uint32_t flows) {
    return {n_.add_path({bus.in}), n_.add_path({bus.out, s.cpu}), k, flows};
  }
  Route remote(const Server& s, const Node& node, std::size_t k, std::uint32_t flows) {
    return {n_.add_path({s.node.out, node.in}), n_.add_path({node.out, s.node.in, s.cpu}), k,
            flows};
  }

  Network& n_;
  const ParameterServerSetup& s_;
  Folding fold_;
  std::vector<Node> nodes_;
  std::vector<Server> servers_;
  std::vector<WorkerPorts> workers_;
};

/// All that may be folded without a change: servers only where they are alike, and workers beside
/// servers only where both are.
Folding folding_of(const ParameterServerSetup& s, bool workers) {
  const bool colocated = !s.classes.empty() && s.classes.front().with_servers;
  const bool alike = s.servers_alike();
  return {.servers = alike && (workers || !colocated), .workers = workers && (alike || !colocated)};
}
constexpr Folding kUnfolded{.servers = false, .workers = false};

using Deps = std::vector<ActivityId>;

/// One worker's transfers of groups in one direction, one after the other with each server: what is
/// all of it on one server keeps no other waiting.
class Transfers {
 public:
  Transfers(ActivityGraph& graph, const ParameterServerSetup& setup, const WorkerPorts& worker,
            PathId Route::*way)
      : g_(graph), s_(setup), w_(worker), way_(way), last_(worker.routes.size()) {}

  /// Begins after `after`; finishes when all servers' parts have. Of rows the ids go to the server
  /// with the gradients, or before the values come.
  ActivityId add(const ServerGroup& group, const Deps& after) {
    Deps flows;
    for (std::size_t r = 0; r < w_.routes.size(); ++r) {
      const Route& route = w_.routes[r];
      const Bytes values = group.values_on(int(route.server), s_.servers);
      if (values.v <= 0 && group.size.v > 0) continue;  // the server has none of it
      const Bytes ids = group.ids.on(int(route.server), s_.servers);
      Deps before = after;
      if (last_[r]) before.push_back(*last_[r]);
      const bool pushes = way_ == &Route::push;
      if (!pushes && ids.v > 0) before = {flow(route, route.push, ids, before)};
      last_[r] = flow(route, route.*way_, pushes ? values + ids : values, before);
      flows.push_back(*last_[r]);
    }
    return flows.size() == 1 ? flows[0] : g_.barrier(flows);
  }

 private:
  ActivityId flow(const Route& route, PathId path, Bytes size, const Deps& after) {
    return g_.add(
        {.delay = s_.latency, .size = size, .path = path, .multiplicity = route.multiplicity},
        after);
  }

  ActivityGraph& g_;
  const ParameterServerSetup& s_;
  const WorkerPorts& w_;
  PathId Route::*way_;
  std::vector<std::optional<ActivityId>> last_;  // by route
};

/// One worker's step: its pushes, in the order of the groups.
struct WorkerStep {
  Deps pushed;
};

WorkerStep add_worker_step(ActivityGraph& g, const ParameterServerSetup& s, const WorkerPorts& w,
                           double factor, bool overlap, const Deps& start) {
  const std::size_t k = s.groups.size();
  Deps pulled;
  Transfers pull(g, s, w, &Route::pull), push(g, s, w, &Route::push);
  for (const auto& group : s.groups) pulled.push_back(pull.add(group, start));
  ActivityId at = overlap ? pulled.front() : g.barrier(pulled);
  for (std::size_t i = 0; i < k; ++i)
    at = g.add({.delay = factor * s.groups[i].forward}, {at, pulled[i]});
  Deps computed(k);
  for (std::size_t i = k; i-- > 0;) {
    at = g.add({.delay = factor * s.groups[i].backward}, {at});
    computed[i] = at;
  }
  WorkerStep step;
  step.pushed.resize(k);
  for (std::size_t i = k; i-- > 0;) {
    step.pushed[i] = push.add(s.groups[i], {overlap ? computed[i] : computed.front()});
  }
  return step;
}

}  // namespace

namespace {

/// Of setup.update, by the bytes that the group's fullest server has of it: servers apply side by
/// side, each group when all have pushed it.
double share_of_update(const ParameterServerSetup& s, std::size_t i) {
  const ServerGroup& group = s.groups[i];
  const bool alike = group.updated ? group.updated->shards.empty() : group.shards.empty();
  Bytes most{};
  for (int k = 0; k < (alike ? 1 : s.servers); ++k)
    most = std::max(most, group.updated_on(k, s.servers));
  const Bytes all = s.updated_on_busiest_server();
  return all.v > 0 ? most / all : 0;
}

}  // namespace

NetworkProblem synchronous_step(const ParameterServerSetup& s, bool fold, bool overlap) {
  NetworkProblem p;
  const auto workers = PortBuilder(p.network, s, fold ? folding_of(s, true) : kUnfolded).build();
  std::vector<WorkerStep> steps;
  for (const auto& w : workers) steps.push_back(add_worker_step(p.graph, s, w, 1, overlap, {}));
  Deps last;
  for (std::size_t i = s.groups.size(); i-- > 0;) {
    Deps pushed = last;  // a server applies group after group
    for (const auto& step : steps) pushed.push_back(step.pushed[i]);
    last = {p.graph.add({.delay = share_of_update(s, i) * s.update}, pushed)};
  }
  return p;
}

NetworkProblem one_way(const ParameterServerSetup& s, OneWay way, bool fold) {
  NetworkProblem p;
  const auto path = way == OneWay::push ? &Route::push : &Route::pull;
  for (const auto& w : PortBuilder(p.network, s, fold ? folding_of(s, true) : kUnfolded).build()) {
    Transfers transfers(p.graph, s, w, path);
    for (const auto& group : s.groups) transfers.add(group, {});
  }
  return p;
}

AsynchronousRun asynchronous_steps(const ParameterServerSetup& s, int steps, int staleness,
                                   double jitter, bool fold) {
  AsynchronousRun run;
  NetworkProblem& p = run.problem;
  // Servers are alike and may be folded; workers are not: each is at another point of its step.
  const auto workers = PortBuilder(p.network, s, fold ? folding_of(s, false) : kUnfolded).build();
  Seconds compute{};
  for (const auto& group : s.groups) compute += group.forward + group.backward;
  // Starts are spread over one round of all workers: a step on its own, or, where the servers are
  // short, the time that they need to pass everybody's gradients. Workers that start together would
  // stay in step.
  int remote = 0;
  for (const auto& c : s.classes) remote += c.local ? 0 : c.count;
  const Seconds alone = compute + 2.0 * (s.values() / s.server_nic);
  const Seconds busy = double(remote) * s.to_busiest_server() / s.server_nic;
  const Seconds about = std::max(alone, busy);
  std::vector<RandomStream> streams;
  std::vector<Deps> at;
  run.step_begin.resize(workers.size());
  run.step_end.resize(workers.size());
  for (std::size_t w = 0; w < workers.size(); ++w) {
    streams.emplace_back(std::uint64_t{0}, 0u, kAsynchronousCompute, std::uint32_t(w));
    const double offset = double(w) / double(workers.size());
    at.push_back({p.graph.add({.delay = offset * about}, {})});
  }
  for (int k = 0; k < steps; ++k) {
    // Stale synchronous parallel: nobody begins step k before all have ended step k - staleness
    // - 1.
    if (staleness > 0 && k > staleness) {
      Deps all;
      for (const auto& ends : run.step_end) all.push_back(ends[std::size_t(k - staleness - 1)]);
      const ActivityId gate = p.graph.barrier(all);
      for (auto& after : at) after.push_back(gate);
    }
    for (std::size_t w = 0; w < workers.size(); ++w) {
      const double factor = std::max(0.1, 1 + jitter * streams[w].normal());
      const ActivityId begin = at[w].size() == 1 ? at[w].front() : p.graph.barrier(at[w]);
      run.step_begin[w].push_back(begin);
      const auto step = add_worker_step(p.graph, s, workers[w], factor, true, {begin});
      const ActivityId end = p.graph.barrier(step.pushed);
      run.step_end[w].push_back(end);
      at[w] = {end};
    }
  }
  return run;
}

namespace {

/// Of the updates in (from, to], the mean number of others' since their worker began the step.
/// `ends`: of all updates, ascending.
double mean_delay(const std::vector<std::vector<std::pair<Seconds, Seconds>>>& by_worker,
                  const std::vector<Seconds>& ends, Seconds from, Seconds to) {
  double others = 0, updates = 0;
  for (const auto& steps : by_worker)
    for (const auto& [begin, end] : steps) {
      if (end <= from || end > to) continue;
      const auto first = std::ranges::upper_bound(ends, begin);
      others += double(std::ranges::lower_bound(ends, end) - first);
      ++updates;
    }
  return updates > 0 ? others / updates : 0;
}

}  // namespace

AsynchronousPace asynchronous_pace(const ParameterServerSetup& s, int staleness, double jitter,
                                   const NetworkModel& model) {
  const int workers = s.workers();
  // Enough steps for the staggered starts to settle; a large fleet averages over its workers
  // instead.
  const int steps = std::clamp(512 / std::max(1, workers), 8, 24);
  const AsynchronousRun run = asynchronous_steps(s, steps, staleness, jitter);
  const auto finish = model.run(run.problem.network, run.problem.graph);
  // Steady part: the middle third of all steps' ends. Its rate cannot exceed what the servers' NICs
  // pass.
  std::vector<Seconds> ends;
  std::vector<std::vector<std::pair<Seconds, Seconds>>> by_worker(run.step_end.size());
  for (std::size_t w = 0; w < run.step_end.size(); ++w)
    for (std::size_t k = 0; k < run.step_end[w].size(); ++k) {
      ends.push_back(finish[std::size_t(run.step_end[w][k])]);
      by_worker[w].emplace_back(finish[std::size_t(run.step_begin[w][k])], ends.back());
    }
  std::sort(ends.begin(), ends.end());
  const std::size_t from = ends.size() / 3, to = ends.size() * 2 / 3;
  AsynchronousPace pace{.rate = double(to - from) / (ends[to] - ends[from]).count(),
                        .delay = mean_delay(by_worker, ends, ends[from], ends[to])};
  int remote = 0;
  for (const auto& c : s.classes) remote += c.local ? 0 : c.count;
  if (remote == 0) return pace;
  const double passed = 1 / (s.to_busiest_server() / s.server_nic).count();
  pace.rate = std::min(pace.rate, passed * workers / remote);
  return pace;
}

}  // namespace reckon
