#include <poll.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "executor/launch/process.h"
#include "http_client.h"
#include "support/descriptors.h"
#include "support/listening.h"

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
  /// before: words before the program's name.
  explicit Worker(std::vector<std::string> arguments, std::vector<std::string> before = {})
      : process_(spec_of(std::move(arguments), std::move(before))) {}
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
  static ProcessSpec spec_of(std::vector<std::string> arguments, std::vector<std::string> before) {
    before.emplace_back(RECKON_BINARY_DIR "/bin/reckon-worker");
    before.insert(before.end(), arguments.begin(), arguments.end());
    ProcessSpec spec;
    spec.name = "worker";
    spec.command = std::move(before);
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
  Worker server({"serve", place.at("mlp"), "--listen", "0", "--poll", "10ms", "--linger", "0s",
                 "--threads", "1"});
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

TEST_CASE("a version that cannot be loaded keeps no good one below it from answering") {
  const Place place;
  Worker training({place.at("plan.yaml"), "--out", place.at("run"), "--threads", "1"});
  REQUIRE(training.end() == 0);
  export_once(place);
  namespace fs = std::filesystem;
  fs::create_directories(place.root / "mlp" / "4");  // nothing is in it
  Worker server({"serve", place.at("mlp"), "--listen", "0", "--poll", "10ms", "--linger", "0s",
                 "--threads", "1"});
  const std::string said = server.until(":predict\n");
  CHECK_THAT(said, Catch::Contains("version 1 of mlp_mnist answers"));
  fs::copy(place.root / "mlp" / "1", place.root / "copy");
  fs::rename(place.root / "copy", place.root / "mlp" / "2");
  server.until("version 2 answers");
  // Its plan comes late: what was refused is looked at again.
  fs::create_directories(place.root / "mlp" / "3");
  fs::copy(place.root / "mlp" / "1" / "model.safetensors",
           place.root / "mlp" / "3" / "model.safetensors");
  server.until("version 3 cannot be loaded, 2 goes on");
  fs::copy(place.root / "mlp" / "1" / "plan.yaml", place.root / "mlp" / "3" / "plan.yaml");
  CHECK_THAT(server.until("version 3 answers"), Catch::Contains("version 3 answers"));
  server.signal(SIGTERM);
  CHECK(server.end() == 0);
}

TEST_CASE("a server without a version waits for one, and says that it is not ready") {
  const Place place;
  Worker training({place.at("plan.yaml"), "--out", place.at("run"), "--threads", "1"});
  REQUIRE(training.end() == 0);
  std::filesystem::create_directories(place.root / "mlp" / "1");  // nothing is in it
  Worker server({"serve", place.at("mlp"), "--listen", "0", "--poll", "10ms", "--linger", "0s",
                 "--threads", "1"});
  HttpClient client(port_in(server.until("/healthz until then\n")));
  CHECK(client.get("/healthz").status == 503);
  CHECK(client.get("/livez").status == 200);
  CHECK(client.get("/metrics").status == 200);
  Json body;
  body["instances"].push_back(std::vector<float>(784, 0.5f));
  const std::string path = "/v1/models/mlp_mnist:predict";
  const auto early = client.post(path, body.dump());
  CHECK(early.status == 503);
  CHECK_THAT(early.body, Catch::Contains("no version has been loaded yet"));

  export_once(place);
  CHECK_THAT(server.until(":predict\n"), Catch::Contains("version 2 of mlp_mnist answers"));
  CHECK(client.get("/healthz").status == 200);
  CHECK(client.post(path, body.dump()).status == 200);
  CHECK_THAT(client.get("/metrics").body,
             Catch::Contains("reckon_serving_model_version{model=\"mlp_mnist\"} 2"));
  server.signal(SIGTERM);
  CHECK(server.end() == 0);
}

TEST_CASE("what was trained beside a service is exported without it") {
  const Place place;
  Worker training({place.at("plan.yaml"), "--out", place.at("run"), "--threads", "1"});
  REQUIRE(training.end() == 0);
  std::string both = kPlan;
  both.replace(both.find("nodes: 1}"), 10,
               "nodes: 1}, {name: answers, role: inference, machine: {vcpu: 1, memory: 2GiB, "
               "network: 10Gbps}, nodes: 1}]");
  both += "serving: {model: mlp_mnist, requests_per_second: 1, replicas: 1}\n";
  std::ofstream(place.root / "plan.yaml") << both;
  export_once(place);
  Worker server({"serve", place.at("mlp"), "--listen", "0", "--linger", "0s", "--threads", "1"});
  CHECK_THAT(server.until(":predict\n"), Catch::Contains("version 1 of mlp_mnist answers"));
  server.signal(SIGTERM);
  CHECK(server.end() == 0);
}

TEST_CASE("a model whose config lies beside the plan is served where the plan is not") {
  const Place place;
  std::string plan = kPlan;
  plan.replace(plan.find("mlp_mnist"), 9, "{huggingface: ours/small.json}");
  plan.replace(plan.find("{samples: 1000, bytes_per_sample: 785B}"), 39,
               "{samples: 1000, bytes_per_sample: 64B}");
  plan.replace(plan.find("  train:"), 8, "  sequence_length: 8\n  train:");
  std::filesystem::create_directories(place.root / "ours");
  std::ofstream(place.root / "plan.yaml") << plan;
  std::ofstream(place.root / "ours" / "small.json") << R"({
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32,
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 2, "max_position_embeddings": 16, "hidden_act": "silu"})";
  Worker training({place.at("plan.yaml"), "--out", place.at("run"), "--threads", "1"});
  REQUIRE(training.end() == 0);
  export_once(place);
  std::filesystem::remove_all(place.root / "ours");
  Worker server({"serve", place.at("mlp"), "--listen", "0", "--linger", "0s", "--threads", "1"});
  CHECK_THAT(server.until(":predict\n"), Catch::Contains("version 1 of"));
  server.signal(SIGTERM);
  CHECK(server.end() == 0);
}

