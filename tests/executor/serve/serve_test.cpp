#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "executor/serve/predict_body.h"
#include "executor/serve/predict_server.h"
#include "executor/serve/versions.h"
#include "http_client.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;
using Json = nlohmann::json;

namespace {

std::string body_of(const ServedModel& model, std::size_t instances = 1) {
  Json body;
  for (std::size_t k = 0; k < instances; ++k) body["instances"].push_back(instance_of(model));
  return body.dump();
}

float first_number(const std::string& body) {
  return Json::parse(body).at("predictions").at(0).at(0).get<float>();
}

/// A server of version 1 and what it stands on.
struct Served {
  Folder folder;
  ModelGraph network = test::small_mlp();
  int batch_max;
  Workers workers{1};
  std::shared_ptr<ServedModel> first;
  ServingMetrics metrics{"mlp"};
  std::unique_ptr<Batcher> batcher;
  std::unique_ptr<PredictServer> server;

  explicit Served(BatchRules rules) : batch_max(rules.max) {
    first = load(0.01f);
    metrics.set_version(1);
    batcher = std::make_unique<Batcher>(rules, first, metrics);
    server = std::make_unique<PredictServer>(
        PredictServer::Options{.name = "mlp", .listen = {"127.0.0.1", 0}}, *batcher, metrics);
  }
  ~Served() {
    server.reset();
    batcher.reset();
  }
  std::shared_ptr<ServedModel> load(float weights) {
    return std::make_shared<ServedModel>(network, add_version(folder, network, weights), batch_max,
                                         workers);
  }
  float answer_of(ServedModel& model) {
    const std::vector<float> instance = instance_of(model);
    const std::array<const std::vector<float>*, 1> one{&instance};
    return model.predict(one).front().front();
  }
};

const std::string kPredict = "/v1/models/mlp:predict";

}  // namespace

TEST_CASE("the server answers as TensorFlow Serving's REST API does") {
  Served s({.max = 4});
  HttpClient client(s.server->address().port);
  const auto answer = client.post(kPredict, body_of(*s.first, 2));
  REQUIRE(answer.status == 200);
  CHECK(Json::parse(answer.body).at("predictions").size() == 2);
  CHECK(first_number(answer.body) == Approx(s.answer_of(*s.load(0.01f))).epsilon(1e-5));
  const auto status = client.get("/v1/models/mlp");
  CHECK(Json::parse(status.body)["model_version_status"][0]["version"] == "1");
  CHECK(client.get("/healthz").status == 200);
  CHECK(client.post("/v1/models/mlp/versions/1:predict", body_of(*s.first)).status == 200);
  CHECK(client.post("/v1/models/mlp/versions/2:predict", body_of(*s.first)).status == 404);
  CHECK(client.get("/v1/models/mlp/versions/1").body == status.body);
  const auto missing = client.get("/v1/models/mlp/versions/77777");
  CHECK(missing.status == 404);
  CHECK(Json::parse(missing.body).at("error") == "version 77777 is not served, 1 is");
}

TEST_CASE("an answer that is no number is an error that says where") {
  Served s({.max = 4});
  HttpClient client(s.server->address().port);
  s.batcher->use(s.load(1e38f));  // finite itself, its sums are not
  const auto answer = client.post(kPredict, body_of(*s.first, 2));
  CHECK(answer.status == 500);
  const auto error = Json::parse(answer.body).at("error").get<std::string>();
  CHECK_THAT(error, Catch::StartsWith("version 2: output 0 of instance 0 is "));
  s.batcher->use(s.first);
  CHECK(client.post(kPredict, body_of(*s.first)).status == 200);
  CHECK_THAT(client.get("/metrics").body,
             Catch::Contains("reckon_serving_requests_total{model=\"mlp\",code=\"500\"} 1"));
}

TEST_CASE("with a token all but probes ask for it") {
  Served s({.max = 4});
  const PredictServer guarded({.name = "mlp", .listen = {"127.0.0.1", 0}, .token = "abc"},
                              *s.batcher, s.metrics);
  const std::uint16_t port = guarded.address().port;
  CHECK(HttpClient(port).get("/healthz").status == 200);
  CHECK(HttpClient(port).get("/livez").status == 200);
  CHECK(HttpClient(port).get("/metrics").status == 401);
  CHECK(HttpClient(port).get("/v1/models/mlp").status == 401);
  CHECK(HttpClient(port).post(kPredict, body_of(*s.first)).status == 401);
  HttpClient client(port);
  client.send("GET /v1/models/mlp HTTP/1.1\r\nAuthorization: Bearer abc\r\n\r\n");
  CHECK(client.answer().status == 200);
}

