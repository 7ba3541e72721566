#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/plan/plan_small_question.h"
#include "cli/run_reckon.h"
#include "sim/measurement/calibration/calibration.h"

// A lock: what changed since, and whose each part is. Each kind of change alone, and all together.
using namespace reckon::test;
using Json = nlohmann::json;

namespace {

/// A newer list: P100 and T4 in us-central1 for more than the shipped catalog says.
const char* const kDearer =
    "provider,region,zones,item,covers,count,on_demand_usd_per_hour,spot_usd_per_hour,date,flag,"
    "source,notes\n"
    "gcp,us-central1,us-central1-c us-central1-f,P100-PCIE-16,accelerator,1,1.90,0.9,2026-11-01,,"
    "skypilot-gcp-v8,\n"
    "gcp,us-central1,us-central1-a us-central1-b us-central1-c us-central1-f,T4,accelerator,1,0.45,"
    "0.2,2026-11-01,,skypilot-gcp-v8,\n";

std::string lock_scenario(const std::string& expect) {
  return std::string(kScenario) + "expect:\n" + expect;
}

/// One epoch took about so long: the bounds of these tests stand between two changes.
struct Figures {
  double time = 0, cost = 0;
};
Figures figures_of(const Workspace& w, const std::string& options = "") {
  const Json j = Json::parse(w.run("simulate s.yaml --format json " + options).out);
  return {j["time_seconds"]["p50"], j["cost_usd"]["p50"]};
}

Json checked(const Workspace& w, const std::string& options, int code) {
  const Output r = w.run("check s.yaml --format json " + options);
  INFO(r.out << r.err);
  REQUIRE(r.code == code);
  return Json::parse(r.out)["scenarios"][0];
}

/// Shares of time or cost, by cause, which must add up.
std::map<std::string, double> shares(const Json& lock, std::size_t figure) {
  const Json& f = lock["figures"][figure];
  std::map<std::string, double> out;
  double sum = 0;
  for (const auto& [cause, share] : f["shares"].items()) sum += out[cause] = share;
  CHECK(sum == Approx(double(f["now"]) - double(f["then"])).margin(1e-9));
  return out;
}

void replace(std::string& text, const std::string& old, const std::string& now) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  text.replace(at, old.size(), now);
}

/// The lock as an older reckon would have written it, whose times and costs were lower.
void age(const Workspace& w, const std::string& file, double factor) {
  Json lock = Json::parse(read_all(w.path(file)));
  lock["made"]["reckon_version"] = "0.0.9";
  for (const char* of : {"forecast", "plan"}) {
    if (lock[of].is_null()) continue;
    for (const char* what : {"time_seconds", "cost_usd"})
      for (auto& value : lock[of][what]) value = double(value) * factor;
    if (lock[of].contains("score")) lock[of]["score"] = double(lock[of]["score"]) * factor;
    if (!lock[of].contains("expect")) continue;
    for (auto& e : lock[of]["expect"]) e["value"] = double(e["value"]) * factor;
  }
  w.write(file, lock.dump());
}

}  // namespace

TEST_CASE("check: with nothing changed the lock says so, and no share is told") {
  const Workspace w;
  w.write("s.yaml", lock_scenario("  - p95(time) <= 1000h\n"));
  REQUIRE(w.run("check s.yaml --lock").code == 0);
  const Json s = checked(w, "", 0);
  CHECK(s["lock"]["same"] == true);
  CHECK(shares(s["lock"], 0)["edit"] == 0);
  CHECK(contains(w.run("check s.yaml").out, "as in s.lock.json"));
  CHECK(checked(w, "--without-lock", 0)["lock"].is_null());
  // Of no lock but text: told at its file.
  w.write("s.lock.json", "{}");
  const Output r = w.run("check s.yaml");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "s.lock.json: error: no lock"));
}

