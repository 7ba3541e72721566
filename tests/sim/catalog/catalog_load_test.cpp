#include <rapidcheck.h>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "sim/catalog/catalog.h"

// The loader: layers, and every kind of mistake with its words and its place.
using namespace reckon;

namespace {

const std::filesystem::path kShipped = RECKON_SOURCE_DIR "/catalogs";

/// A catalog directory that lives as long as the test.
class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "reckon-catalog-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    path_ = name;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory& with(const std::string& file, const std::string& text) {
    std::ofstream(path_ / file, std::ios::binary) << text;
    return *this;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Expected<Catalog> load_over_shipped(const Directory& user) {
  const std::array layers{kShipped, user.path()};
  return load_catalog(layers);
}

/// Messages with the directory taken off, so that they start with the file's name.
std::string complaints(const Expected<Catalog>& loaded, const Directory& directory) {
  REQUIRE_FALSE(loaded.has_value());
  std::string text = format(loaded.error());
  const std::string prefix = directory.path().string() + "/";
  for (std::size_t at; (at = text.find(prefix)) != std::string::npos;)
    text.erase(at, prefix.size());
  return text;
}

std::string complaints_of(const std::string& file, const std::string& text) {
  Directory user;
  user.with(file, text);
  return complaints(load_over_shipped(user), user);
}

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

const std::string kPriceHeader =
    "provider,region,item,covers,on_demand_usd_per_hour,date,zones,count\n";

}  // namespace

TEST_CASE("a user's layer replaces the fields it gives and keeps the others") {
  Directory user;
  user.with("machines.csv", "provider,machine,network_gbps\ngcp,N1-Standard-16,100\n")
      .with("accelerators.yaml", "T4:\n  peak: {fp16: 50 TFLOPS}\n");
  const auto loaded = load_over_shipped(user);
  REQUIRE(loaded.has_value());
  const Machine* machine = loaded->find_machine(Provider{"gcp"}, "n1-standard-16");
  REQUIRE(machine);
  CHECK(machine->name == "n1-standard-16");
  CHECK(machine->network.value.v == Approx(100e9 / 8));
  CHECK(machine->network.source == SourceId::user);
  CHECK_FALSE(machine->network.assumed);
  CHECK(machine->memory.value.v == Approx(60 * 1073741824.0));
  CHECK(machine->memory.source != SourceId::user);
  const Accelerator* t4 = loaded->find_accelerator("T4");
  CHECK(t4->peak_for(Precision::fp16)->value.v == Approx(50e12));
  CHECK(t4->peak_for(Precision::fp32)->value.v == Approx(8.141e12));
}

TEST_CASE("a user's layer adds machines, accelerators, sources and prices") {
  Directory user;
  user.with("sources.yaml", "bench:\n  reference: our own measurement\n  retrieved: 2026-10-01\n")
      .with("accelerators.yaml",
            "X1:\n  source: bench\n  kind: gpu\n  architecture: Volta\n  peak: {fp32: 10 TFLOPS}\n"
            "  memory: 8 GiB\n  memory_bandwidth: 100 GB/s\n  host_bandwidth: 16 GB/s\n")
      .with("machines.csv",
            "provider,machine,vcpus,memory_gib,network_gbps,accelerator,accelerators,peer_fabric\n"
            "on_premises,rack-7,64,512,100,X1,4,pcie\n")
      .with("prices.csv", kPriceHeader + "on_premises,lab,rack-7,machine,4.10,2026-10-01,,1\n");
  const auto loaded = load_over_shipped(user);
  if (!loaded) FAIL(format(loaded.error()));
  CHECK(loaded->find_machine(Provider{"on_premises"}, "rack-7")->accelerator_count == 4);
  CHECK(loaded->allowed_counts(Service{"none"}, "rack-7", "X1") == std::vector<int>{4});
  const Accelerator* x1 = loaded->find_accelerator("x1");
  CHECK(loaded->sources[static_cast<std::size_t>(x1->memory.source)].id == "bench");
  CHECK(loaded->find_efficiency(*x1, Precision::fp32, "")->accelerator == "Volta");
  const Offering* price = loaded->find_offering(Provider{"on_premises"}, "lab", "", "rack-7",
                                                Offering::Covers::machine, CapacityType::on_demand);
  REQUIRE(price);
  CHECK(price->on_demand->value.v * 3600 == Approx(4.10));
}

