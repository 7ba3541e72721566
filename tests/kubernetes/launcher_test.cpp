#include <algorithm>
#include <memory>

#include "executor/launch/process.h"
#include "executor/train/records/measurement_log.h"
#include "kubernetes/cluster_job.h"

// `reckon export kubernetes --as launcher`: `reckon run` in a pod of the cluster.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

const std::string kImage = "localhost/reckon-launcher:test";

/// The API server's address within the cluster, which nobody forwards here but this.
class ApiServerInPods {
 public:
  explicit ApiServerInPods(const Cluster& cluster) {
    const auto config = nlohmann::json::parse(read_all(cluster.kubeconfig()));
    const std::string server = config.at("/clusters/0/cluster/server"_json_pointer);
    const std::string port = server.substr(server.rfind(':') + 1);
    forwards_ = std::make_unique<ChildProcess>(
        ProcessSpec{.name = "service address",
                    .command = {"python3", RECKON_SOURCE_DIR "/tests/kubernetes/service_address.py",
                                "10.96.0.1", "443", port},
                    .environment = {},
                    .inherited = {}});
  }
  ~ApiServerInPods() {
    forwards_.reset();  // killed
    Workspace().run_shell("ip address del 10.96.0.1/32 dev lo");
  }
  ApiServerInPods(const ApiServerInPods&) = delete;
  ApiServerInPods& operator=(const ApiServerInPods&) = delete;

 private:
  std::unique_ptr<ChildProcess> forwards_;
};

std::size_t lines_with(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("an elastic run is begun, watched and finished by a Job, whose pod may be lost",
          "[.long]") {
  const Cluster& cluster = Cluster::with_node();
  const Workspace w;
  const std::string name = "launched";
  const Cluster::Space space = cluster.make_space(name, w);
  const ApiServerInPods forwarding(cluster);
  const Output kubectl = w.run_shell("command -v kubectl");
  REQUIRE(kubectl.code == 0);
  const std::string program = kubectl.out.substr(0, kubectl.out.find('\n'));
  const Output image =
      w.run_shell("'" RECKON_SOURCE_DIR "/scripts/image' launcher.tar --cpu-only --name " + kImage +
                  " --worker '" RECKON_BINARY_DIR
                  "/bin/reckon-worker' --program '" RECKON_BINARY_DIR "/bin/reckon' --program '" +
                  program + "'");
  INFO(image.err);
  REQUIRE(image.code == 0);
  cluster.load_image_file(w, "launcher.tar");

  w.write("job.yaml",
          small_job(name, "{kind: multi_worker_mirrored, workers: 3, all_reduce: ring}", 12'000,
                    "  optimizer: {learning_rate: 0.0001}\n"
                    "  restart: {kind: elastic, min: 2}\n") +
              small_pool(3));
  const Output exported =
      w.run("export kubernetes job.yaml --namespace " + name + " --claim checkpoints --image " +
            kImage + " --kubernetes-version 1.20 --out launcher.yaml");
  INFO(exported.err);
  REQUIRE(exported.code == 0);
  CHECK_THAT(exported.err,
             !Contains("warning") && Contains("a Job in the cluster watches the run"));
  cluster.kubectl("apply -f -", read_all(w.path("launcher.yaml")));

  const std::string launchers =
      " -n " + name + " -l app.kubernetes.io/instance=" + name + "-launcher";
  const auto ranks = [&] {
    return cluster.get("pods -n " + name + " -l app.kubernetes.io/instance=" + name).at("items");
  };
  // Of a pod that is being made there is no log yet.
  const auto log_of = [&](const std::string& pods) {
    return w.run_shell(cluster.environment() + " kubectl logs --tail=-1 " + pods).out;
  };
  const auto steps_of = [&](const std::string& pod) {
    return lines_with(log_of("-n " + name + ' ' + pod), "\"record\":\"step\"");
  };
  const auto launcher_says = [&] { return log_of(launchers); };
  const auto runs = [&](std::size_t steps) {
    const auto pods = ranks();
    return pods.size() == 3 &&
           std::ranges::all_of(pods,
                               [&](const auto& pod) {
                                 return pod.value("/status/phase"_json_pointer, std::string()) ==
                                        "Running";
                               }) &&
           steps_of(pods[0].at("metadata").at("name")) > steps;
  };
  const bool began = wait_for([&] { return runs(1000); });
  INFO(launcher_says());
  REQUIRE(began);

  // The launcher's node goes: the run does not, and another launcher takes it up.
  cluster.kubectl("delete pod --force --grace-period=0" + launchers);
  REQUIRE(wait_for([&] { return contains(launcher_says(), "step "); }));
  const auto before = ranks();
  REQUIRE(before.size() == 3);
  cluster.kubectl("delete pod --force --grace-period=0 -n " + name + ' ' +
                  before[2].at("metadata").at("name").get<std::string>());
  const auto over = [&] {
    const auto job = cluster.get("job " + name + "-launcher -n " + name);
    return job.value("/status/succeeded"_json_pointer, 0) +
                   job.value("/status/failed"_json_pointer, 0) >
               1 ||
           job.value("/status/succeeded"_json_pointer, 0) > 0;
  };
  const bool ended = wait_for(over);
  const std::string said = launcher_says();
  INFO(said);
  REQUIRE(ended);
  CHECK(cluster.get("job " + name + "-launcher -n " + name)
            .value("/status/succeeded"_json_pointer, 0) == 1);
  CHECK_THAT(said, Contains("finished"));
  CHECK(trained_weights(space.volume / name / "model.safetensors").size() == 5121);
  // What both launchers measured lies beside the checkpoints.
  const std::string uid =
      cluster.get("job " + name + "-launcher -n " + name).at("/metadata/uid"_json_pointer);
  const auto records = space.volume / name / "launcher";
  const auto measured = read_measurement_log(records / uid / "measurements.jsonl");
  REQUIRE(measured);
  CHECK(measured->interruptions.size() == 1);
  CHECK(measured->ends.back().finished);
  CHECK(std::filesystem::exists(records / "reckon" / "history.jsonl"));
  cluster.kubectl("delete namespace " + name + " --wait=false");
}
