#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>
#include <thread>

#include "cli/run_reckon.h"
#include "executor/launch/process.h"
#include "executor/train/records/measurement_log.h"
#include "support/skip.h"
#include "support/small_job.h"
#include "support/trained_weights.h"

// What may befall `reckon run` besides a killed process (run_test.cpp): each ends with a clear
// error, or goes on.
using namespace reckon;
using namespace reckon::test;

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

const std::string kTwoWorkers = "{kind: multi_worker_mirrored, workers: 2}";
const std::string kHere = small_pool(2);
constexpr const char* kRobustRun = "run job.yaml --replications 20 --retry-delay 0s ";

/// `reckon run` in the background, as a shell's child that becomes it.
ChildProcess start(const Workspace& w, const std::string& options) {
  return ChildProcess({"reckon",
                       {"sh", "-c",
                        "cd '" + w.path("").string() +
                            "' && exec '" RECKON_BINARY_DIR "/bin/reckon' " + kRobustRun + options},
                       {},
                       {}});
}

bool wait_until(const std::function<bool()>& there) {
  const auto until = Clock::now() + std::chrono::seconds(60);
  while (!there()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// A socket that listens at a port of its own.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t length = sizeof address;
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(::listen(fd_, 1) == 0);
    REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int port() const { return port_; }

 private:
  int fd_, port_ = 0;
};

/// All that a server at that port answers.
std::string ask(int port, const std::string& request) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(std::uint16_t(port));
  std::string answer;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) == ssize_t(request.size())) {
    char part[4096];
    for (ssize_t n = 0; (n = ::recv(fd, part, sizeof part, 0)) > 0;)
      answer.append(part, std::size_t(n));
  }
  ::close(fd);
  return answer;
}

}  // namespace

TEST_CASE("a loss that is not a number ends the run at once, with the step") {
  const Workspace w;
  w.write("job.yaml", small_job("small", kTwoWorkers, 200,
                                "  optimizer: {kind: sgd, learning_rate: 1000000}\n") +
                          kHere);
  const Output r = w.run(kRobustRun + std::string("--out run --retries 5"));
  INFO(r.err);
  CHECK(r.code == 1);
  CHECK(contains(r.err, "loss"));
  CHECK(contains(r.err, "not a number"));
  const auto read = read_measurement_log(w.path("run") / "measurements.jsonl");
  REQUIRE(read);
  CHECK(read->runs.size() == 1);  // another start would end so again
  REQUIRE(read->ends.size() == 1);
  CHECK_FALSE(read->ends[0].finished);
}

TEST_CASE("a second job in a run's directory is refused, and the first goes on untouched") {
  const Workspace w;
  w.write("job.yaml", small_job("small", kTwoWorkers, 4000) + kHere);
  ChildProcess first = start(w, "--out run > first.out 2>&1");
  REQUIRE(wait_until([&] { return contains(read_all(w.path("run/measurements.jsonl")), "step"); }));
  const std::string plan = read_all(w.path("run/plan.reckon"));
  w.write("other.yaml", small_job("small", "{kind: single}", 10) + small_pool(1));
  const Output second = w.run("run other.yaml --replications 20 --out run");
  CHECK(second.code == 3);
  CHECK(contains(second.err, "is in use by process " + std::to_string(first.id())));
  CHECK(read_all(w.path("run/plan.reckon")) == plan);  // the first's, not the second's
  ::kill(first.id(), SIGTERM);
  CHECK(wait_until([&] { return first.poll_end().has_value(); }));
  const Output third = w.run("run other.yaml --replications 20 --out run");
  CHECK(third.code == 3);
  CHECK(contains(third.err, "holds a run already"));
  CHECK(read_all(w.path("run/plan.reckon")) == plan);
}