TEST_CASE("a training that starts from nothing named starts from scratch") {
  Directory user;
  user.with("convergence.csv",
            "model,dataset,accuracy,starts_from,sequence_length,global_batch,samples,runs\n"
            "resnet50_v1_5,imagenet,0.759,,,2048,90000000,1\n");
  const auto loaded = load_over_shipped(user);
  if (!loaded) FAIL(format(loaded.error()));
  int points = 0;
  for (const ConvergencePoint& p : loaded->convergence) {
    if (p.model != "resnet50_v1_5" || p.global_batch != 2048) continue;
    CHECK(p.samples.value.v == 9e7);
    ++points;
  }
  CHECK(points == 1);
}

TEST_CASE("of two prices of the same date the later layer's is taken, an older one is not") {
  const auto v100 = [](const std::string& date) {
    Directory user;
    user.with("prices.csv",
              kPriceHeader + "gcp,us-central1,V100,accelerator,1.5," + date + ",us-central1-a,1\n");
    const auto loaded = load_over_shipped(user);
    REQUIRE(loaded.has_value());
    const Offering* price =
        loaded->find_offering(Provider{"gcp"}, "us-central1", "us-central1-a", "V100",
                              Offering::Covers::accelerator, CapacityType::on_demand);
    return price->on_demand->value.v * 3600;
  };
  CHECK(v100("2025-07-01") == Approx(1.5));   // the date of the shipped one
  CHECK(v100("2024-07-01") == Approx(2.48));  // the shipped price is newer
}

TEST_CASE(
    "a stack's own efficiency comes before the one for any stack, the accelerator's before its "
    "architecture's") {
  Directory user;
  user.with("efficiencies.csv",
            "accelerator,precision,stack,convolution,matmul,attention,memory,half_size_gflop,"
            "launch_us,step_spread\n"
            "Volta,fp16,ngc,0.5,0.6,0.4,0.8,0.1,5,1\n"
            "V100-PCIE-16,fp16,,0.3,0.6,0.4,0.8,0.1,5,1 [0.9 1.1]\n");
  const auto loaded = load_over_shipped(user);
  if (!loaded) FAIL(format(loaded.error()));
  const auto row = [&](const char* accelerator, const char* stack) {
    return loaded->find_efficiency(*loaded->find_accelerator(accelerator), Precision::fp16, stack);
  };
  CHECK(row("V100-SXM2-32", "ngc")->convolution.value == 0.5);
  CHECK(row("V100-SXM2-32", "tf1")->stack == "");
  CHECK(row("V100-PCIE-16", "ngc")->convolution.value == 0.3);
  CHECK(row("V100-PCIE-16", "")->step_spread.high == 1.1);
  CHECK_FALSE(loaded->find_efficiency(*loaded->find_accelerator("K80"), Precision::bf16, ""));
}

TEST_CASE("the digest changes with what any layer says, not with how it is written") {
  const auto digest = [](const std::string& links) {
    Directory layer;
    layer.with("links.yaml", links);
    const auto loaded = load_over_shipped(layer);
    REQUIRE(loaded.has_value());
    return loaded->digest;
  };
  const std::string efa = "efa:\n  efficiency: {value: 0.7, low: 0.6, high: 0.8}\n";
  const std::string own = "own:\n  efficiency: 0.9\n  latency: 1 us\n";
  const std::string turned = "own:\n  latency: 1 us\n  efficiency: 0.9\n";
  const std::string base = digest(efa + own);
  CHECK(base == digest(efa + own));
  CHECK(base == digest("# a comment\n" + turned + efa));
  CHECK(base != digest(efa));
  CHECK(base != digest("efa:\n  efficiency: {value: 0.7, low: 0.6, high: 0.9}\n" + own));
  CHECK(base != digest("efa:\n  efficiency: 0.7\n" + own));
}

