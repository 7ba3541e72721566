#include "executor/kubernetes/kubectl.h"

#include <catch2/catch.hpp>
#include <chrono>

#include "executor/kubernetes/fake_kubectl.h"

using namespace reckon;
using namespace reckon::kubernetes;
using reckon::test::FakeKubectl;

namespace {

/// What a command that fails throws.
KubectlError error_from(const Kubectl& kubectl, const Words& words) {
  try {
    kubectl.run(words);
  } catch (const KubectlError& error) {
    return error;
  }
  return {KubectlFailure::other, "nothing was thrown"};
}

}  // namespace

TEST_CASE("kubectl gets the context, the namespace, its words and standard input") {
  const FakeKubectl fake("echo \"$@\"; cat; echo not this >&2");
  const Kubectl kubectl({.program = fake.program(), .context = "prod", .name_space = "team"});
  CHECK(kubectl.run({"apply", "-f", "-"}, "kind: Job\n") ==
        "--context prod --namespace team apply -f -\nkind: Job\n");
  CHECK(kubectl.attempt({"get", "pods"}).err == "not this\n");
}

TEST_CASE("what kubectl could not do is told in its own words with what to do") {
  const FakeKubectl fake(
      "echo 'Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout' >&2; exit 1");
  const KubectlError error = error_from(fake.kubectl(), {"get", "pods"});
  CHECK(error.failure() == KubectlFailure::connection);
  CHECK(std::string(error.what()) ==
        "kubectl get pods: Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout; "
        "is the cluster up, and does `kubectl cluster-info` reach it from here?");
}

TEST_CASE("without words of kubectl its exit code is told") {
  const FakeKubectl fake("exit 7");
  CHECK(std::string(error_from(fake.kubectl(), {"version"}).what()) ==
        "kubectl version: ended with code 7");
}

TEST_CASE("a kubectl that is not there says how to name one") {
  const Kubectl kubectl({.program = "/nowhere/kubectl", .context = {}, .name_space = {}});
  const KubectlError error = error_from(kubectl, {"version"});
  CHECK(error.failure() == KubectlFailure::setup);
  CHECK(std::string(error.what()).find("name it in RECKON_KUBECTL") != std::string::npos);
}

TEST_CASE("a kubectl that does not answer is killed and counts as a lost connection") {
  const FakeKubectl fake("exec sleep 100");
  const auto begin = std::chrono::steady_clock::now();
  const KubectlResult result = fake.kubectl().attempt({"get", "pods"}, {}, Seconds{0.2});
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(result.code != 0);
  CHECK(failure_of(result.err) == KubectlFailure::connection);
}

TEST_CASE("more output than a pipe holds arrives whole on both streams") {
  const FakeKubectl fake(
      "head -c 3000000 /dev/zero | tr '\\0' x; head -c 2000000 /dev/zero | tr '\\0' y >&2");
  const KubectlResult result = fake.kubectl().attempt({"get"});
  CHECK(result.out == std::string(3000000, 'x'));
  CHECK(result.err == std::string(2000000, 'y'));
}

TEST_CASE("failures are told apart by kubectl's words") {
  const auto is = [](const char* text, KubectlFailure failure) {
    INFO(text);
    CHECK(failure_of(text) == failure);
  };
  // As printed by kubectl 1.20 and 1.32 in each of these situations.
  is("The connection to the server 127.0.0.1:16443 was refused - did you specify the right host or "
     "port?",
     KubectlFailure::connection);
  is("The connection to the server localhost:8080 was refused - did you specify the right host or "
     "port?",
     KubectlFailure::setup);
  is("error: context \"prod\" does not exist", KubectlFailure::setup);
  is("error: You must be logged in to the server (Unauthorized)", KubectlFailure::login);
  is("Error from server (Forbidden): pods is forbidden: User \"joe\" cannot list resource \"pods\"",
     KubectlFailure::forbidden);
  is("Error from server (Forbidden): error when creating \"STDIN\": pods \"a\" is forbidden: "
     "exceeded quota: small",
     KubectlFailure::forbidden);
  is("Error from server (NotFound): pods \"a\" not found", KubectlFailure::missing);
  is("Error from server (AlreadyExists): namespaces \"a\" already exists",
     KubectlFailure::conflict);
  is("error: error validating \"STDIN\": error validating data: ValidationError(Job.spec): unknown "
     "field \"completionMode\"",
     KubectlFailure::invalid);
  is("Error from server: etcdserver: leader changed", KubectlFailure::connection);
  is("error: the server doesn't have a resource type \"jobz\"", KubectlFailure::other);
}

TEST_CASE("who is patient tries again until the server is back") {
  const FakeKubectl fake(
      "echo x >> tries; [ $(wc -l < tries) -ge 3 ] && { echo there; exit; }\n"
      "echo 'Unable to connect to the server: EOF' >&2; exit 1");
  std::vector<double> delays;
  const std::string text = patiently([&] { return fake.kubectl().run({"get"}); },
                                     [&](const KubectlError&, Seconds delay) {
                                       delays.push_back(delay.count());
                                       return true;
                                     });
  CHECK(text == "there\n");
  CHECK(delays == std::vector<double>{0.5, 1});
}

TEST_CASE("who is patient does not wait for what does not pass, and not for ever") {
  const FakeKubectl forbidden("echo 'Error from server (Forbidden): no' >&2; exit 1");
  int asked = 0;
  const auto count = [&](const KubectlError&, Seconds) { return ++asked < 4; };
  CHECK_THROWS_AS(patiently([&] { return forbidden.kubectl().run({"get"}); }, count), KubectlError);
  CHECK(asked == 0);
  const FakeKubectl away("echo 'Unable to connect to the server: EOF' >&2; exit 1");
  CHECK_THROWS_AS(patiently([&] { return away.kubectl().run({"get"}); }, count), KubectlError);
  CHECK(asked == 4);
}