TEST_CASE("check: a price that nobody edited breaks no check, and its share is told") {
  const Workspace w;
  w.write("s.yaml", lock_scenario("  - p95(time) <= 1000h\n"));
  w.write("dearer/prices.csv", kDearer);
  const Figures before = figures_of(w), after = figures_of(w, "--catalog dearer");
  REQUIRE(after.cost > 1.05 * before.cost);
  const double bound = (before.cost + after.cost) / 2;
  w.write("s.yaml", lock_scenario("  - p50(cost) <= " + std::to_string(bound) + " USD\n"));
  REQUIRE(w.run("check s.yaml --lock").code == 0);
  const Json s = checked(w, "--catalog dearer", 0);
  CHECK(s["expectations"][0]["passed"] == false);
  CHECK(s["expectations"][0]["cause"] == "prices");
  const auto cost = shares(s["lock"], 1);
  CHECK(cost.at("prices") == Approx(after.cost - before.cost));
  CHECK(cost.at("edit") == 0);
  CHECK(cost.at("evidence") == 0);
  CHECK(cost.at("reckon") == 0);
  CHECK(shares(s["lock"], 0).at("prices") == 0);  // of time
  const Output text =
      w.run("check s.yaml --catalog dearer --annotations github --junit r.xml --sarif r.sarif");
  CHECK(contains(text.out, "DRIFT p50(cost)"));
  CHECK(contains(text.out, "prices, not an edit, broke it since s.lock.json"));
  CHECK(contains(text.out, "0 failed, 1 drifted without an edit"));
  CHECK(contains(text.out, "::notice file=s.yaml,line=21"));
  CHECK(contains(read_all(w.path("r.xml")), "failures=\"0\""));
  CHECK(contains(read_all(w.path("r.xml")), "prices, not an edit"));
  CHECK(contains(read_all(w.path("r.sarif")), "\"level\": \"note\""));
  // Whoever watches prices ignores the lock.
  checked(w, "--catalog dearer --without-lock", 1);
}

TEST_CASE("check: an edit fails, evidence and another reckon do not") {
  const Workspace w;
  w.write("s.yaml", lock_scenario("  - p95(time) <= 1000h\n"));
  const Figures before = figures_of(w);
  const Figures edited = figures_of(w, "--set workload.batch_per_accelerator=4");
  const Figures blind = figures_of(w, "--without-evidence all");
  REQUIRE(edited.time > 1.02 * before.time);
  REQUIRE(blind.time != before.time);

  SECTION("your edit") {
    const double bound = (before.time + edited.time) / 2;
    w.write("s.yaml", lock_scenario("  - p50(time) <= " + std::to_string(bound) + "s\n"));
    REQUIRE(w.run("check s.yaml --lock").code == 0);
    const Json s = checked(w, "--set workload.batch_per_accelerator=4", 1);
    CHECK(s["expectations"][0]["cause"] == "edit");
    const auto time = shares(s["lock"], 0);
    CHECK(time.at("edit") == Approx(edited.time - before.time));
    CHECK(time.at("prices") == 0);
    CHECK(time.at("reckon") == 0);
    // A comment is no edit; a line of expect that is new is one.
    w.write("s.yaml", "# reviewed\n" + read_all(w.path("s.yaml")));
    CHECK(checked(w, "", 0)["lock"]["same"] == true);
    w.write("s.yaml", read_all(w.path("s.yaml")) + "  - p50(time) <= 1s\n");
    CHECK(checked(w, "", 1)["expectations"][1]["cause"] == "edit");
  }
  SECTION("evidence") {
    // Locked with less evidence than there is today.
    const double bound = (before.time + blind.time) / 2;
    w.write("s.yaml", lock_scenario(std::string("  - p50(time) ") +
                                    (blind.time < before.time ? "<= " : ">= ") +
                                    std::to_string(bound) + "s\n"));
    REQUIRE(w.run("check s.yaml --lock --without-evidence all").code == 0);
    const Json s = checked(w, "", 0);
    CHECK(s["expectations"][0]["passed"] == false);
    CHECK(s["expectations"][0]["cause"] == "evidence");
    const auto time = shares(s["lock"], 0);
    CHECK(time.at("evidence") == Approx(before.time - blind.time));
    CHECK(time.at("edit") == 0);
    CHECK(time.at("reckon") == 0);
  }
  SECTION("reckon") {
    w.write("s.yaml",
            lock_scenario("  - p50(time) <= " + std::to_string(0.97 * before.time) + "s\n"));
    REQUIRE(w.run("check s.yaml --lock").code == 1);
    age(w, "s.lock.json", 0.9);
    const Json s = checked(w, "", 0);
    CHECK(s["expectations"][0]["cause"] == "reckon");
    const auto time = shares(s["lock"], 0);
    CHECK(time.at("reckon") == Approx(0.1 * before.time));
    CHECK(time.at("edit") == 0);
    CHECK(s["lock"]["notes"].dump().find("then 0.0.9") != std::string::npos);
  }
}