TEST_CASE("unknown and duplicate keys of a YAML file are pointed at") {
  CHECK(
      complaints_of("links.yaml", "ici:\n  eficiency: 0.9\n") ==
      "links.yaml:2:14: error: unknown key 'eficiency' in link 'ici'; did you mean 'efficiency'?\n"
      "    known keys: efficiency, latency, call, pieces, reduction, flow, source\n");
  CHECK_THAT(complaints_of("links.yaml", "ici:\n  latency: 1 us\n  latency: 2 us\n"),
             StartsWith("links.yaml:3:3: error: key 'latency' is there twice, first in line 2"));
  CHECK_THAT(complaints_of("links.yaml", "ici:\n  latency: 1 us\nICI:\n  latency: 2 us\n"),
             StartsWith("links.yaml:3:1: error: link 'ICI' is there twice\n    first in line 1"));
  CHECK_THAT(complaints_of("links.yaml", "ici:\n  efficiency: {value: 0.9, lo: 0.8, high: 1}\n"),
             Contains("links.yaml:2:28: error: unknown key 'lo'; did you mean 'low'?"));
}

TEST_CASE("wrong units, signs and ranges of numbers are refused with a sentence") {
  CHECK_THAT(complaints_of("accelerators.yaml", "T4:\n  memory: 16 TFLOPS\n"),
             StartsWith("accelerators.yaml:2:11: error: memory: ") && Contains("accelerator 'T4'"));
  CHECK_THAT(complaints_of("accelerators.yaml", "T4:\n  memory: -16 GiB\n"),
             Contains("memory: '-16 GiB' is negative"));
  CHECK_THAT(complaints_of("accelerators.yaml", "T4:\n  memory: 0 GiB\n"),
             Contains("memory: '0 GiB' is zero"));
  CHECK_THAT(complaints_of("accelerators.yaml", "T4:\n  memory: nan\n"),
             Contains("accelerators.yaml:2:11: error: memory: "));
  CHECK_THAT(
      complaints_of("links.yaml", "ici:\n  efficiency: {value: 0.9, low: 0.95, high: 1}\n"),
      StartsWith(
          "links.yaml:2:23: error: efficiency: '0.9' is not between 0.95 and 1 in link 'ici'"));
  CHECK_THAT(complaints_of("links.yaml", "ici:\n  efficiency: {value: 0.9, low: 0.8}\n"),
             Contains("efficiency: a range needs both low and high"));
  CHECK_THAT(complaints_of("links.yaml", "ici:\n  efficiency: 3\n"),
             Contains("a link moves more than is printed for it"));
  CHECK_THAT(complaints_of("machines.csv", "provider,machine,vcpus\ngcp,n1-standard-1,one\n"),
             StartsWith("machines.csv:2:19: error: vcpus: "));
  CHECK_THAT(complaints_of("operations.yaml", "job_start:\n  image_pull_s: 10 GB\n"),
             StartsWith("operations.yaml:2:17: error: image_pull_s: "));
  CHECK_THAT(complaints_of("operations.yaml", "job_start:\n  image_pull: 10s\n"),
             Contains("the key 'image_pull' does not end with a unit in group 'job_start'"));
}

TEST_CASE("sources must exist, have a date, and general knowledge needs a range") {
  CHECK(complaints_of("links.yaml", "ici:\n  latency: {value: 1 us, source: nccl-test}\n") ==
        "links.yaml:2:20: error: unknown source 'nccl-test' in link 'ici'; did you mean "
        "'nccl-tests'?\n"
        "    add it to sources.yaml with its reference and the date\n");
  CHECK_THAT(
      complaints_of("links.yaml", "ici:\n  latency: {value: 1 us, source: general-knowledge}\n"),
      Contains("latency comes from general knowledge and has no range in link 'ici'"));
  CHECK_THAT(complaints_of("sources.yaml", "blog:\n  reference: a page\n"),
             Contains("'retrieved' is missing in source 'blog'"));
  CHECK_THAT(complaints_of("sources.yaml", "blog:\n  reference: a page\n  retrieved: 2026-02-30\n"),
             StartsWith("sources.yaml:3:14: error: '2026-02-30' is not a date in source 'blog'"));
  Directory own;  // the first layer must name its sources
  own.with("links.yaml", "ici: {efficiency: 0.9, latency: 1 us}\n");
  const std::array layers{own.path()};
  CHECK_THAT(complaints(load_catalog(layers), own),
             Contains("the number has no source in link 'ici'"));
}