TEST_CASE("wrong requests are told what is wrong, and the connection goes on") {
  Served s({.max = 4});
  HttpClient client(s.server->address().port);
  const auto refused = [&](const std::string& body) {
    const auto answer = client.post(kPredict, body);
    CHECK(answer.status == 400);
    return Json::parse(answer.body).at("error").get<std::string>();
  };
  CHECK_THAT(refused("{"), Catch::Contains("no JSON"));
  CHECK_THAT(refused("{}"), Catch::Contains("no 'instances'"));
  CHECK_THAT(refused(R"({"instances": []})"), Catch::Contains("at least one"));
  CHECK_THAT(refused(R"({"instances": [["a"]]})"), Catch::Contains("not made of numbers"));
  CHECK_THAT(refused(R"({"instances": [[1]]})"), Catch::Contains("an instance has 1 numbers"));
  CHECK_THAT(refused(body_of(*s.first, 5)), Catch::Contains("at most 4"));
  const std::string deep(100'000, '[');
  CHECK_THAT(refused(R"({"instances": )" + deep), Catch::Contains("64 lists deep"));
  CHECK_THAT(refused(R"({"other": )" + deep), Catch::Contains("64 lists deep"));
  CHECK_THAT(refused(R"({"instances": 7})"), Catch::Contains("no list"));
  CHECK_THAT(refused(R"({"instances": [[0], {"a": 1}]})"), Catch::Contains("instance 1 is not"));
  CHECK_THAT(refused("[1]"), Catch::Contains("no 'instances'"));
  CHECK_THAT(refused(R"({"instances": [[1]]} and more)"), Catch::Contains("no JSON"));
  CHECK(client.get(kPredict).status == 405);
  CHECK(client.get("/nothing").status == 404);
  CHECK(client.post(kPredict, body_of(*s.first)).status == 200);
}

TEST_CASE("instances are numbers or lists of them, beside keys that nobody asked for") {
  const std::string body =
      R"({"name": "x", "a": [{"instances": 3}], "instances": [1, [[2, 3], [4]]], "b": 0})";
  const auto instances = parse_instances(body, 2);
  REQUIRE(instances);
  CHECK(*instances == std::vector<std::vector<float>>{{1}, {2, 3, 4}});
  CHECK_FALSE(parse_instances(body, 1));
}

TEST_CASE("a body that is closed as deep as it is opened is refused, not followed") {
  // A reader that calls itself for each list needs more stack than a thread has.
  constexpr std::size_t kDeep = 1'000'000;
  const auto instances = parse_instances(
      R"({"instances": )" + std::string(kDeep, '[') + "1" + std::string(kDeep, ']') + "}", 4);
  REQUIRE_FALSE(instances);
  CHECK_THAT(instances.error(), Catch::Contains("64 lists deep"));
}

TEST_CASE("metrics count requests, batches and the version") {
  Served s({.max = 4});
  HttpClient client(s.server->address().port);
  for (int k = 0; k < 3; ++k) client.post(kPredict, body_of(*s.first));
  const std::string page = client.get("/metrics").body;
  CHECK_THAT(page, Catch::Contains("reckon_serving_requests_total{model=\"mlp\",code=\"200\"} 3"));
  CHECK_THAT(page, Catch::Contains("reckon_serving_batches_total{model=\"mlp\",up_to=\"1\"} 3"));
  CHECK_THAT(page, Catch::Contains("reckon_serving_model_version{model=\"mlp\"} 1"));
  CHECK_THAT(page, Catch::Contains("reckon_serving_latency_seconds_count{model=\"mlp\"} 3"));
}

TEST_CASE("requests that wait share a batch, however long the first would wait alone") {
  // Only a full batch starts within the hour: four clients, one instance each, one pass.
  Served s({.max = 4, .wait = 1h});
  std::vector<std::thread> clients;
  std::atomic<int> answered{0};
  for (int k = 0; k < 4; ++k)
    clients.emplace_back([&] {
      HttpClient client(s.server->address().port);
      answered += client.post(kPredict, body_of(*s.first)).status == 200;
    });
  for (auto& client : clients) client.join();
  CHECK(answered == 4);
  CHECK_THAT(s.metrics.page(),
             Catch::Contains("reckon_serving_batches_total{model=\"mlp\",up_to=\"4\"} 1"));
}

TEST_CASE("a queue that is full refuses, and what waits is answered at the end") {
  Served s({.max = 4, .wait = 1h, .queue_limit = 1});
  std::thread first([&] {
    HttpClient client(s.server->address().port);
    CHECK(client.post(kPredict, body_of(*s.first)).status == 200);
  });
  while (s.metrics.page().find("waiting_instances{model=\"mlp\"} 1") == std::string::npos)
    std::this_thread::sleep_for(1ms);
  HttpClient second(s.server->address().port);
  CHECK(second.post(kPredict, body_of(*s.first)).status == 503);
  s.batcher.reset();  // ends: what waits is answered first
  first.join();
}

TEST_CASE("a new version takes over between two answers and no request is dropped") {
  Served s({.max = 4});
  const float old_answer = s.answer_of(*s.load(0.01f));
  const auto next = s.load(0.02f);
  const float new_answer = s.answer_of(*next);
  REQUIRE(old_answer != Approx(new_answer));
  std::atomic<bool> enough{false};
  std::atomic<int> of_old{0}, of_new{0}, wrong{0};
  std::vector<std::thread> clients;
  for (int k = 0; k < 3; ++k)
    clients.emplace_back([&] {
      HttpClient client(s.server->address().port);
      while (!enough) {
        const auto answer = client.post(kPredict, body_of(*s.first));
        const float value = answer.status == 200 ? first_number(answer.body) : -1;
        if (value == Approx(old_answer).epsilon(1e-4))
          ++of_old;
        else if (value == Approx(new_answer).epsilon(1e-4))
          ++of_new;
        else
          ++wrong;
      }
    });
  while (of_old < 20) std::this_thread::sleep_for(1ms);
  s.batcher->use(next);
  while (of_new < 20) std::this_thread::sleep_for(1ms);
  enough = true;
  for (auto& client : clients) client.join();
  CHECK(wrong == 0);
}

TEST_CASE("a server that ends says so to load balancers first, and answers whoever still comes") {
  Served s({.max = 4});
  HttpClient kept(s.server->address().port);
  CHECK_FALSE(kept.get("/healthz").last);
  s.server->begin_to_end();
  const auto last = kept.post(kPredict, body_of(*s.first));
  CHECK(last.status == 200);
  CHECK(last.last);  // else this client would ask here for ever
  CHECK(kept.hangs_up());
  CHECK(HttpClient(s.server->address().port).get("/healthz").status == 503);
  CHECK(HttpClient(s.server->address().port).post(kPredict, body_of(*s.first)).status == 200);
  const std::uint16_t port = s.server->address().port;
  s.server->drain(1h);
  CHECK_THROWS_AS(HttpClient(port, 1s), SocketError);
}

namespace {

/// Ends the server as the program does: what is open when it has drained is cut off.
class Ending {
 public:
  explicit Ending(Served& s)
      : thread_([&s] {
          s.server->drain(1h);
          s.server.reset();
        }) {}
  ~Ending() { thread_.join(); }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  std::thread thread_;
};

void wait_until_nobody_listens(std::uint16_t port) {
  try {
    for (;;) {
      HttpClient probe(port, 1s);
      std::this_thread::sleep_for(1ms);
    }
  } catch (const SocketError&) {
  }
}

}  // namespace

TEST_CASE("a request whose body is still arriving when the server ends is answered") {
  Served s({.max = 4});
  const std::string request = HttpClient::request("POST", kPredict, body_of(*s.first));
  const std::uint16_t port = s.server->address().port;
  HttpClient client(port);
  client.send(request.substr(0, request.size() / 2));
  const Ending ending(s);
  wait_until_nobody_listens(port);
  client.send(request.substr(request.size() / 2));
  const auto answer = client.answer();
  CHECK(answer.status == 200);
  CHECK(answer.last);
}

TEST_CASE("requests that are on their way when the server ends are answered") {
  Served s({.max = 4});
  const std::string request = HttpClient::request("POST", kPredict, body_of(*s.first));
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int k = 0; k < 8; ++k) {
    clients.push_back(std::make_unique<HttpClient>(s.server->address().port));
    if (k % 2 == 0) CHECK(clients.back()->get("/healthz").status == 200);  // it is kept
  }
  for (auto& client : clients) client->send(request);
  const Ending ending(s);
  for (auto& client : clients) CHECK(client->answer().status == 200);
}

TEST_CASE("clients that keep silent connections do not hold up the end") {
  Served s({.max = 4});
  HttpClient kept(s.server->address().port), fresh(s.server->address().port);
  CHECK(kept.get("/healthz").status == 200);
  s.server->drain(1h);  // this test would not end
  CHECK(kept.hangs_up());
  CHECK(fresh.hangs_up());
}

TEST_CASE("a body without room in a full batch is refused, and the client hears so") {
  Served s({.max = 4});
  HttpClient client(s.server->address().port);
  const auto answer = client.post(kPredict, std::string(128 << 10, ' '));
  CHECK(answer.status == 413);
  CHECK(answer.last);
  CHECK(HttpClient(s.server->address().port).post(kPredict, body_of(*s.first, 4)).status == 200);
}
