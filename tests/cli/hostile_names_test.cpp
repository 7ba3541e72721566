#include <catch2/catch.hpp>

#include "cli/hostile.h"

// Whatever a user calls a thing: no shell runs it, no parser takes it for more than a text, no
// terminal obeys it. The judges are bash, a gcloud that records what it is given, Python's readers.
using namespace reckon::test;
using nlohmann::json;

namespace {

/// A `gcloud` in the workspace that writes its words to gcloud.log, each behind a NUL, and does
/// nothing else.
void make_gcloud(const Workspace& w) {
  const std::string file =
      w.write("bin/gcloud", "#!/bin/sh\nprintf '%s\\0' \"$@\" end-of-command >> gcloud.log\n");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
}

/// The words of each command that gcloud was started with.
std::vector<std::vector<std::string>> gcloud_commands(const Workspace& w) {
  std::vector<std::vector<std::string>> commands(1);
  const std::string log = read_all(w.path("gcloud.log"));
  for (std::size_t at = 0; at < log.size();) {
    const std::string word(log.c_str() + at);
    at += word.size() + 1;
    if (word == "end-of-command")
      commands.emplace_back();
    else
      commands.back().push_back(word);
  }
  commands.pop_back();
  return commands;
}

void check_output(const Output& r) {
  INFO(r.out << "\n" << r.err);
  CHECK(is_harmless(r.out));
  CHECK(is_harmless(r.err));
  CHECK(workflow_commands(r.out + "\n" + r.err).empty());
}

/// For sh, which starts reckon here and does not know the $'..' of bash.
std::string posix_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

/// A container all of whose texts are hostile, in place of kScenario's model.
std::string with_container(const std::string& name, const std::string& text) {
  std::string scenario = scenario_named(name);
  std::string image = text;
  std::erase_if(image, [](char c) { return c <= ' ' || c == 0x7F; });  // of ASCII, no blanks
  const std::string container = "container: {image: " + quoted("i" + image) +
                                ", command: [sh, -c, " + quoted(text) +
                                "], env: {NOTE: " + quoted(text) + "}, profile: resnet50_v1_5}";
  const std::string model = "model: resnet50_v1_5";
  return scenario.replace(scenario.find(model), model.size(), container);
}

}  // namespace

TEST_CASE("bash runs nothing of a name, and gcloud gets it as one word") {
  const Workspace w;
  make_gcloud(w);
  for (const std::string& name : kHostileNames) {
    INFO(name);
    w.write("s.yaml", scenario_named(name));
    const Output r = w.run("export gcloud s.yaml --out make.sh");
    INFO(r.err);
    REQUIRE(r.code == 0);
    INFO(read_all(w.path("make.sh")));
    CHECK(w.run_shell("bash -n make.sh").code == 0);
    std::filesystem::remove(w.path("gcloud.log"));
    CHECK(w.run_shell("PATH=\"$PWD/bin:$PATH\" bash make.sh").code == 0);
    const auto commands = gcloud_commands(w);
    REQUIRE(commands.size() == 2);
    REQUIRE(commands[0].size() > 3);
    CHECK(commands[0][2] == "create");
    CHECK(commands[0][3] == name);
    CHECK(commands[1][3] == "p100");
    CHECK(std::ranges::count(commands[1], "--cluster=" + name) == 1);
    CHECK_FALSE(std::filesystem::exists(w.path("x")));
  }
}

TEST_CASE("the zone and the machine of a scenario are one word each as well") {
  const Workspace w;
  make_gcloud(w);
  std::string text = scenario_named("small");
  const std::string region = "us-central1' $(touch x)";  // of no catalog: refused, not run
  text.replace(text.find("region: us-central1"), 19, "region: " + quoted(region));
  w.write("s.yaml", text);
  const Output r = w.run("export gcloud s.yaml");
  CHECK(r.code == 2);
  check_output(r);
}