TEST_CASE("names that lead nowhere are pointed at with the nearest one") {
  CHECK_THAT(complaints_of("prices.csv",
                           kPriceHeader + "gcp,us-central1,V10O,accelerator,2,2026-01-01,,1\n"),
             StartsWith("prices.csv:2:17: error: unknown accelerator 'V10O' in price 'gcp "
                        "us-central1 V10O accelerator 1 "
                        "2026-01-01'; did you mean 'V100'?"));
  CHECK_THAT(
      complaints_of("prices.csv", kPriceHeader + "gcp,us-central1,V100,machine,2,2026-01-01,,1\n"),
      Contains("unknown machine 'V100'"));
  CHECK_THAT(complaints_of("attachments.csv",
                           "services,machine,accelerator,counts\ngke,n1-standard-15,T4,1\n"),
             Contains("unknown machine 'n1-standard-15'"));
  CHECK_THAT(complaints_of("attachments.csv",
                           "services,machine,accelerator,counts\ngkee,n1-standard-16,T4,1\n"),
             Contains("attachments.csv:2:1: error: unknown service 'gkee'") &&
                 Contains("one of: gke, gce, ai_platform"));
  CHECK_THAT(
      complaints_of("locations.csv", "provider,items,region,zones\ngcp,T4,mars-1,us-central1-a\n"),
      Contains("zone 'us-central1-a' is not in region 'mars-1'"));
  CHECK_THAT(
      complaints_of("storage_prices.csv",
                    "provider,region,storage,usd_per_gb_month,date\ngcp,x,pd-sdd,1,2026-01-01\n"),
      Contains("unknown storage 'pd-sdd'") && Contains("did you mean 'pd-ssd'?"));
  CHECK_THAT(complaints_of("efficiencies.csv", "accelerator,precision,stack\nVoltaire,fp32,\n"),
             Contains("unknown accelerator or architecture 'Voltaire'"));
  CHECK_THAT(complaints_of("accelerators.yaml", "T4:\n  peer_link: nvlinc\n"),
             Contains("unknown link 'nvlinc' in accelerator 'T4'; did you mean 'nvlink'?"));
  CHECK_THAT(complaints_of("accelerators.yaml", "T4:\n  aliases: [V100]\n"),
             Contains("'V100' already names accelerator"));
  CHECK_THAT(complaints_of("tpu_slices.csv", "slice,torus\nv2-8,2x3\n"),
             Contains("a torus of 6 chips in a slice of 4"));
}

TEST_CASE("tables with wrong columns, fields or quotes are refused") {
  CHECK_THAT(complaints_of("machines.csv", "provider,machine,vcpu\ngcp,x,1\n"),
             StartsWith("machines.csv:1:18: error: unknown column 'vcpu'; did you mean 'vcpus'?"));
  CHECK_THAT(complaints_of("machines.csv", "provider,vcpus\ngcp,1\n"),
             Contains("column 'machine' is missing"));
  CHECK_THAT(complaints_of("machines.csv", "provider,machine,machine\n"),
             Contains("column 'machine' is there twice"));
  CHECK_THAT(complaints_of("machines.csv", "provider,machine\ngcp,a,b\n"),
             StartsWith("machines.csv:2:1: error: 3 fields in a table of 2 columns"));
  CHECK_THAT(complaints_of("machines.csv", ""), Contains("the file is empty"));
  CHECK_THAT(complaints_of("machines.csv", "provider,machine,notes\ngcp,n1-standard-1,\"open\n"),
             Contains("a quoted field has no closing quote"));
  CHECK_THAT(
      complaints_of("prices.csv", kPriceHeader + "gcp,us-central1,T4,accelerator,,2026-01-01,,1\n"),
      Contains("there is no price"));
  CHECK_THAT(
      complaints_of("prices.csv", kPriceHeader + "gcp,us-central1,T4,accelerator,1,yesterday,,1\n"),
      Contains("'yesterday' is not a date"));
}

