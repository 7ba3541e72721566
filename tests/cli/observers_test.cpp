#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/background_job.h"
#include "executor/comm/socket.h"
#include "executor/serve/http_client.h"
#include "support/descriptors.h"
#include "support/listening.h"
#include "support/small_job.h"

// Whoever watches a run ends nothing: its metrics are asked by many, slowly and not at all.
using namespace reckon;
using namespace reckon::test;

namespace {

struct WatchedRun {
  Workspace w;
  std::unique_ptr<BackgroundJob> job;
  std::uint16_t port = 0;

  WatchedRun(int steps, const std::string& options, const std::string& before = "") {
    w.write("job.yaml",
            small_job("small", "{kind: multi_worker_mirrored, workers: 2}", steps) + small_pool(2));
    job = std::make_unique<BackgroundJob>(w, "job.yaml", "run", "--replications 20 " + options,
                                          before);
    REQUIRE(job->wait_for([&] { return contains(job->errors(), "/metrics"); }));
    const std::string said = job->errors(), mark = "metrics at http://127.0.0.1:";
    REQUIRE(contains(said, mark));
    port = std::uint16_t(std::stoi(said.substr(said.find(mark) + mark.size())));
  }
  bool trains() {
    return job->wait_for([&] {
      return contains(HttpClient(port).get("/metrics").body, "reckon_run_step_seconds{");
    });
  }
};

}  // namespace

TEST_CASE("1,100 silent connections end no run, and its metrics still answer") {
  constexpr int kCrowd = 1100;
  need_descriptors(kCrowd + 100);
  WatchedRun run(4000, "--metrics 0 --checkpoint-steps 200", "prlimit --nofile=256:256");
  CHECK(listening_addresses(run.port) == std::vector<std::string>{"0100007F"});
  REQUIRE(run.trains());
  std::vector<Socket> crowd;
  for (int k = 0; k < kCrowd; ++k)
    crowd.push_back(connect_to({"127.0.0.1", run.port}, Deadline::after(Seconds{60})));
  const HttpAnswer answer = HttpClient(run.port).get("/metrics");
  CHECK(answer.status == 200);
  CHECK_THAT(answer.body, Catch::Contains("reckon_run_steps_done{"));
  CHECK(run.job->running());  // else nobody was there to be disturbed
  const int code = run.job->code();
  INFO(run.job->errors());
  CHECK(code == 0);
}

TEST_CASE("metrics of a run ask for the token of --token-file") {
  const Workspace files;
  const std::string token = files.write("token", "0123456789abcdef\n");
  WatchedRun run(100000, "--metrics 0 --token-file " + token);
  const HttpAnswer refused = HttpClient(run.port).get("/metrics");
  CHECK(refused.status == 401);
  CHECK_FALSE(contains(refused.body, "reckon_run"));
  HttpClient client(run.port);
  client.send(
      "GET /metrics HTTP/1.1\r\nAuthorization: Bearer 0123456789abcdef\r\nHost: here\r\n\r\n");
  CHECK(client.answer().status == 200);
  run.job->signal(SIGTERM);
  const int code = run.job->code();
  INFO(run.job->errors());
  CHECK(code == 75);
}

TEST_CASE("an address of metrics, and a token, that are none are refused before the run begins") {
  const Workspace w;
  w.write("job.yaml", small_job("small", "{kind: single}", 10) + small_pool(1));
  const auto refused = [&](const std::string& options, int code, const std::string& what) {
    const Output r = w.run("run job.yaml --replications 20 --out run " + options);
    INFO(r.err);
    CHECK(r.code == code);
    CHECK(contains(r.err, what));
    CHECK_FALSE(std::filesystem::exists(w.path("run/measurements.jsonl")));
  };
  refused("--metrics a.example:90", 2, "--metrics: 'a.example:90' is not PORT or ADDRESS:PORT");
  refused("--metrics 70000", 2, "port 0 to 65535");
  refused("--token-file token", 2, "--token-file is the token of --metrics");
  refused("--metrics 0 --token-file token", 3, "the token file token cannot be read");
  w.write("token", "\n");
  refused("--metrics 0 --token-file token", 3, "needs one word");
}
