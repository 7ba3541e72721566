#include "executor/kubernetes/lease.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "executor/kubernetes/fake_kubectl.h"

using namespace reckon;
using namespace reckon::kubernetes;
using reckon::test::FakeKubectl;
using State = LauncherLease::State;

namespace {

/// An API server with one Lease, by its version. `away`: nothing is written; `forbidden`: nothing
/// may be; `phase`: of the run; `done`: what else was done.
const char* const kLeaseServer = R"sh(
shift 2  # --namespace ns
say() { echo "Error from server ($1): $2" >&2; exit 1; }
store() {
  n=$(($(cat version 2>/dev/null || echo 0) + 1)); echo $n > version
  sed -e 's/,"resourceVersion":"[0-9]*"//' \
      -e "s/\"metadata\":{/\"metadata\":{\"resourceVersion\":\"$n\",/" < body > new
  mv new lease; cat lease
}
writes() {
  [ -e forbidden ] && say Forbidden 'leases is forbidden: no'
  [ -e away ] && { echo 'Unable to connect to the server: EOF' >&2; exit 1; }
  cat > body
}
case "$1 $2" in
  "get configmap") cat phase 2>/dev/null ;;
  "get leases.coordination.k8s.io")
    [ -e forbidden ] && say Forbidden 'leases is forbidden: no'
    [ -e lease ] || say NotFound 'no lease'; cat lease ;;
  "create --filename") writes; [ -e lease ] && say AlreadyExists there; store ;;
  "replace --filename") writes; [ -e lease ] || say NotFound 'no lease'
    [ "$(sed 's/.*"resourceVersion":"\([0-9]*\)".*/\1/' body)" = "$(cat version)" ] ||
      say Conflict 'the object has been modified'
    store ;;
  *) echo "$*" >> done ;;
esac
)sh";

constexpr LeaseTerms kTerms{
    .duration = Seconds{6}, .acts = Seconds{4}, .renews = Seconds{0.5}, .retries = Seconds{0.3}};

bool comes(const std::function<bool()>& there, double seconds = 30) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < until) {
    if (there()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

struct Held {
  Held() : fake(kLeaseServer), lease(new LauncherLease(fake.kubectl(), "a", true, kTerms)) {
    REQUIRE(lease->wait([] { return true; }) == State::held);
  }
  FakeKubectl fake;
  std::unique_ptr<LauncherLease> lease;
};

}  // namespace

TEST_CASE("a launcher's Lease says who holds it, for how long, and whose it is") {
  const Held h;
  const Json lease = Json::parse(h.fake.read("lease"));
  CHECK(lease.at("kind") == "Lease");
  CHECK(lease.at("metadata").at("name") == "a-launcher");
  CHECK(lease.at("metadata").at("labels").at("app.kubernetes.io/instance") == "a");
  const Json& spec = lease.at("spec");
  CHECK(spec.at("leaseDurationSeconds") == 6);
  CHECK(spec.at("leaseTransitions") == 1);
  // MicroTime: "2026-11-28T22:06:46.123000Z".
  CHECK(spec.at("renewTime").get<std::string>().size() == 27);
  const std::string text = launcher_text(spec.at("holderIdentity"));
  CHECK(text.ends_with(" (process " + std::to_string(::getpid()) + ")"));
  CHECK(launcher_text("node_a_12_0123abcd") == "launcher on node_a (process 12)");
  CHECK(launcher_text("somebody") == "launcher somebody");
}

TEST_CASE("a launcher that cannot renew its lease changes nothing until it can") {
  const Held h;
  const Kubectl guarded = h.lease->guarded();
  CHECK(guarded.attempt({"apply", "one"}).good());
  h.fake.write("away", "");
  REQUIRE(comes([&] { return !h.lease->may_act(); }));
  const KubectlResult refused = guarded.attempt({"delete", "two"});
  CHECK(!refused.good());
  CHECK(failure_of(refused.err) == KubectlFailure::connection);  // it is tried again
  CHECK(guarded.attempt({"logs", "three"}).good());              // to look changes nothing
  CHECK(h.fake.read("done") == "apply one\nlogs three\n");
  CHECK(h.lease->news() ==
        "the launcher's lease could not be renewed for 4.00 s: nothing is changed in the cluster "
        "until it is; the pods go on");
  CHECK(h.lease->news().empty());
  ::unlink((h.fake.program().substr(0, h.fake.program().rfind('/')) + "/away").c_str());
  REQUIRE(comes([&] { return h.lease->may_act(); }));
  CHECK(h.lease->news() == "the launcher's lease is renewed: it acts again");
  CHECK(guarded.attempt({"delete", "four"}).good());
}

TEST_CASE("a command that changes the cluster is ended when the lease runs out under it") {
  const FakeKubectl fake("exec sleep 100");
  const auto begin = std::chrono::steady_clock::now();
  const Kubectl guarded = fake.kubectl().guarded(
      [&] { return std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(300); });
  const KubectlResult result = guarded.attempt({"apply", "--filename", "-"});
  CHECK(!result.good());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(failure_of(result.err) == KubectlFailure::connection);
}

TEST_CASE("a launcher that ends gives its lease to the one that stands by") {
  Held h;
  LauncherLease second(h.fake.kubectl(), "a", false, kTerms);
  REQUIRE(comes([&] { return second.look() == State::waiting && second.holder_lives(); }));
  CHECK(second.holder_text().starts_with("launcher on "));
  CHECK(!second.may_act());
  h.lease.reset();
  REQUIRE(comes([&] { return second.look() == State::held; }));
  CHECK(second.may_act());
  CHECK(Json::parse(h.fake.read("lease")).at("spec").at("leaseTransitions") == 2);
}

TEST_CASE("a launcher whose run another has taken over acts no more, and says who has it") {
  const Held h;
  Json lease = Json::parse(h.fake.read("lease"));
  lease["spec"]["holderIdentity"] = "there_7_00000000";
  lease["metadata"]["resourceVersion"] = "1000";
  h.fake.write("version", "1000\n");
  h.fake.write("lease", lease.dump());
  REQUIRE(comes([&] { return !h.lease->may_act(); }));
  std::string holder = "nobody was told";
  try {
    comes([&] { return (void)h.lease->news(), false; }, 10);
  } catch (const LeaseLost& lost) {
    holder = lost.holder();
  }
  CHECK(holder == "there_7_00000000");
  CHECK(!h.lease->guarded().attempt({"apply", "x"}).good());
}

TEST_CASE("a launcher sees behind its next renewal that its run is to be stopped") {
  const Held h;
  h.fake.write("phase", "stopping");
  std::this_thread::sleep_for(std::chrono::seconds(1));
  CHECK(!h.lease->stop_asked());  // the phase of an earlier part of the run
  h.lease->look_for_stop();
  CHECK(comes([&] { return h.lease->stop_asked(); }));
}

TEST_CASE("where Leases are forbidden a launcher acts without one, and knows") {
  const FakeKubectl fake(kLeaseServer);
  fake.write("forbidden", "");
  LauncherLease lease(fake.kubectl(), "a", true, kTerms);
  CHECK(lease.wait([] { return true; }) == State::forbidden);
  CHECK(lease.may_act());
  CHECK(lease.news().empty());
  CHECK(lease.trouble().find("leases is forbidden") != std::string::npos);
}
