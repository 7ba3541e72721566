#include "executor/kubernetes/pods/silent_nodes.h"

#include <catch2/catch.hpp>

#include "executor/kubernetes/fake_kubectl.h"

using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;

namespace {

std::string nodes(const char* a, const char* b) {
  Json items = Json::array();
  for (const auto& [name, ready] :
       std::vector<std::pair<std::string, std::string>>{{"a", a}, {"b", b}})
    items.push_back(
        {{"metadata", {{"name", name}}},
         {"status", {{"conditions", Json::array({{{"type", "Ready"}, {"status", ready}}})}}}});
  return Json{{"items", items}}.dump();
}

}  // namespace

TEST_CASE("a node that is not ready for long enough is lost, one that comes back is not") {
  const FakeKubectl fake("shift 2; [ \"$1 $2\" = 'get nodes' ] && cat nodes");
  const Kubectl kubectl = fake.kubectl();
  SilentNodes at_once(kubectl, Seconds{0}, Seconds{0}), patient(kubectl, Seconds{3600}, Seconds{0});
  CHECK(!at_once.lost("a"));
  fake.write("nodes", nodes("Unknown", "True"));
  at_once.look();
  patient.look();
  CHECK(at_once.lost("a"));
  CHECK(!at_once.lost("b"));
  CHECK(!patient.lost("a"));
  fake.write("nodes", nodes("True", "True"));
  at_once.look();
  CHECK(!at_once.lost("a"));
}

TEST_CASE("who may not look at nodes asks once, and a cluster that is away is asked again") {
  const FakeKubectl fake("echo x >> asked; cat words >&2; exit 1");
  fake.write("words", "Unable to connect to the server: dial tcp: i/o timeout");
  const Kubectl kubectl = fake.kubectl();
  SilentNodes nodes(kubectl, Seconds{0}, Seconds{0});
  nodes.look();
  fake.write("words", "Error from server (Forbidden): nodes is forbidden");
  nodes.look();
  nodes.look();
  CHECK(fake.read("asked") == "x\nx\n");
  CHECK(!nodes.lost("a"));
}
