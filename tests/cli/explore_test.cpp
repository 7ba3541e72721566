#include <signal.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/run_reckon.h"
#include "executor/launch/process.h"
#include "executor/serve/http_client.h"
#include "support/skip.h"

// `reckon explore`: its server, whose answers are those of the commands, and its page in a browser.
using namespace reckon::test;
using nlohmann::json;

namespace {

const std::string kQuestion = std::string(kScenario) +
                              "plan:\n"
                              "  vary: {nodes: 1..3, pricing: [on_demand, spot]}\n"
                              "  deadline: 60h@95%\n";

/// `reckon explore` beside a test, killed at its end.
class Explorer {
 public:
  Explorer(const Workspace& w, const std::string& arguments)
      : before_(std::filesystem::remove(w.path("explore.txt"))),  // of another one
        process_({"reckon",
                  {"sh", "-c",
                   "cd '" + w.path("").string() +
                       "' && exec '" RECKON_BINARY_DIR "/bin/reckon' explore " + arguments +
                       " >explore.txt 2>&1"},
                  {},
                  {}}) {
    for (int k = 0; k < 3000 && link_.empty() && !process_.poll_end(); ++k) {
      const std::string text = read_all(w.path("explore.txt"));
      if (text.find('\n') != std::string::npos) link_ = text.substr(0, text.find('\n'));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    INFO(read_all(w.path("explore.txt")));
    REQUIRE(link_.starts_with("http://127.0.0.1:"));
  }
  const std::string& link() const { return link_; }
  std::string host() const { return link_.substr(7, link_.find('/', 7) - 7); }
  std::string token() const { return link_.substr(link_.find("token=") + 6); }

  /// A request with these lines besides its first.
  HttpAnswer send(const std::string& first, const std::string& lines,
                  const std::string& body = "") const {
    HttpClient client(std::uint16_t(std::stoi(host().substr(host().find(':') + 1))));
    client.send(first + " HTTP/1.1\r\n" + lines + "Content-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
    return client.answer();
  }
  HttpAnswer ask(const std::string& path, const json& question) const {
    return send("POST " + path, own_host() + bearer(), question.dump());
  }
  std::string own_host() const { return "Host: " + host() + "\r\n"; }
  std::string bearer() const { return "Authorization: Bearer " + token() + "\r\n"; }
  /// Its exit code after a Ctrl-C.
  int interrupted() {
    ::kill(process_.id(), SIGINT);
    for (int k = 0; k < 3000; ++k) {
      if (const auto end = process_.poll_end()) return end->signal != 0 ? -1 : end->code;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return -1;
  }

 private:
  bool before_;
  reckon::ChildProcess process_;
  std::string link_;
};

json choices_of(const Workspace& w, const std::string& file) {
  const Output r = w.run("explore " + file + " --print --format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  return json::parse(r.out);
}
json control(const json& choices, const std::string& name) {
  for (const json& c : choices["controls"])
    if (c["name"] == name) return c;
  return nullptr;
}

bool is_on_path(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

}  // namespace

TEST_CASE("the page of explore is for whoever has its link, at its own address") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Explorer e(w, "a.yaml");
  const std::string host = e.own_host();
  const std::string page = "GET /?token=" + e.token();
  CHECK(e.token().size() == 64);
  CHECK(e.send("GET /", host).status == 401);
  CHECK(e.send("GET /?token=" + std::string(64, '0'), host).status == 401);
  CHECK(e.send("POST /simulate", host, "{}").status == 401);
  CHECK(e.send("POST /simulate?token=" + e.token(), host, "{}").status == 401);
  CHECK(e.send("POST /simulate", host + "Authorization: Bearer x\r\n", "{}").status == 401);
  CHECK(e.send(page, "Host: evil.example\r\n").status == 403);
  CHECK(e.send(page, "").status == 403);
  CHECK(e.send("POST /simulate", "Host: evil.example\r\n" + e.bearer(), "{}").status == 403);
  const HttpAnswer opened = e.send(page, host);
  CHECK(opened.status == 200);
  CHECK(contains(opened.head, "Content-Security-Policy: default-src 'none'; script-src 'nonce-"));
  CHECK(contains(opened.head, "Cache-Control: no-store"));
  CHECK(contains(opened.head, "Referrer-Policy: no-referrer"));
  CHECK_FALSE(contains(opened.head, "Access-Control"));
  CHECK_FALSE(contains(opened.body, e.token()));
  // No address but the name of SVG's vocabulary, which nobody loads.
  std::string body = opened.body;
  const std::string svg = "http://www.w3.org/2000/svg";
  body.replace(body.find(svg), svg.size(), "");
  CHECK_FALSE(contains(body, "http://"));
  CHECK_FALSE(contains(body, "https://"));
}

TEST_CASE("explore refuses what is no question, and says what is wrong with a scenario") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Explorer e(w, "a.yaml");
  CHECK(e.ask("/simulate", std::string(100 << 10, 'x')).status == 413);
  const std::string lines = e.own_host() + e.bearer();
  for (const char* body : {"", "[]", "{", R"({"set": "a=b"})", R"({"set": [1]})",
                           R"({"replications": 0})", R"({"file": "/etc/passwd"})"}) {
    INFO(body);
    const HttpAnswer refused = e.send("POST /simulate", lines, body);
    CHECK(refused.status == 400);
    CHECK(json::parse(refused.body)["code"] == "usage");
  }
  CHECK(e.ask("/elsewhere", json::object()).status == 404);
  CHECK(e.send("GET /simulate", lines).status == 405);
  const HttpAnswer wrong = e.ask("/simulate", {{"set", {"cluster.pools.p100.nodez=2"}}});
  CHECK(wrong.status == 422);
  const json error = json::parse(wrong.body);
  CHECK(error["code"] == "input");
  CHECK(contains(error["message"], "unknown key 'nodez'"));
  const Output same = w.run("simulate a.yaml --errors json --set cluster.pools.p100.nodez=2");
  CHECK(wrong.body == same.err);
}

TEST_CASE("what explore answers is what the commands print") {
  const Workspace w;
  w.write("a.yaml", kQuestion);
  Explorer e(w, "a.yaml");
  const json set{"cluster.pools.p100.pricing=spot", "workload.batch_per_accelerator=32"};
  const std::string words =
      " --set cluster.pools.p100.pricing=spot --set workload.batch_per_accelerator=32";
  CHECK(e.ask("/simulate", {{"set", set}}).body ==
        w.run("simulate a.yaml --format json" + words).out);
  CHECK(e.ask("/simulate", {{"set", set}, {"replications", 7}}).body ==
        w.run("simulate a.yaml --format json --replications 7" + words).out);
  CHECK(e.ask("/plan", {{"set", set}}).body == w.run("plan a.yaml --format json" + words).out);
  CHECK(e.ask("/controls", {{"set", set}}).body ==
        w.run("explore a.yaml --print --format json" + words).out);
  w.write("b.yaml", e.ask("/scenario", {{"set", set}}).body);
  CHECK(w.run("simulate b.yaml --format json").out ==
        w.run("simulate a.yaml --format json" + words).out);
  CHECK(e.interrupted() == 0);
}

TEST_CASE("every value that explore offers is one that simulate takes") {
  const Workspace w;
  const std::string root = RECKON_SOURCE_DIR "/scenarios/";
  w.write("small.yaml", kScenario);
  for (const std::string& file :
       {std::string("small.yaml"), root + "gke-p100-autoscaling.yaml",
        root + "llama3-8b-zero3.yaml", root + "plan-gpt2.yaml", root + "warm-spare-small.yaml"}) {
    INFO(file);
    const json choices = choices_of(w, file);
    const Explorer e(w, file);
    for (const char* name : {"machine", "nodes", "pricing", "layout"}) {
      const json c = control(choices, name);
      INFO(c["name"]);
      std::size_t fit = 0;
      bool chosen = false;
      const std::size_t each = c["options"].size() / 3 + 1;  // of hundreds of machines a few
      for (const json& option : c["options"]) {
        INFO(option.dump());
        if (!option["why_not"].is_null() || fit++ % each != 0) continue;
        const HttpAnswer answer = e.ask("/simulate", {{"set", option["set"]}, {"replications", 2}});
        INFO(answer.body.substr(0, 400));
        CHECK(answer.status == 200);
        if (chosen || option["set"].empty()) continue;
        chosen = true;  // it is then the control's value
        const HttpAnswer next = e.ask("/controls", {{"set", option["set"]}});
        CHECK(control(json::parse(next.body), name)["value"] == option["text"]);
      }
      CHECK(fit > 0);
    }
  }
}

TEST_CASE("explore offers what the file leaves free, and searches the same values") {
  const Workspace w;
  w.write("free.yaml", kQuestion);
  const json free = choices_of(w, "free.yaml");
  CHECK(free["search"].empty());
  CHECK(control(free, "nodes")["options"].size() == 3);
  CHECK(control(free, "deadline")["value"] == "60h@95%");
  w.write("small.yaml", kScenario);
  const json small = choices_of(w, "small.yaml");
  CHECK(control(small, "nodes")["options"].size() > 3);
  CHECK(control(small, "nodes")["value"] == "1");
  CHECK(control(small, "machine")["value"] == "n1-standard-16 (2 P100-PCIE-16)");
  std::string words;
  for (const json& word : small["search"]) words += " --set '" + word.get<std::string>() + "'";
  const Output plan = w.run("plan small.yaml --format json" + words);
  INFO(plan.err);
  CHECK(plan.code == 0);
  const json answer = json::parse(plan.out);
  CHECK(answer["pareto"].size() > 1);
  const Output trace = w.run("explore " RECKON_SOURCE_DIR "/scenarios/shared-slurm.yaml --print");
  CHECK(trace.code == 2);
}

TEST_CASE("the page of explore works by keyboard, in a browser") {
  if (!is_on_path("chromium")) skip_test("chromium is not installed");
  if (!is_on_path("python3")) skip_test("python3 is not installed");
  const Workspace w;
  w.write("a.yaml", kQuestion);
  const Explorer e(w, "a.yaml");
  const Output r = w.run_shell("timeout 150 python3 '" RECKON_SOURCE_DIR
                               "/tests/support/explore_page.py' check '" +
                               e.link() + "' .");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json seen = json::parse(r.out);
  INFO(seen.dump(1));
  CHECK(seen["title"] == "small - reckon explore");
  CHECK(seen["controls"].size() == 9);
  CHECK(seen["unnamed"].empty());
  CHECK(seen["elsewhere"].empty());
  CHECK(seen["complaints"].empty());
  CHECK(seen["points"] > 1);
  CHECK(seen["nodes"] == "2");
  CHECK(seen["changed"] != seen["facts"]);
  CHECK(contains(seen["announced"], "nine of ten runs"));
  for (const char* part : {"now", "A", "B", "Goodput", "Use A again", "Use B again"})
    CHECK(contains(seen["compared"], part));
  CHECK(contains(seen["picked"], "n1-standard-16 (2 P100-PCIE-16) in us-central1, spot"));
  CHECK(contains(seen["limits"], "Deadline 60h@95%: p95 is"));
  CHECK(contains(seen["error"], "memory"));
  CHECK(seen["reset"] == seen["facts"]);
  // The copied file is the plan that was picked.
  const Output again = w.run("simulate copied.yaml --format json");
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(again.out == read_all(w.path("drawn.json")));
}