TEST_CASE("metrics of a run are Prometheus' text format, and a port in use is said to be") {
  const Workspace w;
  w.write("job.yaml", small_job("small", kTwoWorkers, 100000) + kHere);
  const Listener taken;
  const Output refused =
      w.run(kRobustRun + ("--out run --metrics " + std::to_string(taken.port())));
  CHECK(refused.code == 3);
  CHECK(contains(refused.err, "cannot listen at 127.0.0.1:" + std::to_string(taken.port()) +
                                  ": Address already in use"));
  CHECK_FALSE(fs::exists(w.path("run/measurements.jsonl")));  // nothing has begun
  CHECK(w.run(kRobustRun + std::string("--out run --metrics 70000")).code == 2);

  ChildProcess job = start(w, "--out run --metrics 0 > job.out 2>&1");
  const std::string where = "http://127.0.0.1:";
  REQUIRE(wait_until([&] { return contains(read_all(w.path("job.out")), "/metrics"); }));
  const std::string said = read_all(w.path("job.out"));
  const int port = std::stoi(said.substr(said.find(where) + where.size()));
  std::string answer;
  REQUIRE(wait_until([&] {
    answer = ask(port, "GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    return contains(answer, "reckon_run_step_seconds{");
  }));
  CHECK(contains(answer, "HTTP/1.1 200"));
  CHECK(contains(answer, "Content-Type: text/plain; version=0.0.4"));
  CHECK(contains(ask(port, "GET / HTTP/1.0\r\n\r\n"), " 404 "));
  CHECK(contains(ask(port, "POST /metrics HTTP/1.0\r\nContent-Length: 0\r\n\r\n"), " 405 "));
  ask(port, "nonsense\r\n\r\n");
  ::kill(job.id(), SIGTERM);
  CHECK(wait_until([&] { return job.poll_end().has_value(); }));

  // Each family once: HELP, TYPE, then its samples, NAME{labels} value.
  std::istringstream lines(answer.substr(answer.find("\r\n\r\n") + 4));
  std::set<std::string> families;
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    std::istringstream words(line);
    std::string mark, kind, name;
    if (line.starts_with("# HELP ")) {
      words >> mark >> kind >> family;
      CHECK(families.insert(family).second);
    } else if (line.starts_with("# TYPE ")) {
      words >> mark >> kind >> name >> kind;
      CHECK(name == family);
      CHECK((kind == "gauge" || (kind == "counter" && name.ends_with("_total"))));
    } else {
      CHECK(line.starts_with(family + "{scenario=\"small\""));
      const std::size_t end = line.rfind("} ");
      REQUIRE(end != std::string::npos);
      CHECK_FALSE(std::isnan(std::stod(line.substr(end + 2))));
    }
  }
  for (const char* name :
       {"reckon_run_steps", "reckon_run_steps_done", "reckon_run_loss",
        "reckon_run_samples_per_second", "reckon_run_step_seconds",
        "reckon_run_step_forecast_seconds", "reckon_run_finish_timestamp_seconds",
        "reckon_run_starts_total", "reckon_run_interruptions_total"})
    CHECK(families.contains(name));
}

TEST_CASE("a full disk ends the run with its name, and what was accepted is still there") {
  const Workspace w;
  const fs::path disk = w.path("disk");
  fs::create_directories(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=256k") != 0)
    skip_test("a small disk takes the right to mount one");
  struct Mounted {
    fs::path at;
    ~Mounted() { ::umount2(at.c_str(), MNT_DETACH); }
  } const mounted{disk};
  w.write("job.yaml", small_job("small", kTwoWorkers, 100000) + kHere);
  const Output r = w.run(kRobustRun + std::string("--out disk/run --checkpoint-steps 1000"));
  INFO(r.out << r.err);
  CHECK(r.code == 3);  // although on premises nobody counts starts
  CHECK(contains(r.err, "the disk is full"));
  const auto read = read_measurement_log(disk / "run" / "measurements.jsonl");
  REQUIRE(read);
  const auto useful = read->useful_steps();
  REQUIRE(!useful.empty());
  for (std::size_t k = 0; k < useful.size(); ++k) REQUIRE(useful[k].step == std::int64_t(k));
}

TEST_CASE("parameter servers without nodes of their own run beside the workers, as simulated") {
  const Workspace w;
  w.write("job.yaml", small_job("small", "{kind: parameter_server, workers: 2}", 20) + kHere);
  REQUIRE(w.run("simulate job.yaml --replications 20").code == 0);
  const Output r = w.run(kRobustRun + std::string("--out run"));
  INFO(r.out << r.err);
  REQUIRE(r.code == 0);
  CHECK(fs::exists(w.path("run/logs/rank-2.log")));
  const auto read = read_measurement_log(w.path("run/measurements.jsonl"));
  REQUIRE(read);
  CHECK(read->useful_steps().size() == 20);
  CHECK(read->useful_steps()[10].push.count() > 0);
}

TEST_CASE("two workers with two synchronous parameter servers train what all-reduce trains") {
  const Workspace w;
  w.write("job.yaml", small_job("small", kTwoWorkers, 60) + kHere);
  REQUIRE(w.run(kRobustRun + std::string("--out ring")).code == 0);
  w.write("job.yaml",
          small_job("small",
                    "{kind: parameter_server, workers: 2, parameter_servers: 2, mode: "
                    "synchronous}",
                    60) +
              kHere +
              "    - {name: servers, role: parameter_server, machine: {vcpu: 1, memory: 2GiB, "
              "network: 10Gbps}, nodes: 2}\n");
  const Output r = w.run(kRobustRun + std::string("--out servers"));
  INFO(r.err);
  REQUIRE(r.code == 0);
  const auto ring = trained_weights(w.path("ring/model.safetensors"));
  const auto servers = trained_weights(w.path("servers/model.safetensors"));
  REQUIRE(ring.size() == 5121);
  REQUIRE(servers.size() == ring.size());
  float worst = 0;
  for (std::size_t k = 0; k < ring.size(); ++k)
    worst = std::max(worst, std::abs(ring[k] - servers[k]));
  CHECK(worst < 1e-5F);  // sums of two numbers, in another order at most
  const auto read = read_measurement_log(w.path("servers/measurements.jsonl"));
  REQUIRE(read);
  CHECK(read->useful_steps().size() == 60);
  CHECK(read->useful_steps()[10].push.count() > 0);
}
