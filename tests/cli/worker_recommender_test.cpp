#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/train/data/samples.h"
#include "executor/train/data/source.h"
#include "hand_started.h"
#include "sim/model/layers.h"
#include "sim/step/table_rows.h"

// A small recommender on a log of clicks: processes of reckon-worker, whose parameter servers hold
// the embedding tables and are asked for the touched rows alone.
namespace {
using namespace reckon::test;
using Json = nlohmann::json;

constexpr double kExponent = 1.1;
constexpr int kBatch = 64, kWidth = 8, kSteps = 120;
constexpr std::int64_t kUsers = 3000, kItems = 700;

/// DLRM in small: 4 numbers, a user's id, three items' ids.
const std::string kModel =
    "  model:\n    layers:\n"
    "      - {name: record, input: 8}\n"
    "      - {name: numbers, select_features: 4, first: 0, from: record}\n"
    "      - {name: bottom, linear: 8, from: numbers}\n"
    "      - {name: user_id, select_features: 1, first: 4, from: record}\n"
    "      - {name: user, embedding_bag: 8, rows: 3000, ids: 1, from: user_id}\n"
    "      - {name: item_ids, select_features: 3, first: 5, from: record}\n"
    "      - {name: items, embedding_bag: 8, rows: 700, ids: 3, from: item_ids}\n"
    "      - {name: dots, pairwise_dots: \"bottom, user, items\"}\n"
    "      - {name: beside, concat: \"bottom, user, items, dots\"}\n"
    "      - {name: over, linear: 16, from: beside}\n"
    "      - {name: bent, activation: relu, from: over}\n"
    "      - {name: click, linear: 1, from: bent}\n"
    "      - {name: loss, sigmoid_cross_entropy: true, from: click}\n";

std::string plan(const std::string& strategy, int nodes, const std::string& pools,
                 const std::string& optimizer) {
  return "name: clicks\nworkload:\n" + kModel +
         "  dataset: {samples: 4096, bytes_per_sample: 32B}\n"
         "  data: {format: clicks}\n  zipf_exponent: 1.1\n"
         "  batch_per_accelerator: 64\n  optimizer: " +
         optimizer + "\n  train: {steps: 120}\n  strategy: " + strategy +
         "\n  checkpoint: {interval: none}\n"
         "cluster:\n  provider: gcp\n  service: gce\n  region: us-central1\n  zone: us-central1-a\n"
         "  pools: [{name: node, role: worker, machine: n1-standard-8, nodes: " +
         std::to_string(nodes) + "}" + pools + "]\nforecast: {seed: 5}\n";
}
const std::string kSgd = "{kind: sgd, learning_rate: 0.5, momentum: 0, weight_decay: 0}";
const std::string kServers =
    ", {name: servers, role: parameter_server, machine: n1-standard-8, nodes: 2}";

/// Two workers and two servers, to their end.
Output run_job(const Workspace& w, const std::string& out) {
  const std::string common =
      kWorker + "plan.yaml --servers 2 --workers 2 --threads 1 --out " + out + meeting_point(w);
  std::string line;
  for (const char* other :
       {" --role ps --rank 0", " --role ps --rank 1", " --role worker --rank 1"})
    line += common + other + " & ";
  return w.run_shell(line + common + " --role worker --rank 0; code=$?; wait; exit $code");
}

std::vector<Json> steps_of(const std::string& log) {
  std::vector<Json> steps;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line);
    if (record.contains("sent_bytes")) steps.push_back(record);
  }
  return steps;
}

/// Mean loss of both ranks over the last steps.
double last_loss(const std::vector<Json>& steps) {
  double sum = 0;
  int count = 0;
  for (const Json& step : steps)
    if (step["step"] >= kSteps - 20) {
      sum += step["loss"].get<double>();
      ++count;
    }
  REQUIRE(count > 0);
  return sum / count;
}

}  // namespace

