#include "executor/kubernetes/resource_watch.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "executor/kubernetes/fake_kubectl.h"

using namespace reckon;
using namespace reckon::kubernetes;
using reckon::test::FakeKubectl;

namespace {

/// An API server of files: `list` is what a list answers, `watch-N` what the N-th watch tells
/// before it goes on in silence; `end` ends watches; `away` refuses connections.
const char* const kServer = R"(
echo "$3" >> requests
refused='The connection to the server 127.0.0.1:1 was refused'
[ -e away ] && { echo "$refused - did you specify the right host or port?" >&2; exit 1; }
[ -e forbidden ] && { echo 'Error from server (Forbidden): pods is forbidden' >&2; exit 1; }
case $3 in
  *watch=1*)
    echo x >> watches
    number=$(($(wc -l < watches)))
    [ -e watch-$number ] && cat watch-$number
    while [ ! -e end-$number ]; do sleep 0.02; done ;;
  *) cat list ;;
esac
)";

std::string pod_event(const std::string& name, const std::string& version) {
  return R"({"metadata":{"name":")" + name + R"(","uid":"uid-)" + name +
         R"(","resourceVersion":")" + version + R"("}})";
}
std::string list_of(const std::string& items, const std::string& version) {
  return R"({"metadata":{"resourceVersion":")" + version + R"("},"items":[)" + items + "]}";
}
std::string watch_event(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

struct Watcher {
  explicit Watcher(const FakeKubectl& fake, Seconds life = Seconds{60})
      : kubectl(fake.kubectl()),
        watch(kubectl, "/api/v1/namespaces/ns/pods", "app=x,try=1",
              {.changed = [this](const Json& o) { told += "+" + name_of(o); },
               .deleted = [this](const Json& o) { told += "-" + name_of(o); },
               .trouble = [this](const std::string& t) { told += t.empty() ? "back" : "away"; }},
              life) {}
  static std::string name_of(const Json& o) { return o.at("metadata").at("name"); }
  /// Until `wanted` was told.
  bool wait_for(const std::string& wanted) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (told != wanted && std::chrono::steady_clock::now() < until) {
      watch.poll();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return told == wanted;
  }
  Kubectl kubectl;
  std::string told;
  ResourceWatch watch;
};

}  // namespace

TEST_CASE("a watch tells what is there, what changes, and what goes") {
  const FakeKubectl fake(kServer);
  fake.write("list", list_of(pod_event("a", "5"), "7"));
  fake.write("watch-1", watch_event("ADDED", pod_event("b", "8")) +
                            watch_event("MODIFIED", pod_event("a", "9")) +
                            watch_event("DELETED", pod_event("b", "10")));
  Watcher w(fake);
  CHECK(w.wait_for("+a+b+a-b"));
  CHECK(w.watch.listed());
  CHECK(fake.read("requests") ==
        "/api/v1/namespaces/ns/pods?limit=0&labelSelector=app%3Dx%2Ctry%3D1\n"
        "/api/v1/namespaces/ns/pods?watch=1&resourceVersion=7&timeoutSeconds=60"
        "&labelSelector=app%3Dx%2Ctry%3D1\n");
}

TEST_CASE("behind a watch that ended only what changed meanwhile is told, and what went") {
  const FakeKubectl fake(kServer);
  fake.write(
      "list",
      list_of(pod_event("a", "1") + "," + pod_event("b", "2") + "," + pod_event("c", "3"), "3"));
  Watcher w(fake);
  REQUIRE(w.wait_for("+a+b+c"));
  fake.write("list", list_of(pod_event("a", "1") + "," + pod_event("b", "6"), "6"));
  fake.write("end-1", "");
  CHECK(w.wait_for("+a+b+c+b-c"));
}

TEST_CASE("an expired watch is followed by a new list") {
  const FakeKubectl fake(kServer);
  fake.write("list", list_of(pod_event("a", "1"), "1"));
  fake.write("watch-1", watch_event("ERROR", R"({"kind":"Status","code":410})"));
  fake.write("watch-2", watch_event("ADDED", pod_event("b", "4")));
  Watcher w(fake);
  CHECK(w.wait_for("+a+b"));
}

TEST_CASE("an event that was cut off with its connection is left to the next list") {
  const FakeKubectl fake(kServer);
  fake.write("list", list_of(pod_event("a", "1"), "1"));
  fake.write("watch-1", watch_event("ADDED", pod_event("b", "4")).substr(0, 30));
  fake.write("end-1", "");
  Watcher w(fake);
  REQUIRE(w.wait_for("+a"));
  fake.write("list", list_of(pod_event("a", "1") + "," + pod_event("b", "4"), "4"));
  CHECK(w.wait_for("+a+b"));
}

TEST_CASE("a server that is away is said to be once, asked again, and said to be back") {
  const FakeKubectl fake(kServer);
  fake.write("list", list_of(pod_event("a", "1"), "1"));
  fake.write("away", "");
  Watcher w(fake);
  REQUIRE(w.wait_for("away"));
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  while (std::chrono::steady_clock::now() < until) w.watch.poll();  // a second refusal
  CHECK(w.told == "away");
  std::filesystem::remove(std::filesystem::path(fake.program()).parent_path() / "away");
  CHECK(w.wait_for("away+aback"));
}

TEST_CASE("a missing permission is no reason to wait") {
  const FakeKubectl fake(kServer);
  fake.write("forbidden", "");
  Watcher w(fake);
  CHECK_THROWS_AS(w.watch.poll(), KubectlError);
}

TEST_CASE("selectors are encoded as a part of a query") {
  CHECK(percent_encoded("a/b=c,d in (e)") == "a%2Fb%3Dc%2Cd%20in%20%28e%29");
  CHECK(percent_encoded("plain-1_2.3~") == "plain-1_2.3~");
}
