#include "chaos/serving_job.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "executor/serve/http_client.h"
#include "executor/serve/model_version.h"

namespace reckon::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr std::size_t kClients = 2, kMostVersions = 6;
const std::string kWorker = "'" RECKON_BINARY_DIR "/bin/reckon-worker' ";
constexpr const char* kPath = "/v1/models/mlp_mnist:predict";
constexpr const char* kPlan =
    "name: tiny\nworkload:\n  model: mlp_mnist\n"
    "  dataset: {samples: 1000, bytes_per_sample: 785B}\n  train: {steps: 2}\n"
    "  batch_per_accelerator: 8\n  checkpoint: {interval: none}\n"
    "cluster:\n  provider: on_premises\n"
    "  pools: [{name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, nodes: 1}]\n";

/// Free now; the server is started at it again and again.
std::uint16_t free_port() { return listen_on({"127.0.0.1", 0}).local().port; }

void must(const Output& out, const char* what) {
  if (out.code != 0) throw Lost(fmt::format("{} ended with {}: {}", what, out.code, out.err));
}

std::string request_of(std::size_t number) {
  constexpr float kStep = 0.25F;  // unlike the others': nobody gets another's answer
  nlohmann::json body;
  body["instances"].push_back(std::vector<float>(784, kStep * float(number + 1)));
  return body.dump();
}

/// Empty: no answer to one instance.
std::vector<double> numbers_of(const HttpAnswer& answer) {
  const auto body = nlohmann::json::parse(answer.body, nullptr, false);
  if (answer.status != 200 || !body.is_object() || !body["predictions"].is_array()) return {};
  return body["predictions"].at(0);
}

/// Requests of one pass share its products, whose sums are rounded by their number.
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kRounding = 1e-5;
  return a.size() == b.size() &&
         std::ranges::equal(a, b, [](double x, double y) { return std::abs(x - y) <= kRounding; });
}

ProcessSpec server_of(const Workspace& w, std::uint16_t port) {
  return {"server",
          {"sh", "-c",
           fmt::format("cd '{}' && exec {}serve disk/mlp --listen {} --poll 50ms --linger "
                       "0s --threads 1 > server.out 2>> server.err",
                       w.path("").string(), kWorker, port)},
          {},
          {}};
}

}  // namespace

TrainedModel ServingJob::trained(const Workspace& w) {
  w.write("plan.yaml", kPlan);
  must(w.run_shell(kWorker + "plan.yaml --out trained --threads 1"), "training");
  must(w.run_shell(kWorker + "export trained exported --plan plan.yaml"), "export");
  fs::create_directories(w.path("disk"));
  fs::remove_all(w.path("disk/mlp"));
  fs::copy(w.path("exported"), w.path("disk/mlp"), fs::copy_options::recursive);
  const std::uint16_t port = free_port();
  const ChildProcess server(server_of(w, port));
  HttpClient client(port);
  TrainedModel model;
  for (std::size_t number = 0; number < kClients; ++number) {
    model.requests.push_back(request_of(number));
    HttpAnswer first = client.post(kPath, model.requests.back());
    while (first.status == 503) first = client.post(kPath, model.requests.back());  // it loads
    model.answers.push_back(numbers_of(first));
    if (model.answers.back().empty()) throw Lost("undisturbed, the server answers: " + first.body);
  }
  return model;
}

ServingJob::ServingJob(const Workspace& w, const TrainedModel& model, const FaultCount& faults)
    : w_(w), model_(model), faults_(faults), port_(free_port()) {
  fs::remove_all(disk() / "mlp");
  fs::copy(w.path("exported"), disk() / "mlp", fs::copy_options::recursive);
  start();
  for (std::size_t k = 0; k < kClients; ++k)
    clients_.emplace_back([this, k] { ask_until_done(k); });
}

ServingJob::~ServingJob() {
  done_ = true;
  server_.reset();  // killed: whoever still waits for an answer gets none
  for (std::thread& client : clients_)
    if (client.joinable()) client.join();
}