TEST_CASE("check: all four kinds of change together, one after the other, add up") {
  const Workspace w;
  w.write("s.yaml", lock_scenario("  - p95(time) <= 1000h\n"));
  w.write("dearer/prices.csv", kDearer);
  const std::string edit = "--set workload.batch_per_accelerator=4", price = "--catalog dearer",
                    blind = "--without-evidence all";
  const Figures then = figures_of(w, blind);
  const Figures edited = figures_of(w, blind + " " + edit);
  const Figures repriced = figures_of(w, blind + " " + edit + " " + price);
  const Figures now = figures_of(w, edit + " " + price);
  REQUIRE(w.run("check s.yaml --lock " + blind).code == 0);
  age(w, "s.lock.json", 0.8);
  const Json s = checked(w, edit + " " + price, 0);
  const auto time = shares(s["lock"], 0), cost = shares(s["lock"], 1);
  CHECK(time.at("edit") == Approx(edited.time - then.time));
  CHECK(time.at("prices") == Approx(0).margin(1e-9));
  CHECK(time.at("evidence") == Approx(now.time - repriced.time));
  CHECK(time.at("reckon") == Approx(0.2 * then.time));
  CHECK(cost.at("edit") == Approx(edited.cost - then.cost));
  CHECK(cost.at("prices") == Approx(repriced.cost - edited.cost));
  CHECK(cost.at("evidence") == Approx(now.cost - repriced.cost));
  CHECK(cost.at("reckon") == Approx(0.2 * then.cost));
}

TEST_CASE("plan --baseline of a lock fails by an edit only, with each cause's share") {
  const Workspace w;
  w.write("q.yaml", small_plan_question("T4", "on_demand"));
  w.write("dearer/prices.csv", kDearer);
  const Output locked = w.run("plan q.yaml --lock");
  INFO(locked.out << locked.err);
  REQUIRE(locked.code == 0);
  const auto held = [&](const std::string& options, int code) {
    const Output r = w.run("plan q.yaml --baseline q.lock.json --format json " + options);
    INFO(r.out << r.err);
    REQUIRE(r.code == code);
    return Json::parse(r.out)["baseline"];
  };
  const Json same = held("", 0);
  CHECK(same["lock"]["same"] == true);
  CHECK(same["worse"] == false);

  const Json dearer = held("--catalog dearer", 0);
  CHECK(dearer["worse"] == true);
  CHECK(dearer["cause"] == "prices");
  const auto cost = shares(dearer["lock"], 1);
  CHECK(cost.at("prices") > 0);
  CHECK(cost.at("edit") == 0);
  CHECK(cost.at("reckon") == 0);

  // Of another length of training: an edit, not another job.
  const Json longer = held("--set workload.train.epochs=3", 1);
  CHECK(longer["cause"] == "edit");
  CHECK(shares(longer["lock"], 1).at("edit") > 0);

  const Json both = held("--set workload.train.epochs=3 --catalog dearer", 1);
  const auto parts = shares(both["lock"], 1);
  CHECK(parts.at("edit") == Approx(shares(longer["lock"], 1).at("edit")));
  CHECK(parts.at("prices") > cost.at("prices"));  // of three epochs

  const Json blind = held("--without-evidence all", 0);
  CHECK(shares(blind["lock"], 0).at("evidence") != 0);
  // Runs that the answer did not use are not in the lock: what they did is told apart as reckon's.
  CHECK(std::abs(shares(blind["lock"], 0).at("reckon")) <
        0.1 * std::abs(shares(blind["lock"], 0).at("evidence")));

  age(w, "q.lock.json", 0.9);
  const Json older = held("", 0);
  CHECK(older["cause"] == "reckon");
  CHECK(shares(older["lock"], 1).at("reckon") > 0);

  const Output page =
      w.run("plan q.yaml --baseline q.lock.json --set workload.train.epochs=3 --diff change.md");
  CHECK(page.code == 1);
  CHECK(contains(page.out, "by your edit"));
  const std::string markdown = read_all(w.path("change.md"));
  CHECK(contains(markdown, "| before | your edit | prices | evidence | reckon | now |"));
  CHECK(contains(markdown, "| mean cost | "));
}

