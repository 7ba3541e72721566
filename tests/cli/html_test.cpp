#include <catch2/catch.hpp>

#include "cli/run_reckon.h"
#include "support/html_page.h"
#include "support/skip.h"

// `--html` as people meet it: written by the program, opened in headless Chromium.
using namespace reckon::test;
using nlohmann::json;

namespace {

bool program_on_path(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

/// Of `reckon doctor`: {"ok": ..., "detail": ...}.
json html_finding(const Workspace& w) {
  const json report = json::parse(w.run("doctor --format json").out);
  for (const json& check : report["checks"])
    if (check["name"] == "html") return check;
  return nullptr;
}

void need_scripts(const Workspace& w) {
  const json finding = html_finding(w);
  if (finding["ok"] != true) skip_test(finding["detail"]);
}

/// A scenario whose name and question try to break out of the page.
const std::string kEvilName = "</script><b id=evil>\"&'";
std::string scenario() {
  std::string text = kScenario;
  text.replace(text.find("name: small"), 11, "name: '</script><b id=evil>\"&'''");
  return "# Question: is <i id=evil>this</i> safe?\n" + text +
         "expect: [p95(time) <= 80min, p95(cost) <= 1 USD]\n";
}

/// Counts what is drawn, once the page says that it is done. Runs before all else, to see errors.
constexpr const char* kProbe = R"(<script>
const errors = [];
addEventListener("error", (e) => errors.push(String(e.message)));
addEventListener("securitypolicyviolation",
                 (e) => errors.push(e.violatedDirective + " " + e.blockedURI));
for (const kind of ["error", "warn"]) console[kind] = (...words) => errors.push(words.join(" "));
function look() {
  if (document.documentElement.dataset.drawn === undefined) return setTimeout(look, 50);
  const charts = {};
  for (const element of document.querySelectorAll("[data-chart]")) {
    const svg = element.querySelector("svg");
    const bars = [...element.querySelectorAll("svg .mark-rect path")];
    const box = svg && svg.getBoundingClientRect();
    charts[element.dataset.chart] = {
      width: box ? box.width : 0, height: box ? box.height : 0, right: box ? box.right : 0,
      bars: bars.length,
      rules: element.querySelectorAll("svg .mark-rule line").length,
      painted: bars.filter((p) => getComputedStyle(p).fill.startsWith("rgb") &&
                                  p.getBoundingClientRect().width > 0).length,
      texts: [...element.querySelectorAll("svg text")].map((t) => t.textContent),
      label: element.getAttribute("aria-label"),
    };
  }
  const result = {
    charts, errors, drawn: Number(document.documentElement.dataset.drawn),
    inner: innerWidth, scroll: document.documentElement.scrollWidth,
    loaded: performance.getEntriesByType("resource").length,
    evil: document.querySelectorAll("#evil").length,
    lang: document.documentElement.lang, title: document.title,
  };
  parent.postMessage(encodeURIComponent(JSON.stringify(result)), "*");
}
addEventListener("load", look);
</script>)";

std::string decoded(const std::string& text) {
  std::string out;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '%') {
      out += char(std::stoi(text.substr(k + 1, 2), nullptr, 16));
      k += 2;
    } else {
      out += text[k];
    }
  }
  return out;
}

/// What holds of every page and every chart on it, in that width.
void check_drawn(const json& seen, const std::map<std::string, json>& specs, int width) {
  CHECK(seen["errors"].empty());
  CHECK(seen["loaded"] == 0);
  CHECK(seen["evil"] == 0);
  CHECK(seen["lang"] == "en");
  CHECK(seen["inner"] == width);
  CHECK(seen["scroll"] <= width);  // nothing to scroll sideways for
  CHECK(seen["drawn"] == specs.size());
  REQUIRE(seen["charts"].size() == specs.size());
  for (const auto& [id, chart] : seen["charts"].items()) {
    INFO(id);
    CHECK(chart["width"] > 0.8 * std::min(width, 900));
    CHECK(chart["right"] <= width);
    CHECK(chart["height"] > 40);
    CHECK(chart["label"].get<std::string>().size() > 20);
  }
}

/// What the probe saw in a frame of that width: a window of its own is never narrower than 500.
json look_at(const Workspace& w, const std::string& file, int width) {
  std::string page = read_all(w.path(file));
  page.insert(page.find("<title>"), kProbe);
  w.write("probed.html", page);
  w.write("frame.html", R"(<!doctype html><body><script>
addEventListener("message", (e) => {
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = e.data;
  document.body.append(out);
});
</script><iframe src="probed.html" style="border: 0; height: 5000px; width: )" +
                            std::to_string(width) + "px\"></iframe>");
  const std::string command =
      "cd '" + w.path("").string() +
      "' && HOME=$PWD timeout 120 chromium --headless --no-sandbox --disable-gpu "
      "--disable-dev-shm-usage --hide-scrollbars --user-data-dir=profile --window-size=1400,900 "
      "--virtual-time-budget=20000 --dump-dom \"file://$PWD/frame.html\" >dom.html "
      "2>chromium.txt </dev/null";
  CHECK(std::system(command.c_str()) == 0);
  const std::string dom = read_all(w.path("dom.html"));
  const std::string open = "<pre id=\"probe\">";
  const std::size_t at = dom.find(open);
  INFO(read_all(w.path("chromium.txt")));
  REQUIRE(at != std::string::npos);
  const std::size_t begin = at + open.size();
  return json::parse(decoded(dom.substr(begin, dom.find("</pre>", begin) - begin)));
}

