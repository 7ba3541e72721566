#include "kubernetes/cluster.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "support/skip.h"

namespace reckon::test {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

fs::path beside() { return fs::path(RECKON_SOURCE_DIR).parent_path() / "shared" / "kubernetes"; }

/// Skips the test where the kit, or what it needs of this machine, is not there.
std::string find_kit(bool with_node) {
  const std::string kit = kit_folder();
  if (kit.empty())
    skip_test("no Kubernetes kit: RECKON_KUBERNETES_KIT names none and there is no " +
              beside().string());
  const std::string cache = variable("XDG_CACHE_HOME", variable("HOME", "") + "/.cache");
  if (!fs::exists(fs::path(cache) / "kubernetes-1.20.2-debian" / "bin" / "kube-apiserver"))
    skip_test("the Kubernetes kit is not built: run " + kit + "/build (5 to 8 minutes)");
  if (with_node && (::geteuid() != 0 || !fs::exists("/sys/fs/cgroup/memory/tasks")))
    skip_test("a real node needs root and cgroup v1");
  return kit;
}

}  // namespace

std::string kit_folder() {
  const std::string kit = variable("RECKON_KUBERNETES_KIT", beside().string());
  return fs::exists(fs::path(kit) / "up") ? kit : "";
}

Cluster::Cluster(Parts parts, const std::string& options)
    : kit_(find_kit(parts == Parts::with_node)), run_(workspace_.path("cluster").string()) {
  std::string words =
      "--run-dir '" + run_ + "' --port " + variable("RECKON_KUBERNETES_PORT", "17443");
  if (parts == Parts::with_node) {
    make_image();
    words += " --kubelet --image '" + workspace_.path("worker.tar").string() + "'";
  }
  const Output up = workspace_.run_shell("'" + kit_ + "/up' " + words + ' ' + options);
  INFO(up.out << up.err);
  REQUIRE(up.code == 0);
  kubeconfig_ = run_ + "/kubeconfig";
}

Cluster::~Cluster() { workspace_.run_shell("'" + kit_ + "/down' --run-dir '" + run_ + "'"); }

Cluster& Cluster::with_node() {
  static Cluster cluster(Parts::with_node);
  return cluster;
}

/// RECKON_KUBERNETES_WORKER: another program than the one that was built.
void Cluster::make_image() {
  const std::string worker =
      variable("RECKON_KUBERNETES_WORKER", RECKON_BINARY_DIR "/bin/reckon-worker");
  const Output made =
      workspace_.run_shell("'" RECKON_SOURCE_DIR "/scripts/image' worker.tar --name " + image_ +
                           " --cpu-only --worker '" + worker + "'");
  INFO(made.out << made.err);
  REQUIRE(made.code == 0);
}

std::string Cluster::fake_nodes() const {
  return "'" + kit_ + "/fake-nodes' --kubeconfig '" + kubeconfig_ + "'";
}

void Cluster::load_image(const Workspace& w, const std::string& name,
                         const std::vector<std::string>& files) const {
  std::string words;
  for (const std::string& file : files) words += " --file " + file;
  const Output loaded =
      w.run_shell("'" + kit_ + "/make-image' " + name + " image.tar --libraries" + words + " && '" +
                  kit_ + "/load-image' --run-dir '" + run_ + "' image.tar");
  INFO(loaded.out << loaded.err);
  REQUIRE(loaded.code == 0);
}

void Cluster::load_image_file(const Workspace& w, const std::string& file) const {
  const Output loaded = w.run_shell("'" + kit_ + "/load-image' --run-dir '" + run_ + "' " + file);
  INFO(loaded.out << loaded.err);
  REQUIRE(loaded.code == 0);
}

std::string Cluster::kubectl(const std::string& arguments, const std::string& manifest) const {
  workspace_.write("manifest.yaml", manifest);
  const Output output =
      workspace_.run_shell(environment() + " kubectl " + arguments + " < manifest.yaml");
  INFO("kubectl " << arguments << ": " << output.err);
  CHECK(output.code == 0);
  return output.out;
}

nlohmann::json Cluster::get(const std::string& what) const {
  const std::string text = kubectl("get " + what + " -o json");
  return nlohmann::json::parse(text, nullptr, false);
}

void Cluster::restart_api_server(int away) const {
  run_in_kit(
      "read -r pid _ < $run/pid/kube-apiserver; mapfile -d \"\" -t words < /proc/$pid/cmdline; "
      "kill -KILL $pid; sleep " +
      std::to_string(away) + "; start kube-apiserver \"${words[@]}\"");
}

void Cluster::run_in_kit(const std::string& line) const {
  const Output output =
      workspace_.run_shell("bash -euc 'run=" + run_ + "; source " + kit_ +
                           "/lib/common.sh; source " + kit_ + "/lib/node.sh; " + line + "'");
  INFO(output.err);
  REQUIRE(output.code == 0);
}

void Cluster::lose_node() const {
  run_in_kit(
      "read -r pid _ < $run/pid/kubelet; cp /proc/$pid/cmdline $run/kubelet-words; kill -KILL "
      "$pid; "
      "kill_node_processes");
}

void Cluster::return_node() const {
  run_in_kit(
      "mapfile -d \"\" -t words < $run/kubelet-words; read -r containerd _ < $run/pid/containerd; "
      "start kubelet env PATH=\"$default_cache/bin:$PATH\" nsenter --mount --target $containerd "
      "\"${words[@]}\"");
}

Cluster::Space Cluster::make_space(const std::string& name, const Workspace& w) const {
  const Space space{name, w.path("volume")};
  fs::create_directories(space.volume);
  // The workspace is its owner's alone, and pods are somebody else.
  fs::permissions(w.path(""), fs::perms::others_exec, fs::perm_options::add);
  fs::permissions(space.volume, fs::perms::all);
  kubectl("create namespace " + name);
  kubectl("apply -f -", R"(apiVersion: v1
kind: PersistentVolume
metadata: {name: )" + name + R"(}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  hostPath: {path: )" + space.volume.string() +
                            R"(}
  claimRef: {namespace: )" + name +
                            R"(, name: checkpoints}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: checkpoints, namespace: )" +
                            name + R"(}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: )" + name + R"(
  resources: {requests: {storage: 1Gi}}
)");
  // The controller binds within a moment or, when it saw the claim before the volume, at its next
  // round; until then a pod waits for its claim, whatever else it lacks.
  const auto bound = [&] {
    const nlohmann::json claim = get("pvc checkpoints -n " + name);
    return claim.value("/status/phase"_json_pointer, std::string()) == "Bound";
  };
  REQUIRE(wait_for(bound));
  return space;
}

bool wait_for(const std::function<bool()>& there) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (std::chrono::steady_clock::now() < until) {
    if (there()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return false;
}

}  // namespace reckon::test