TEST_CASE("check takes the lock that plan wrote, and a lock without a plan is no baseline") {
  const Workspace w;
  w.write("q.yaml", small_plan_question("T4", "on_demand") + "expect:\n  - p95(time) <= 1000h\n");
  REQUIRE(w.run("plan q.yaml --lock").code == 0);
  const Output checked = w.run("check q.yaml --format json");
  INFO(checked.out << checked.err);
  CHECK(checked.code == 0);
  CHECK(Json::parse(checked.out)["scenarios"][0]["lock"]["same"] == true);
  REQUIRE(w.run("check q.yaml --lock").code == 0);
  const Output refused = w.run("plan q.yaml --baseline q.lock.json");
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "the lock holds no plan"));
  CHECK(w.run("plan --model resnet50 --epochs 1 --lock").code == 2);
  CHECK(w.run("plan q.yaml --baseline q.lock.json --lock").code == 2);
  CHECK(w.run("plan q.yaml --fewest --lock").code == 2);
}

TEST_CASE("a calibration is evidence, and the lock holds the text that was used") {
  const Workspace w;
  w.write("s.yaml", lock_scenario("  - p95(time) <= 1000h\n"));
  const auto calibrated = [](double seconds) {
    reckon::Calibration c;
    c.created = "2026-11-21";
    c.corrections = {{.parameter = "datasets/imagenet/decode_cpu_seconds",
                      .unit = "s",
                      .catalog = {seconds, seconds, seconds},
                      .calibrated = {seconds, seconds, seconds},
                      .standard_error = 0.01,
                      .rows = {"own: step"}}};
    c.covariance = {1e-4};
    return reckon::to_yaml(c);
  };
  w.write("own.yaml", calibrated(0.5));  // input is what a step waits for
  const Figures slow = figures_of(w, "--calibration own.yaml");
  REQUIRE(w.run("check s.yaml --lock --calibration own.yaml").code == 0);
  CHECK(checked(w, "--calibration own.yaml", 0)["lock"]["same"] == true);
  w.write("own.yaml", calibrated(1));
  const Figures slower = figures_of(w, "--calibration own.yaml");
  REQUIRE(slower.time > 1.2 * slow.time);
  for (const char* now : {"--calibration own.yaml", ""}) {  // another one, and none
    const Json s = checked(w, now, 0);
    const auto time = shares(s["lock"], 0);
    CHECK(time.at("evidence") == Approx(figures_of(w, now).time - slow.time));
    CHECK(time.at("reckon") == 0);
  }
}

TEST_CASE("an edited model file counts as your edit where reckon is the same") {
  const Workspace w;
  std::string text = lock_scenario("  - p95(time) <= 100000h\n");
  replace(text, "model: resnet50_v1_5\n  dataset: imagenet\n  train: {epochs: 1}",
          "model: {huggingface: config.json}\n  sequence_length: 512\n  dataset: wikipedia-en\n  "
          "train: "
          "{tokens: 20M}");
  replace(text, "batch_per_accelerator: 64", "batch_per_accelerator: 4");
  const auto config = [](int layers) {
    return R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 768, )"
           R"("n_head": 12, "n_positions": 1024, "vocab_size": 50257, "n_layer": )" +
           std::to_string(layers) + "}";
  };
  w.write("config.json", config(6));
  w.write("s.yaml", text);
  const Output locked = w.run("check s.yaml --lock");
  INFO(locked.out << locked.err);
  REQUIRE(locked.code == 0);
  w.write("config.json", config(12));
  const Json s = checked(w, "", 0);
  CHECK(shares(s["lock"], 0).at("edit") > 0);
  CHECK(shares(s["lock"], 0).at("reckon") == 0);
  CHECK(s["lock"]["notes"].dump().find("config.json has changed") != std::string::npos);
}