void ServingJob::start() {
  began_ = faults_.now();
  ++starts_;
  server_ = std::make_unique<ChildProcess>(server_of(w_, port_));
}

std::vector<pid_t> ServingJob::processes() const {
  return server_ ? std::vector<pid_t>{server_->id()} : std::vector<pid_t>{};
}

void ServingJob::tick() {
  if (const std::lock_guard lock(mutex_); failure_) throw Lost(*failure_);
  if (const auto end = server_->poll_end()) return ended(*end);
  constexpr std::chrono::milliseconds kBetweenVersions{700};
  if (finishing_ || Clock::now() - brought_ < kBetweenVersions) return;
  brought_ = Clock::now();
  bring_version();
}

void ServingJob::ended(const ProcessEnd& end) {
  if (finishing_ && end.good())
    over_ = true;
  else if (end.signal == SIGKILL && faults_.since(began_, Harm::process))
    start();
  else
    throw Lost(fmt::format("the server {}: {}", to_text(end), read_all(w_.path("server.err"))));
}

/// The same weights as the next version: on a full disk that fails, and leaves nothing.
void ServingJob::bring_version() {
  const fs::path models = disk() / "mlp";
  const auto before = list_versions(models);
  if (before.size() > kMostVersions) fs::remove_all(before.front().directory);
  const auto moment = faults_.now();
  const Output out = w_.run_shell(kWorker + "export trained disk/mlp --plan plan.yaml");
  if (out.code == 0)
    ++versions_;
  else if (!faults_.since(moment, Harm::disk))
    throw Lost(fmt::format("export ended with {}: {}", out.code, out.err));
}

void ServingJob::ask_until_done(std::size_t number) {
  while (!done_) {
    const auto before = faults_.now();
    try {
      HttpClient client(port_, Seconds{30});
      while (!done_) ask_once(client, number);
    } catch (const SocketError& e) {
      const bool excused =
          done_ || faults_.since(before, Harm::process) || faults_.since(before, Harm::network);
      if (!excused) return fail(fmt::format("a request got no answer: {}", e.what()));
      ++taken_away_;
    }
  }
}

void ServingJob::ask_once(HttpClient& client, std::size_t number) {
  const HttpAnswer answer = client.post(kPath, model_.requests[number]);
  const bool refused = answer.status == 503 && answer.body.find("\"error\"") != std::string::npos;
  if (same(numbers_of(answer), model_.answers[number]))
    ++answered_;
  else if (refused)
    ++refused_;
  else
    fail(fmt::format("a request was answered with {}: {}", answer.status, answer.body));
  if (answer.last) throw SocketError(SocketError::Kind::closed, "the server ends");
}

void ServingJob::fail(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = what;
  done_ = true;
}

void ServingJob::finish() {
  // It is there, and answers, once nobody disturbs it.
  const int before = answered_;
  const Deadline patience = Deadline::after(Seconds{60});
  while (answered_ == before) {
    tick();
    if (patience.passed()) throw Lost("no request is answered a minute after the last fault");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  done_ = true;
  for (std::thread& client : clients_) client.join();
  tick();
  finishing_ = true;
  server_->signal(SIGTERM);
}

void ServingJob::check() {
  if (const std::lock_guard lock(mutex_); failure_) throw Lost(*failure_);
  if (answered_ == 0) throw Lost("no request was answered");
  const auto versions = list_versions(disk() / "mlp");
  for (const ModelVersion& version : versions)
    if (read_all(version.weights()) != read_all(w_.path("exported/1/model.safetensors")))
      throw Lost(version.directory.string() + " is not what was exported");
}

std::string ServingJob::summary() const {
  return fmt::format(
      "{} requests answered, {} refused, {} lost with a connection; {} starts, {} new "
      "versions",
      answered_.load(), refused_.load(), taken_away_.load(), starts_, versions_);
}

}  // namespace reckon::test
