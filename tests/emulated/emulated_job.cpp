#include "emulated/emulated_job.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "sim/measurement/measured_run.h"

namespace reckon::emulated {
namespace {

std::string pool(const std::string& name, const std::string& role, double link, int nodes) {
  return fmt::format(
      "    - {{name: {}, role: {}, machine: {{vcpu: 1, memory: 2GiB, network: {}Mbps}}, nodes: "
      "{}}}\n",
      name, role, link, nodes);
}

std::vector<BytesPerSecond> links_of(const Job& job) {
  std::vector<double> rates(std::size_t(job.workers), job.worker_link);
  if (job.chief_link > 0) rates.front() = job.chief_link;
  rates.insert(rates.end(), std::size_t(job.servers), job.server_link);
  std::vector<BytesPerSecond> links;
  for (const double rate : rates) links.push_back(BytesPerSecond{rate * 1e6 / 8});
  return links;
}

std::string checked(const test::Output& out) {
  if (out.code != 0) throw std::runtime_error(out.out + out.err);
  return out.out;
}

/// Workers that take steps of their own share a server's link out as TCP does, not evenly: how many
/// steps all of them take together is what a job's time depends on. The time of a step at that
/// rate.
template <class Part>
double of_own_steps(const Measurements& log, const Part& part) {
  std::map<int, std::vector<double>> by_rank;
  for (const StepRecord& s : log.steps)
    if (s.step > 0) by_rank[s.rank].push_back(part(s));
  double steps_a_second = 0;
  for (auto& [rank, values] : by_rank) steps_a_second += 1 / median(std::move(values));
  return static_cast<double>(by_rank.size()) / steps_a_second;
}

template <class Part>
double of_steps(const test::Workspace& w, const Job& job, const std::string& out,
                const Part& part) {
  const auto log = read_measurement_log(w.path(out) / "measurements.jsonl");
  if (!log) throw std::runtime_error(format(log.error()));
  if (job.asynchronous()) return of_own_steps(*log, part);
  std::map<std::int64_t, double> longest;
  for (const StepRecord& s : log->steps)
    if (s.step > 0) longest[s.step] = std::max(longest[s.step], part(s));
  std::vector<double> values;
  for (const auto& [step, value] : longest) values.push_back(value);
  return median(std::move(values));
}

}  // namespace

std::string scenario(const Job& job) {
  const std::string strategy =
      job.kind == Exchange::layout ? job.strategy
      : job.servers == 0
          ? fmt::format("{{kind: multi_worker_mirrored, workers: {}}}", job.workers)
          : fmt::format("{{kind: parameter_server, workers: {}, parameter_servers: {}, mode: {}}}",
                        job.workers, job.servers,
                        job.asynchronous() ? "asynchronous" : "synchronous");
  std::string text = fmt::format(
      "name: emulated\nworkload:\n{}  train: {{steps: {}}}\n  precision: fp32\n"
      "  optimizer: {{kind: sgd, clip_norm: 0}}\n  strategy: {}\n  checkpoint: {{interval: none}}\n"
      "cluster:\n  provider: on_premises\n  pools:\n",
      job.workload, kRuns + 1, strategy);
  if (job.chief_link > 0) text += pool("chief", "chief", job.chief_link, 1);
  const int alike = job.workers - (job.chief_link > 0 ? 1 : 0);
  if (alike > 0) text += pool("workers", "worker", job.worker_link, alike);
  if (job.servers > 0) text += pool("servers", "parameter_server", job.server_link, job.servers);
  return text;
}

Json forecast(const test::Workspace& w, const std::string& file, const std::string& options) {
  return Json::parse(checked(w.run("simulate " + file +
                                   " --catalog layer --replications 1 --format json " + options)))
      .at("step");
}

void run(const test::Workspace& w, const Job& job, const std::string& file,
         const std::string& out) {
  const EmulatedCluster cluster(links_of(job));
  // What is not learned from leaves its records alone: no weights go over the slow links.
  const std::string records =
      job.learned ? fmt::format("--out {0} >> {0}.log 2>&1", out)
                  : fmt::format("--log-records >> {0}/measurements.jsonl 2>> {0}.log", out);
  std::string line = fmt::format(
      "export LD_PRELOAD=" RECKON_CUBIC_SOCKETS
      "; mkdir -p {}; (umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > "
      "job.secret); export RECKON_SECRET_FILE=job.secret; pids=''; ",
      job.learned ? "." : out);
  for (int host = 0; host < job.workers + job.servers; ++host) {
    const bool server = host >= job.workers;
    line += fmt::format(
        "timeout 300 ip netns exec {} '" RECKON_BINARY_DIR
        "/bin/reckon-worker' {} --catalog layer "
        "--role {} --rank {} --workers {} --servers {} --master {}:29500 --address {} --threads 1 "
        "--device cpu{} {} & pids=\"$pids $!\"; ",
        cluster.name_of(host), file, server ? "ps" : "worker", server ? host - job.workers : host,
        job.workers, job.servers, EmulatedCluster::address(0), EmulatedCluster::address(host),
        job.kind == Exchange::servers_apart ? " --phases-apart" : "",
        server ? fmt::format(">> {}.log 2>&1", out) : records);
  }
  line += "code=0; for p in $pids; do wait $p || code=$?; done; exit $code";
  const test::Output ended = w.run_shell(line);
  if (ended.code != 0) throw std::runtime_error(test::read_all(w.path(out + ".log")) + ended.err);
}

double measured(const test::Workspace& w, const Job& job, const std::string& out,
                Seconds StepRecord::*part) {
  return of_steps(w, job, out, [part](const StepRecord& s) { return (s.*part).count(); });
}

double megabytes_sent(const test::Workspace& w, const Job& job, const std::string& out) {
  return of_steps(w, job, out, [](const StepRecord& s) { return s.sent.v / 1e6; });
}

std::string calibrate(const test::Workspace& w, const std::string& learned) {
  constexpr int kRefused = 1;
  const test::Output out = w.run("calibrate" + learned + " --catalog layer --out calibration.yaml");
  if (out.code == kRefused) {
    fmt::print(
        "calibrate refused the overlay, so that the forecasts below stay the catalog's:\n{}\n",
        out.err);
    return "";
  }
  checked(out);
  return "--calibration calibration.yaml";
}

double median(std::vector<double> values) {
  if (values.empty()) throw std::runtime_error("nothing was measured");
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace reckon::emulated