TEST_CASE("YAML readers get back every text of a manifest as it was") {
  need_python();
  const Workspace w;
  std::vector<std::string> texts = kHostileNames;
  for (const char* more : {"two\nlines\n", "\ttab\rreturn", "\x1b[31m", "\u202e\u2028\u0085", "no",
                           " lead", "- x", "a: |\n  b"})
    texts.emplace_back(more);
  for (std::size_t k = 0; k < texts.size(); ++k) {
    const std::string& text = texts[k];
    const std::string& name = kHostileNames[k % kHostileNames.size()];
    INFO(text);
    const std::string scenario = with_container(name, text) + "# \u0085\u009b\u2028\u202e\n";
    w.write("s.yaml", scenario);
    constexpr const char* kShapes[] = {"job", "jobset", "tfjob", "pytorchjob"};
    const Output r =
        w.run(std::string("export kubernetes s.yaml --out m.yaml --as ") + kShapes[k % 4]);
    INFO(r.err);
    REQUIRE(r.code == 0);
    check_output(r);
    CHECK(is_harmless(read_all(w.path("m.yaml"))));
    const std::string all = read_as(w, "yaml", "m.yaml").dump();
    const auto holds = [&](const std::string& value) { return contains(all, json(value).dump()); };
    CHECK(holds(text));  // command and environment
  }
}

TEST_CASE("Kubernetes puts no variable in place of a part of a scenario's name") {
  need_python();
  const Workspace w;
  w.write("s.yaml", scenario_named("r$(HOME)$$x"));
  const Output r = w.run("export kubernetes s.yaml --out m.yaml --set name='r$(HOME)$$x'");
  REQUIRE(r.code == 0);
  const std::string all = read_as(w, "yaml", "m.yaml").dump();
  CHECK(contains(all, "\"/checkpoints/r$$(HOME)$$$$x\""));
}

TEST_CASE("what is printed of hostile names is harmless, and JSON, XML and HTML hold them whole") {
  need_python();
  const Workspace w;
  const bool has_html = w.run("simulate --help").code == 0 &&
                        !contains(w.run("doctor --format json").out, "built without");
  for (const std::string& name : kHostileNames) {
    INFO(name);
    w.write("s.yaml", scenario_named(name) + "expect: [p95(time) <= 1s]\n");
    const Output table = w.run("simulate s.yaml --memo memo.md --trace trace.json");
    CHECK(table.code == 0);
    check_output(table);
    CHECK(contains(table.out, name));
    CHECK(is_harmless(read_all(w.path("memo.md"))));
    CHECK_FALSE(contains(read_all(w.path("memo.md")), "<script>"));
    CHECK(json::accept(read_all(w.path("trace.json"))));
    const Output as_json = w.run("simulate s.yaml --format json");
    check_output(as_json);
    CHECK(json::parse(as_json.out)["scenario"] == name);
    const Output checked = w.run("check s.yaml --junit junit.xml");
    CHECK(checked.code == 1);
    check_output(checked);
    CHECK(read_as(w, "xml", "junit.xml").size() > 2);
    if (!has_html || name != kHostileNames[9]) continue;
    const Output page = w.run("simulate s.yaml --html page.html");
    if (page.code != 0) continue;  // built without npm
    for (const json& element : read_as(w, "html", "page.html"))
      CHECK(element["text"] != "alert(1)");
  }
}

TEST_CASE("names that no scenario may have are refused where they stand") {
  const Workspace w;
  for (const RefusedName& refused : kRefusedNames) {
    INFO(quoted(refused.name));
    w.write("s.yaml", scenario_named(refused.name));
    for (const char* command : {"export gcloud s.yaml", "simulate s.yaml"}) {
      const Output r = w.run(command);
      INFO(r.err);
      CHECK(r.code == 2);
      CHECK(contains(r.err, "s.yaml:1:7: error: "));
      CHECK(contains(r.err, refused.why));
      check_output(r);
    }
  }
}