bool has_text(const json& chart, const std::string& part) {
  for (const json& text : chart["texts"])
    if (contains(text.get<std::string>(), part)) return true;
  return false;
}

}  // namespace

TEST_CASE("without its scripts --html says what is missing before it simulates") {
  const Workspace w;
  const json finding = html_finding(w);
  if (finding["ok"] == true) skip_test("this build can write --html");
  w.write("a.yaml", kScenario);
  const Output r = w.run("simulate a.yaml --html a.html");
  CHECK(r.code == 3);
  CHECK(contains(r.err, finding["detail"].get<std::string>()));
  CHECK(contains(r.err, "install Node.js with npm and build again"));
  CHECK_FALSE(std::filesystem::exists(w.path("a.html")));
  CHECK(w.run("simulate a.yaml").code == 0);
}

TEST_CASE("an HTML report belongs to one plan") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r =
      w.run("simulate a.yaml --html a.html --sweep workload.batch_per_accelerator=32,64");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "--html shows one plan"));
  CHECK(contains(r.err, "reckon compare"));
}

TEST_CASE("every chart of a report is what Vega-Lite's schema allows") {
  const Workspace w;
  need_scripts(w);
  if (std::system("python3 -c 'import jsonschema' 2>/dev/null") != 0)
    skip_test("python3-jsonschema is not installed");
  w.write("a.yaml", scenario());
  REQUIRE(w.run("simulate a.yaml --html a.html").code == 0);
  json charts;
  for (const auto& [id, spec] : specs_of(read_all(w.path("a.html")))) charts[id] = spec;
  charts["mistaken"] = charts["time"];
  charts["mistaken"]["layer"][0]["encoding"]["x"]["type"] = "quantitive";
  w.write("charts.json", charts.dump());
  const std::string command =
      "cd '" + w.path("").string() +
      "' && python3 -W ignore '" RECKON_SOURCE_DIR
      "/tests/support/validate_charts.py' '" RECKON_BINARY_DIR
      "/html/node_modules/vega-lite/build/vega-lite-schema.json' charts.json >said.txt 2>&1";
  CHECK(std::system(command.c_str()) == 0);
  const std::string said = read_all(w.path("said.txt"));
  INFO(said);
  CHECK(charts.size() == 11);
  for (const auto& [id, spec] : charts.items())
    CHECK(contains(said, (id == "mistaken" ? "bad " : "ok ") + id));
}

TEST_CASE("a browser draws every chart of a report") {
  const Workspace w;
  need_scripts(w);
  if (!program_on_path("chromium")) skip_test("chromium is not installed");
  w.write("a.yaml", scenario());
  REQUIRE(w.run("simulate a.yaml --html a.html").code == 0);
  const auto specs = specs_of(read_all(w.path("a.html")));
  for (const int width : {1280, 390}) {
    INFO("a page as wide as " << width);
    const json seen = look_at(w, "a.html", width);
    INFO(seen.dump(1));
    check_drawn(seen, specs, width);
    CHECK(seen["title"] == kEvilName + " - reckon");
    for (const auto& [id, chart] : seen["charts"].items()) {
      INFO(id);
      CHECK(chart["bars"] > 0);
      CHECK(chart["painted"] > 0);
    }
    const json& charts = seen["charts"];
    CHECK(charts["time"]["bars"] == specs.at("time")["layer"][0]["data"]["values"].size());
    CHECK(charts["time"]["rules"] >= 4);  // p5, p50, p95, the limit (and the axes' lines)
    CHECK(has_text(charts["time"], "median "));
    CHECK(has_text(charts["time"], "p95(time) <= 80min: "));
    CHECK(has_text(charts["time"], "from the submit to the last step"));
    CHECK(has_text(charts["cost"], "USD from the first node to the last"));
    for (const char* id : {"ledger", "goodput", "memory", "step"})
      CHECK(charts[id]["bars"] == specs.at(id)["data"]["values"].size());
    CHECK(charts["timeline"]["bars"] == specs.at("timeline")["layer"][0]["data"]["values"].size());
    CHECK(has_text(charts["timeline"], "job"));
    CHECK(has_text(charts["timeline"], "p100-0"));
    CHECK(has_text(charts["goodput"], "training (goodput)"));
  }
}

TEST_CASE("a browser draws every chart of a comparison") {
  const Workspace w;
  need_scripts(w);
  if (!program_on_path("chromium")) skip_test("chromium is not installed");
  w.write("a.yaml", scenario());
  REQUIRE(
      w.run("compare a.yaml --sweep workload.batch_per_accelerator=32,64,96 --html a.html").code ==
      0);
  const auto specs = specs_of(read_all(w.path("a.html")));
  CHECK(specs.size() == 3);
  const json seen = look_at(w, "a.html", 390);
  INFO(seen.dump(1));
  check_drawn(seen, specs, 390);
  const json& charts = seen["charts"];
  for (const char* id : {"time", "cost"}) {
    CHECK(charts[id]["bars"] == 6);  // a range and a tick for each plan
    CHECK(charts[id]["painted"] == 6);
  }
  CHECK(has_text(charts["time-and-cost"], "C"));
}