TEST_CASE("a server that is told to stop answers new connections until the wait is over") {
  const Place place;
  Worker training({place.at("plan.yaml"), "--out", place.at("run"), "--threads", "1"});
  REQUIRE(training.end() == 0);
  export_once(place);
  Worker server({"serve", place.at("mlp"), "--listen", "0", "--linger", "1h", "--threads", "1"});
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

TEST_CASE("a server listens on loopback unless it is told otherwise, and asks for its token") {
  const Place place;
  std::filesystem::create_directories(place.root / "mlp");
  std::ofstream(place.root / "token") << "abc\n";
  Worker here({"serve", place.at("mlp"), "--listen", "0", "--token-file", place.at("token"),
               "--linger", "0s", "--threads", "1"});
  const std::uint16_t port = port_in(here.until("/healthz until then\n"));
  CHECK(test::listening_addresses(port) == std::vector<std::string>{"0100007F"});
  CHECK(HttpClient(port).get("/livez").status == 200);
  CHECK(HttpClient(port).get("/metrics").status == 401);
  HttpClient client(port);
  client.send("GET /metrics HTTP/1.1\r\nAuthorization: Bearer abc\r\n\r\n");
  CHECK(client.answer().status == 200);
  Worker all(
      {"serve", place.at("mlp"), "--listen", "0.0.0.0:0", "--linger", "0s", "--threads", "1"});
  CHECK(test::listening_addresses(port_in(all.until("/healthz until then\n"))) ==
        std::vector<std::string>{"00000000"});
  for (Worker* server : {&here, &all}) {
    server->signal(SIGTERM);
    CHECK(server->end() == 0);
  }
}

TEST_CASE("1,030 connections that say one byte do not keep a probe from its answer") {
  constexpr int kCrowd = 1030;
  test::need_descriptors(kCrowd + 100);
  const Place place;
  std::filesystem::create_directories(place.root / "mlp");
  Worker server({"serve", place.at("mlp"), "--listen", "0", "--linger", "0s", "--threads", "1"},
                {"prlimit", "--nofile=1024:1024"});
  const std::uint16_t port = port_in(server.until("/healthz until then\n"));
  std::vector<std::unique_ptr<HttpClient>> crowd;
  for (int k = 0; k < kCrowd; ++k) {
    crowd.push_back(std::make_unique<HttpClient>(port));
    crowd.back()->send("G");
  }
  // Before, the answer came when the first of them was given up: after a minute.
  CHECK(HttpClient(port, Seconds{20}).get("/livez").status == 200);
  CHECK(HttpClient(port, Seconds{20}).get("/healthz").status == 503);  // there is no version
  crowd.clear();
  server.signal(SIGTERM);
  CHECK(server.end() == 0);
}

TEST_CASE(
    "a model directory that is not there, and a run that nobody knows, are refused with code 2") {
  const Place place;
  Worker server({"serve", place.at("nothing"), "--listen", "0"});
  CHECK(server.end() == 2);
  CHECK_THAT(server.until(""), Catch::Contains("there is no directory"));
  Worker exporter({"export", place.at("nothing"), place.at("mlp")});
  CHECK(exporter.end() == 2);
  CHECK_THAT(exporter.until(""), Catch::Contains("--plan FILE"));
}
