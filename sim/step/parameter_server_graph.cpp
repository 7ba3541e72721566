#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/step/parameter_server.h"

// The activity graphs of parameter-server training.
namespace reckon {
namespace {

constexpr Purpose kAsynchronousCompute{"step_asynchronous_compute"};

/// Flows between one simulated worker and the servers: `multiplicity` of them, alike, a path.
struct WorkerPorts {
  std::vector<PathId> pull, push;  // one path a server; folded: one for all
  std::uint32_t multiplicity = 1;  // flows behind one path
  int weight = 1;                  // workers that this one stands for
};

struct ServerLinks {
  LinkId out, in, cpu;
};

/// Links of the servers: folded into one bundle of P times the capacity, or each server's own.
std::vector<ServerLinks> add_servers(Network& n, const ParameterServerSetup& s, bool fold) {
  std::vector<ServerLinks> links;
  const double bundle = fold ? s.servers : 1;
  for (int k = 0; k < (fold ? 1 : s.servers); ++k)
    links.push_back({n.add_link(s.server_nic * bundle), n.add_link(s.server_nic * bundle),
                     n.add_link(s.apply_rate * bundle)});
  return links;
}

WorkerPorts add_ports(Network& n, const std::vector<ServerLinks>& servers, bool local, LinkId in,
                      LinkId out) {
  WorkerPorts w;
  for (const auto& s : servers) {
    w.pull.push_back(local ? n.add_path({in}) : n.add_path({s.out, in}));
    w.push.push_back(local ? n.add_path({out, s.cpu}) : n.add_path({out, s.in, s.cpu}));
  }
  return w;
}

/// fold_workers: a class is one simulated worker, its nodes' NICs one bundle. Else every worker is
/// simulated, and its node's NIC is shared by those of the node.
std::vector<WorkerPorts> add_workers(Network& n, const ParameterServerSetup& s, bool fold_servers,
                                     bool fold_workers) {
  const auto servers = add_servers(n, s, fold_servers);
  const auto behind = std::uint32_t(fold_servers ? s.servers : 1);
  std::vector<WorkerPorts> workers;
  for (const auto& c : s.classes) {
    const int units = fold_workers ? 1 : c.count;
    LinkId in{}, out{};
    for (int w = 0; w < units; ++w) {
      if (fold_workers || w % c.per_node == 0) {
        const double nodes = fold_workers ? double(c.count) / c.per_node : 1;
        in = n.add_link(c.nic * nodes);
        out = n.add_link(c.nic * nodes);
      }
      workers.push_back(add_ports(n, servers, c.local, in, out));
      workers.back().weight = c.count / units;
      workers.back().multiplicity = behind * std::uint32_t(workers.back().weight);
    }
  }
  return workers;
}

using Deps = std::vector<ActivityId>;

/// Flows of one group over all paths; one id that finishes when all have.
ActivityId add_transfer(ActivityGraph& g, const ParameterServerSetup& s, const WorkerPorts& w,
                        const std::vector<PathId>& paths, Bytes group, const Deps& after) {
  Deps flows;
  for (const PathId path : paths)
    flows.push_back(g.add({.delay = s.latency,
                           .size = group / double(s.servers),
                           .path = path,
                           .multiplicity = w.multiplicity},
                          after));
  return flows.size() == 1 ? flows[0] : g.barrier(flows);
}

/// One worker's step: its pushes, in the order of the groups.
struct WorkerStep {
  Deps pushed;
};

WorkerStep add_worker_step(ActivityGraph& g, const ParameterServerSetup& s, const WorkerPorts& w,
                           double factor, bool overlap, const Deps& start) {
  const std::size_t k = s.groups.size();
  Deps pulled, before = start;
  for (const auto& group : s.groups) {
    pulled.push_back(add_transfer(g, s, w, w.pull, group.size, before));
    before = {pulled.back()};
  }
  ActivityId at = overlap ? pulled.front() : pulled.back();
  for (std::size_t i = 0; i < k; ++i)
    at = g.add({.delay = factor * s.groups[i].forward}, {at, overlap ? pulled[i] : pulled.back()});
  Deps computed(k);
  for (std::size_t i = k; i-- > 0;) {
    at = g.add({.delay = factor * s.groups[i].backward}, {at});
    computed[i] = at;
  }
  WorkerStep step;
  step.pushed.resize(k);
  for (std::size_t i = k; i-- > 0;) {
    Deps after{overlap ? computed[i] : computed.front()};
    if (i + 1 < k) after.push_back(step.pushed[i + 1]);
    step.pushed[i] = add_transfer(g, s, w, w.push, s.groups[i].size, after);
  }
  return step;
}

}  // namespace

NetworkProblem synchronous_step(const ParameterServerSetup& s, bool fold, bool overlap) {
  NetworkProblem p;
  const auto workers = add_workers(p.network, s, fold, fold);
  std::vector<WorkerStep> steps;
  for (const auto& w : workers) steps.push_back(add_worker_step(p.graph, s, w, 1, overlap, {}));
  const Bytes all = s.variables();
  Deps last;
  for (std::size_t i = s.groups.size(); i-- > 0;) {
    Deps pushed = last;  // a server applies group after group
    for (const auto& step : steps) pushed.push_back(step.pushed[i]);
    const double share = all.v > 0 ? s.groups[i].size / all : 0;
    last = {p.graph.add({.delay = share * s.update}, pushed)};
  }
  return p;
}

NetworkProblem one_way(const ParameterServerSetup& s, OneWay way, bool fold) {
  NetworkProblem p;
  for (const auto& w : add_workers(p.network, s, fold, fold)) {
    Deps before;
    for (const auto& group : s.groups)
      before = {
          add_transfer(p.graph, s, w, way == OneWay::push ? w.push : w.pull, group.size, before)};
  }
  return p;
}

AsynchronousRun asynchronous_steps(const ParameterServerSetup& s, int steps, int staleness,
                                   double jitter, bool fold) {
  AsynchronousRun run;
  NetworkProblem& p = run.problem;
  // Servers are alike and may be folded; workers are not: each is at another point of its step.
  const auto workers = add_workers(p.network, s, fold, false);
  Seconds compute{};
  for (const auto& group : s.groups) compute += group.forward + group.backward;
  // Starts are spread over one round of all workers: a step on its own, or, where the servers are
  // short, the time that they need to pass everybody's gradients. Workers that start together would
  // stay in step.
  int remote = 0;
  for (const auto& c : s.classes) remote += c.local ? 0 : c.count;
  const Seconds alone = compute + 2.0 * (s.variables() / s.server_nic);
  const Seconds busy = double(remote) / s.servers * s.variables() / s.server_nic;
  const Seconds about = std::max(alone, busy);
  std::vector<RandomStream> streams;
  std::vector<Deps> at;
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
      const auto step = add_worker_step(p.graph, s, workers[w], factor, true, at[w]);
      const ActivityId end = p.graph.barrier(step.pushed);
      run.step_end[w].push_back(end);
      at[w] = {end};
    }
  }
  return run;
}

double asynchronous_rate(const ParameterServerSetup& s, int staleness, double jitter,
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
  for (const auto& of_worker : run.step_end)
    for (const ActivityId end : of_worker) ends.push_back(finish[std::size_t(end)]);
  std::sort(ends.begin(), ends.end());
  const std::size_t from = ends.size() / 3, to = ends.size() * 2 / 3;
  const double rate = double(to - from) / (ends[to] - ends[from]).count();
  int remote = 0;
  for (const auto& c : s.classes) remote += c.local ? 0 : c.count;
  if (remote == 0) return rate;
  const double passed = double(s.servers) / (s.variables() / s.server_nic).count();
  return std::min(rate, passed * workers / remote);
}

}  // namespace reckon