TEST_CASE("a recommender on parameter servers ends with the bits of two workers that all-reduce") {
  const Workspace w;
  w.write("plan.yaml", plan("{kind: multi_worker_mirrored, workers: 2}", 2, "", kSgd));
  const std::string mirrored =
      kWorker + "plan.yaml --workers 2 --threads 1 --out dense" + meeting_point(w);
  const Output dense =
      w.run_shell(mirrored + " --rank 1 & " + mirrored + " --rank 0; code=$?; wait; exit $code");
  CHECK(dense.err == "");
  REQUIRE(dense.code == 0);
  for (const std::string rows : {"mod", "div"}) {
    w.write("plan.yaml", plan("{kind: parameter_server, workers: 2, parameter_servers: 2, "
                              "partition_strategy: " +
                                  rows + "}",
                              2, kServers, kSgd));
    const Output out = run_job(w, rows);
    CHECK(out.err == "");
    REQUIRE(out.code == 0);
    const std::string bits = read_all(w.path(rows + "/model.safetensors"));
    CHECK(!bits.empty());
    CHECK(bits == read_all(w.path("dense/model.safetensors")));
  }
  // It learns: half of a coin's loss is beyond what the labels' noise allows, an eighth is not.
  const auto steps = steps_of(read_all(w.path("mod/measurements.jsonl")));
  CHECK(last_loss(steps) < 0.875 * std::log(2.0));
  // What travels is what the forecast's rule says of the drawn ids: dense gradients, and of each
  // different row its gradient and its id, and the id once more before.
  std::map<int, double> rows_of_run;
  const double dense_bytes = 4.0 * ((4 * 8 + 8) + (27 * 16 + 16) + (16 + 1));
  for (const Json& step : steps) {
    const double rows = (step["sent_bytes"].get<double>() - dense_bytes) / (4 * kWidth + 16);
    CHECK(rows == std::floor(rows));
    rows_of_run[step["rank"].get<int>()] += rows / kSteps;
  }
  const double forecast = reckon::DrawnRows(kUsers, kExponent).distinct(kBatch) +
                          reckon::DrawnRows(kItems, kExponent).distinct(3 * kBatch);
  for (const int rank : {0, 1}) CHECK(rows_of_run.at(rank) == Approx(forecast).epsilon(0.02));
}

TEST_CASE("whole tables give the same bits and send all of them") {
  const Workspace w;
  const auto weights = [&](const std::string& sparse) {
    w.write("plan.yaml", plan("{kind: parameter_server, workers: 2, parameter_servers: 2, "
                              "sparse_embeddings: " +
                                  sparse + "}",
                              2, kServers, kSgd));
    const Output out = run_job(w, sparse);
    CHECK(out.err == "");
    REQUIRE(out.code == 0);
    return read_all(w.path(sparse + "/model.safetensors"));
  };
  CHECK(weights("true") == weights("false"));
  const auto sent = [&](const std::string& run) {
    return steps_of(read_all(w.path(run + "/measurements.jsonl")))
        .back()["sent_bytes"]
        .get<double>();
  };
  CHECK(sent("false") == 4.0 * (8 * (3000 + 700) + (4 * 8 + 8) + (27 * 16 + 16) + (16 + 1)));
  CHECK(sent("true") < sent("false") / 8);
}

TEST_CASE("asynchronous workers of a recommender come to nearly the same loss, delay recorded") {
  const Workspace w;
  std::map<std::string, double> loss;
  for (const std::string mode : {"synchronous", "asynchronous"}) {
    w.write("plan.yaml", plan("{kind: parameter_server, workers: 2, parameter_servers: 2, mode: " +
                                  mode + (mode == "asynchronous" ? ", staleness: 2}" : "}"),
                              2, kServers, kSgd));
    const Output out = run_job(w, mode);
    CHECK(out.err == "");
    REQUIRE(out.code == 0);
    const auto steps = steps_of(read_all(w.path(mode + "/measurements.jsonl")));
    loss[mode] = last_loss(steps);
    double delay = 0;
    for (const Json& step : steps) {
      CHECK(step.contains("delay_updates") == (mode == "asynchronous"));
      if (mode == "asynchronous")
        delay += step["delay_updates"].get<double>() / double(steps.size());
    }
    if (mode == "asynchronous") {
      // W - 1 where both are always at work; the last of the slower rank has no other beside it.
      CHECK(delay > 0.5);
      CHECK(delay < 1.5);
    }
  }
  CHECK(loss["asynchronous"] == Approx(loss["synchronous"]).epsilon(0.1));
}

TEST_CASE("a recommender's tables are saved, and training goes on from them") {
  const Workspace w;
  w.write("plan.yaml", plan("{kind: parameter_server, workers: 2, parameter_servers: 2}", 2,
                            kServers, "{kind: adamw, learning_rate: 0.01}"));
  const auto run = [&](const std::string& out, const std::string& more) {
    const std::string common = kWorker + "plan.yaml --servers 2 --workers 2 --threads 1 --out " +
                               out + meeting_point(w) + more;
    std::string line;
    for (const char* other :
         {" --role ps --rank 0", " --role ps --rank 1", " --role worker --rank 1"})
      line += common + other + " & ";
    const Output ended =
        w.run_shell(line + common + " --role worker --rank 0; code=$?; wait; exit $code");
    CHECK(ended.err == "");
    CHECK(ended.code == 0);
  };
  run("whole", " --steps 20");
  run("twice", " --steps 11");
  run("twice", " --steps 20 --attempt 1");
  const std::string bits = read_all(w.path("whole/model.safetensors"));
  CHECK(!bits.empty());
  CHECK(bits == read_all(w.path("twice/model.safetensors")));
}
