#include <filesystem>

#include "kubernetes/cluster_job.h"

// What real clusters do to a job for a while: the network between them and the launcher is cut, a
// login expires, a node loses its power, a volume cannot be written.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

nlohmann::json kubeconfig_of(const Cluster& cluster) {
  return nlohmann::json::parse(read_all(cluster.kubeconfig()));
}

/// Whole or not at all: kubectl may be reading.
std::string write_kubeconfig(const ClusterJob& job, const nlohmann::json& config) {
  job.files().write("half-written", config.dump());
  fs::rename(job.files().path("half-written"), job.files().path("kubeconfig"));
  return "KUBECONFIG='" + job.files().path("kubeconfig").string() + "'";
}

/// A way to the API server that can be cut.
class BadNetwork {
 public:
  explicit BadNetwork(const ClusterJob& job)
      : job_(job),
        process_({"bad-network",
                  {"python3", RECKON_SOURCE_DIR "/tests/kubernetes/bad_network.py",
                   std::to_string(server_port(job.cluster())), job.files().path("cut").string(),
                   job.files().path("port").string()},
                  {},
                  {}}) {
    REQUIRE(wait_for([&] { return fs::exists(job_.files().path("port")); }));
    nlohmann::json config = kubeconfig_of(job.cluster());
    config["clusters"][0]["cluster"]["server"] =
        "https://127.0.0.1:" + read_all(job_.files().path("port"));
    environment = write_kubeconfig(job, config);
  }
  void cut() const { job_.files().write("cut", ""); }
  void mend() const { fs::remove(job_.files().path("cut")); }

  std::string environment;

 private:
  static int server_port(const Cluster& cluster) {
    const std::string server = kubeconfig_of(cluster)["clusters"][0]["cluster"]["server"];
    return std::stoi(server.substr(server.rfind(':') + 1));
  }

  const ClusterJob& job_;
  ChildProcess process_;
};

/// A user who is known by a token, and may do in a namespace what a job needs.
class TokenUser {
 public:
  explicit TokenUser(const ClusterJob& job) : job_(job) {
    job_.kubectl("create serviceaccount user");
    job_.kubectl("create rolebinding user --clusterrole=edit --serviceaccount=" + job_.name() +
                 ":user");
    log_in("first");
  }
  void log_in(const std::string& token) {
    job_.cluster().kubectl("create -f -", R"({"apiVersion": "v1", "kind": "Secret",
      "type": "kubernetes.io/service-account-token", "metadata": {"name": ")" +
                                              token + R"(", "namespace": ")" + job_.name() +
                                              R"(", "annotations":
      {"kubernetes.io/service-account.name": "user"}}})");
    const auto is_made = [&] { return !token_of(token).empty(); };
    REQUIRE(wait_for(is_made));
    nlohmann::json config = kubeconfig_of(job_.cluster());
    config["users"][0]["user"] = {{"token", token_of(token)}};
    environment = write_kubeconfig(job_, config);
  }
  void expire(const std::string& token) const { job_.kubectl("delete secret " + token); }

  std::string environment;

 private:
  std::string token_of(const std::string& token) const {
    const Output text = job_.files().run_shell(
        job_.cluster().environment() + " kubectl get secret " + token + " -n " + job_.name() +
        " -o go-template='{{with .data.token}}{{. | base64decode}}{{end}}'");
    return text.out;
  }
  const ClusterJob& job_;
};

}  // namespace

TEST_CASE("a network that is cut for minutes is waited for, and not a line is lost", "[.long]") {
  constexpr int kSteps = 10000;
  ClusterJob job("cut", kRing, 4, kSteps);
  const BadNetwork network(job);
  job.set_environment(network.environment);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(500); }));
  network.cut();
  REQUIRE(job.comes_to_say("the cluster is away"));  // behind more than a minute without a word
  network.mend();
  job.ends_well(kSteps);
  CHECK(job.measured().interruptions.empty());
  CHECK_THAT(job.errors(), Contains("the cluster answers again"));
}

TEST_CASE("a login that expires is asked for, and the job goes on with the new one", "[.long]") {
  constexpr int kSteps = 10000;
  ClusterJob job("login", kRing, 4, kSteps);
  TokenUser user(job);
  job.set_environment(user.environment);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(500); }));
  user.expire("first");
  REQUIRE(job.comes_to_say("log in to the cluster again"));
  CHECK_THAT(job.errors(), Contains("You must be logged in to the server"));
  user.log_in("second");
  job.ends_well(kSteps);
  CHECK(job.measured().interruptions.empty());
}

TEST_CASE("a real node that loses its power changes no bit of what is trained", "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("power", kRing, 4, kSteps);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1500); }));
  job.cluster().lose_node();
  const bool went_on = job.comes_to_say("attempt 1: 4 pods");
  job.cluster().return_node();  // whatever came of it: other tests need it
  REQUIRE(went_on);
  job.ends_well(kSteps);
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].cause == Interruption::failure);
  CHECK_THAT(m.interruptions[0].detail, Contains("node1 is lost"));
  REQUIRE(m.runs.size() == 2);
  CHECK(m.runs[1].first_step > 0);  // behind a checkpoint
}

TEST_CASE("a volume that cannot be written ends the job at its third start, whoever watches",
          "[.long]") {
  ClusterJob job("readonly", kRing, 4, 300);
  fs::permissions(job.space().volume,
                  fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  job.start_new("--retry-delay 5s --retries 20");
  REQUIRE(job.comes_to_say("restarting in"));
  job.kill_launcher();
  job.start("--attach readonly", "another");
  CHECK(job.code() == 3);
  INFO(job.errors());
  CHECK_THAT(job.output(), Contains("as 3 starts in a row did, and no newer checkpoint was made"));
  CHECK(!job.pods(2).empty());
  CHECK(job.pods(3).empty());
  job.start("--attach readonly", "later");  // as it was answered then
  CHECK(job.code() == 3);
}