TEST_CASE("pools, jobs, images and variables whose names are options or two words are refused") {
  const Workspace w;
  const auto refused = [&](const std::string& what, const std::string& by, const char* where) {
    std::string text = with_container("small", "x");
    text.replace(text.find(what), what.size(), by);
    w.write("s.yaml", text);
    const Output r = w.run("export gcloud s.yaml");
    INFO(by << "\n" << r.err);
    CHECK(r.code == 2);
    CHECK(contains(r.err, where));
    check_output(r);
  };
  refused("- name: p100", "- name: --help", "s.yaml:15:13: error: '--help' cannot be a name");
  refused("- name: p100", "- name: \"a\\nb\"", "s.yaml:15:13: error: 'a\\nb' cannot be a name");
  refused("\"ix\"", "\"a b\"", "s.yaml:3:22: error: 'a b' is no image: it has a blank");
  refused("\"ix\"", "\"a\\n- b\"", "has a line break or a control character");
  refused("\"ix\"", "\"-v/:/host\"", "begins with '-'");
  refused("NOTE:", "\"A=B\":", "'A=B' is no name of an environment variable");
  refused("zone: us-central1-c", "zone: \"a\\e[31m\"", "control character: 'a\\u001b[31m'");
}

TEST_CASE("options of Kubernetes take names of objects alone, none of which is an option") {
  const Workspace w;
  w.write("s.yaml", kScenario);
  for (const char* option : {"namespace", "claim", "storage-class", "bucket"})
    for (const char* value : {"-x", "a b", "a\nb", "A", "a;b", "../x"}) {
      const Output r =
          w.run("export kubernetes s.yaml --" + std::string(option) + "=" + posix_word(value));
      INFO(option << " " << value << "\n" << r.err);
      CHECK(r.code == 2);
      CHECK(contains(r.err, std::string("--") + option));
      check_output(r);
    }
  CHECK(w.run("export kubernetes s.yaml --image 'a b'").code == 2);
  CHECK(w.run("stop --on kubernetes -- -x").code == 2);
  CHECK(w.run("status --on kubernetes 'a b'").code == 2);
}

TEST_CASE("a file's name is no workflow command of GitHub and no escape of a terminal") {
  need_python();
  const Workspace w;
  for (const std::string name :
       {"a\n::error::b.yaml", "::error::b.yaml", "a\x1b[31m\r.yaml", "a%0A::error::b,c:d.yaml",
        "a'$(touch x)\".yaml", "a]]><b>&.yaml", "a\u202eb.yaml"}) {
    INFO(name);
    const std::string word = posix_word(name);
    w.write(name, std::string(kScenario) + "expect: [p95(time) <= 1s]\n");
    const Output r = w.run("check --annotations github --junit junit.xml " + word);
    INFO(r.out << r.err);
    CHECK(r.code == 1);
    CHECK(is_harmless(r.out + r.err));
    const auto commands = workflow_commands(r.out + "\n" + r.err);
    REQUIRE(commands.size() == 1);
    CHECK(commands[0].starts_with("::error file=" + std::string(name[0] == 'a' ? "a" : "%3A")));
    CHECK(commands[0].find("::", 2) > commands[0].find(",line="));
    CHECK(read_as(w, "xml", "junit.xml").size() == 4);
    // What is wrong with it, and that it is not there, is said on one line.
    w.write(name, "name: x\nworkloda: {}\n");
    for (const std::string command : {"check ", "simulate ", "export gcloud "})
      check_output(w.run(command + word));
    std::filesystem::remove(w.path(name));
    for (const std::string command :
         {"check ", "simulate ", "export kubernetes ", "import gke ", "accuracy "})
      check_output(w.run(command + word));
    check_output(w.run("simulate " + word + " --set " + word));
    check_output(w.run("simulate " + word + " --" + word));
  }
}
