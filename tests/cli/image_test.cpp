#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run/hand_started.h"

// `scripts/image`: reckon-worker as a container image, without a container engine.
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

Output image(const Workspace& w, const std::string& words) {
  return w.run_shell("'" RECKON_SOURCE_DIR "/scripts/image' " + words);
}

/// A worker that loads one library by itself, and is linked to none.
void write_loading_worker(const Workspace& w, const std::string& answer) {
  w.write("worker", "#!/bin/sh\n[ \"$1\" = --libraries ] || exit 2\n" + answer + "\n");
  fs::permissions(w.path("worker"), fs::perms::owner_all);
  w.write("found.so", "what devices need");
}

}  // namespace

TEST_CASE(
    "an image holds the worker, what it is linked to, the catalogs, and nobody but its user") {
  const Workspace w;
  const std::string worker = " --cpu-only --worker '" RECKON_BINARY_DIR "/bin/reckon-worker'";
  const Output made = image(w, "one.tar --name localhost/some:7" + worker);
  INFO(made.err);
  REQUIRE(made.code == 0);
  REQUIRE(image(w, "two.tar --name localhost/some:7" + worker).code == 0);
  CHECK(w.run_shell("cmp one.tar two.tar").code == 0);

  const auto manifest = nlohmann::json::parse(w.run_shell("tar xOf one.tar manifest.json").out);
  CHECK(manifest[0]["RepoTags"][0] == "localhost/some:7");
  const std::string name = manifest[0]["Config"];
  const auto config = nlohmann::json::parse(w.run_shell("tar xOf one.tar " + name).out);
  CHECK(config["config"]["User"] == "65532:65532");
  CHECK(config["config"]["Entrypoint"] == nlohmann::json{"/usr/bin/reckon-worker"});
  const std::string layer = manifest[0]["Layers"][0];
  const std::string digest =
      w.run_shell("tar xOf one.tar " + layer + " | sha256sum").out.substr(0, 64);
  CHECK(config["rootfs"]["diff_ids"][0] == "sha256:" + digest);
  CHECK(layer == "blobs/sha256/" + digest);

  // The same blobs as an OCI image layout: each by its digest.
  const auto index = nlohmann::json::parse(w.run_shell("tar xOf one.tar index.json").out);
  const auto blob = [&w](const nlohmann::json& named) {
    std::string path = "blobs/" + named["digest"].get<std::string>();
    path.replace(path.find(':'), 1, "/");
    const std::string text = w.run_shell("tar xOf one.tar " + path).out;
    CHECK(text.size() == named["size"].get<std::size_t>());
    return text;
  };
  CHECK(w.run_shell("tar xOf one.tar oci-layout").out == R"({"imageLayoutVersion": "1.0.0"})");
  CHECK(index["manifests"][0]["annotations"]["io.containerd.image.name"] == "localhost/some:7");
  const auto oci = nlohmann::json::parse(blob(index["manifests"][0]));
  CHECK(nlohmann::json::parse(blob(oci["config"])) == config);
  CHECK(oci["layers"][0]["digest"] == "sha256:" + digest);

  REQUIRE(w.run_shell("mkdir root && tar xOf one.tar " + layer + " | tar xf - -C root").code == 0);
  CHECK(fs::exists(w.path("root/usr/share/reckon/catalogs/accelerators.yaml")));
  CHECK_FALSE(fs::exists(w.path("root/bin/sh")));
  // It is tried with nothing around it. Sanitizers want /proc.
  if (::geteuid() != 0 || fs::exists(w.path("root/usr/lib/reckon/libasan.so.8"))) return;
  const Output tried = w.run_shell(
      "chmod 755 . root && LD_LIBRARY_PATH=/usr/lib/reckon chroot --userspec=65532:65532 root "
      "/usr/bin/reckon-worker --version");
  INFO(tried.err);
  CHECK_THAT(tried.out, Contains("reckon-worker "));
}

TEST_CASE("an image holds what its worker loads for a GPU, unless it is for CPUs") {
  const Workspace w;
  write_loading_worker(w, "echo \"libneeded.so.3 => $PWD/found.so\"");
  const Output made = image(w, "--tree gpu --worker worker");
  INFO(made.err);
  REQUIRE(made.code == 0);
  CHECK(read_all(w.path("gpu/usr/lib/reckon/libneeded.so.3")) == "what devices need");
  REQUIRE(image(w, "--tree cpu --cpu-only --worker worker").code == 0);
  CHECK_FALSE(fs::exists(w.path("cpu/usr/lib/reckon/libneeded.so.3")));
}

TEST_CASE("an image of a worker that lacks what a GPU needs is not made") {
  const Workspace w;
  write_loading_worker(w, "echo 'libneeded.so.3: cannot open' >&2; exit 3");
  const Output made = image(w, "--tree gpu --worker worker");
  CHECK(made.code == 1);
  CHECK_THAT(made.err, Contains("libneeded.so.3: cannot open") && Contains("--cpu-only"));
  CHECK_FALSE(fs::exists(w.path("gpu")));
}