TEST_CASE(
    "quoted fields may hold commas, quotes and line ends, and places stay right behind them") {
  Directory user;
  user.with("machines.csv",
            "provider,machine,notes\ngcp,n1-standard-1,\"small, \"\"cheap\"\"\nand old\"\n");
  const auto loaded = load_over_shipped(user);
  REQUIRE(loaded.has_value());
  CHECK(loaded->find_machine(Provider{"gcp"}, "n1-standard-1")->notes ==
        "small, \"cheap\"\nand old");
  CHECK_THAT(
      complaints_of("machines.csv", "provider,machine,notes,vcpus\ngcp,n1-standard-1,\"a\nb\",0\n"),
      StartsWith("machines.csv:3:4: error: vcpus: '0' is not between 1 and 1,000,000"));
}

TEST_CASE("files and directories that are no catalog are refused") {
  CHECK_THAT(complaints_of("machine.csv", "a\n"),
             Contains("unknown catalog file 'machine.csv'; did you mean 'machines.csv'?"));
  CHECK_THAT(complaints_of("links.yaml", "ici: [1, 2\n"),
             Contains("links.yaml:") && Contains("not YAML"));
  CHECK_THAT(complaints_of("links.yaml", "- ici\n"),
             Contains("links.yaml is a mapping from names to entries"));
  CHECK_THAT(complaints_of("links.yaml", "ici: 5\n"), Contains("link 'ici' has no fields"));
  CHECK_THAT(complaints_of("links.yaml", "a: &x {latency: 1 us}\nici: *x\n"),
             Contains("no anchors and aliases"));
  CHECK_THAT(complaints_of("links.yaml", "ici:\n  latency: 1 us\n---\nefa:\n  latency: 1 us\n"),
             Contains("links.yaml has more than one document"));
  CHECK_THAT(complaints_of("links.yaml", "ici: " + std::string(5000, '[')), Contains("not YAML"));
  CHECK_THAT(complaints_of("links.yaml", std::string("ici\0", 4)), Contains("the file is binary"));
  Directory nothing;
  CHECK_THAT(complaints(load_over_shipped(nothing), nothing),
             Contains("the directory has no catalog files"));
  const std::array missing{kShipped, nothing.path() / "gone"};
  CHECK_THAT(complaints(load_catalog(missing), nothing),
             Contains("cannot read the catalog directory"));
}

TEST_CASE("whatever stands in a file, the loader answers with a catalog or with complaints") {
  CHECK(rc::check([] {
    // Bytes that matter to the readers come often.
    const auto text = [] {
      return *rc::gen::container<std::string>(rc::gen::oneOf(
          rc::gen::elementOf(std::string(",\"\n\r:[]{}&*#-'| ")), rc::gen::arbitrary<char>()));
    };
    Directory alone;
    alone.with("machines.csv", "provider,machine,vcpus\n" + text())
        .with("links.yaml", "ici: " + text());
    const std::array layers{alone.path()};
    const auto loaded = load_catalog(layers);
    if (!loaded) RC_ASSERT(has_errors(loaded.error()));
  }));
}

TEST_CASE("all mistakes of all files are told at once, in order of file and line") {
  Directory user;
  user.with("links.yaml", "ici:\n  efficiency: x\n  latency: y\n")
      .with("machines.csv", "provider,machine,vcpus\nmars,n1-standard-1,2\n");
  const auto loaded = load_over_shipped(user);
  const std::string text = complaints(loaded, user);
  const std::size_t first = text.find("links.yaml:2"), second = text.find("links.yaml:3"),
                    third = text.find("machines.csv:2");
  CHECK(first < second);
  CHECK(second < third);
  CHECK(third != std::string::npos);
}

TEST_CASE("the catalogs of the environment come before those of the source tree") {
  const char* old = std::getenv("RECKON_CATALOGS");
  const std::string kept = old ? old : "";
  setenv("RECKON_CATALOGS", "/some/where", 1);
  CHECK(default_catalog_directory() == "/some/where");
  unsetenv("RECKON_CATALOGS");
  CHECK(std::filesystem::equivalent(default_catalog_directory(), kShipped));
  if (old) setenv("RECKON_CATALOGS", kept.c_str(), 1);
}
