#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/foreign/ai_platform/ai_platform.h"
#include "exchange/foreign/gke_node_pools.h"
#include "exchange/foreign/kubernetes_jobs.h"
#include "exchange/foreign/terraform_plan.h"
#include "exchange/foreign/tf_config.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// A file of others is imported or gives diagnostics; what is imported becomes a scenario or gives
// diagnostics; an AI Platform job that became one can be exported and imported again. The first
// byte says which kind of file it is.
namespace {

using namespace reckon;

const Catalog* catalog() {
  static const auto loaded = [] {
    const std::vector<std::filesystem::path> layers{RECKON_SOURCE_DIR "/catalogs"};
    return load_catalog(layers);
  }();
  return loaded ? &*loaded : nullptr;
}

void require(bool condition) {
  if (!condition) std::abort();
}

/// The scenario; "" where there is none.
std::string scenario(const Expected<Imported>& imported) {
  static const ImportedWork work{.model = "mlp_mnist",
                                 .dataset = "mnist",
                                 .length = "epochs: 1",
                                 .precision = "",
                                 .batch = 1,
                                 .assumed = {}};
  if (!imported) {
    require(!format(imported.error()).empty());
    return "";
  }
  const auto text = scenario_of(*imported, work, *catalog());
  if (!text) require(!format(text.error()).empty());
  return text ? *text : "";
}

Expected<Imported> ai_platform(std::string_view text) {
  auto job = ai_platform_job(text, "config.yaml", {});
  if (!job) return tl::unexpected(std::move(job.error()));
  return import_ai_platform(std::move(*job), "config.yaml", *catalog());
}

void there_and_back(std::string_view text) {
  const std::string first = scenario(ai_platform(text));
  if (first.empty()) return;
  const auto file = parse_scenario(first, "first");
  const auto document = parse_yaml(first, "first");
  require(file && document);
  const auto job = ai_platform_config(*file, *document, *catalog());
  if (!job) return;  // gcloud's words may say what no job has
  require(bool(ai_platform(*job)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || catalog() == nullptr) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'a':
      there_and_back(text);
      break;
    case 'g':
      scenario(import_gke_node_pools(text, "pools.json", {}, *catalog()));
      break;
    case 'f':
      scenario(import_terraform_plan(text, "plan.json", {}, "us-east-1", *catalog()));
      break;
    case 'k':
      scenario(import_kubernetes_job(text, "job.yaml", {"T4", "", std::nullopt, ""}, *catalog()));
      break;
    case 't':
      scenario(import_tf_config(
          text, "tf.json",
          {"n1-standard-8", "n1-highmem-8", "", 1, Provider{"gcp"}, "us-central1"}));
      break;
    default:
      break;
  }
  return 0;
}
