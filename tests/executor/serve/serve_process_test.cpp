#include <poll.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "executor/launch/process.h"
#include "http_client.h"

// `reckon-worker` trains, exports and serves: real processes, real files. Everything waits for what
// must come; nothing is held against a clock.
using namespace reckon;
using Json = nlohmann::json;
using test::HttpClient;

namespace {

const std::string kPlan = R"(
name: tiny
workload:
  model: mlp_mnist
  dataset: {samples: 1000, bytes_per_sample: 785B}
  train: {steps: 2}
  batch_per_accelerator: 8
  checkpoint: {interval: none}
cluster:
  provider: on_premises
  pools: [{name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, nodes: 1}]
)";

struct Place {
  std::filesystem::path root;
  Place() {
    char name[] = "/tmp/reckon-serving-XXXXXX";
    root = ::mkdtemp(name);
    std::ofstream(root / "plan.yaml") << kPlan;
  }
  ~Place() { std::filesystem::remove_all(root); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  std::string at(const char* name) const { return (root / name).string(); }
};

/// A worker and what it has printed.
class Worker {
 public:
  explicit Worker(std::vector<std::string> arguments) : process_(spec_of(std::move(arguments))) {}
  /// Reads until the text has come, or the process has ended.
  const std::string& until(const std::string& text) {
    while (said_.find(text) == std::string::npos && read()) {
    }
    return said_;
  }
  int end() {
    while (read()) {
    }
    std::optional<ProcessEnd> end;
    while (!(end = process_.poll_end())) ::usleep(1000);
    INFO(said_);
    CHECK(end->signal == 0);
    return end->code;
  }
  void signal(int number) { process_.signal(number); }

 private:
  static ProcessSpec spec_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RECKON_BINARY_DIR "/bin/reckon-worker");
    ProcessSpec spec;
    spec.name = "worker";
    spec.command = std::move(arguments);
    spec.reports = false;
    return spec;
  }
  /// False: the end.
  bool read() {
    pollfd output{process_.output(), POLLIN, 0};
    ::poll(&output, 1, -1);
    char part[4096];
    const ssize_t n = ::read(process_.output(), part, sizeof part);
    if (n > 0) said_.append(part, std::size_t(n));
    return n != 0;
  }

  ChildProcess process_;
  std::string said_;
};

std::uint16_t port_in(const std::string& text) {
  const std::string mark = "http://127.0.0.1:";
  const std::size_t at = text.find(mark);
  REQUIRE(at != std::string::npos);
  return std::uint16_t(std::strtoul(text.c_str() + at + mark.size(), nullptr, 10));
}

void export_once(const Place& place) {
  Worker worker({"export", place.at("run"), place.at("mlp"), "--plan", place.at("plan.yaml")});
  REQUIRE(worker.end() == 0);
}

}  // namespace

TEST_CASE(
    "what a run has trained is exported, served, replaced by a newer version, and ends well") {
  const Place place;
  Worker training({place.at("plan.yaml"), "--out", place.at("run"), "--threads", "1"});
  REQUIRE(training.end() == 0);
  export_once(place);
  Worker server({"serve", place.at("mlp"), "--port", "0", "--loopback", "--poll", "10ms",
                 "--linger", "0s", "--threads", "1"});
  HttpClient client(port_in(server.until(":predict\n")));
  const std::string path = "/v1/models/mlp_mnist";
  Json body;
  body["instances"].push_back(std::vector<float>(784, 0.5f));
  const auto answer = client.post(path + ":predict", body.dump());
  REQUIRE(answer.status == 200);
  CHECK(Json::parse(answer.body)["predictions"][0].size() == 10);

  std::filesystem::create_directories(place.root / "mlp" / "2");  // nothing is in it
  server.until("version 2 cannot be loaded, 1 goes on");
  CHECK(client.post(path + ":predict", body.dump()).body == answer.body);
  export_once(place);
  server.until("version 3 answers");
  CHECK(client.post(path + "/versions/3:predict", body.dump()).body == answer.body);

  server.signal(SIGTERM);
  CHECK(server.end() == 0);
}

TEST_CASE("a server that is told to stop answers new connections until the wait is over") {
  const Place place;
  Worker training({place.at("plan.yaml"), "--out", place.at("run"), "--threads", "1"});
  REQUIRE(training.end() == 0);
  export_once(place);
  Worker server(
      {"serve", place.at("mlp"), "--port", "0", "--loopback", "--linger", "1h", "--threads", "1"});
  const std::uint16_t port = port_in(server.until(":predict\n"));
  Json body;
  body["instances"].push_back(std::vector<float>(784, 0.5f));
  const std::string path = "/v1/models/mlp_mnist:predict", text = body.dump();
  HttpClient kept(port);
  REQUIRE(kept.post(path, text).status == 200);

  server.signal(SIGTERM);
  server.until("stopping: ");
  CHECK(HttpClient(port).get("/healthz").status == 503);
  CHECK(kept.post(path, text).status == 200);
  for (int k = 0; k < 20; ++k) CHECK(HttpClient(port).post(path, text).status == 200);
  // Those that are on their way when the wait ends.
  std::vector<std::unique_ptr<HttpClient>> late;
  for (int k = 0; k < 8; ++k) {
    late.push_back(std::make_unique<HttpClient>(port));
    late.back()->send(HttpClient::request("POST", path, text));
  }
  server.signal(SIGTERM);
  for (auto& client : late) CHECK(client->answer().status == 200);
  CHECK(server.end() == 0);
}

TEST_CASE(
    "a model directory without a version, and a run that nobody knows, are refused with code 2") {
  const Place place;
  Worker server({"serve", place.at("nothing"), "--port", "0"});
  CHECK(server.end() == 2);
  CHECK_THAT(server.until(""), Catch::Contains("holds no version"));
  Worker exporter({"export", place.at("nothing"), place.at("mlp")});
  CHECK(exporter.end() == 2);
  CHECK_THAT(exporter.until(""), Catch::Contains("--plan FILE"));
}
