#include "sim/scenario/mig_profiles.h"

#include <catch2/catch.hpp>

// MIG instances of one GPU [NVIDIA, MIG User Guide, "Supported MIG Profiles" and "Creating GPU
// Instances"].
using namespace reckon;
using Catch::Contains;

namespace {

using Instances = std::map<std::string, int>;

bool may_stand(const Instances& instances, const std::string& accelerator = "A100-SXM4-80") {
  return !mig_mistake(instances, accelerator);
}

}  // namespace

TEST_CASE("as many instances of one profile as the guide's tables say") {
  // A100-SXM4-40GB and, with the memory doubled, 80GB: 7, 4 (1g.10gb of 40 GB), 3, 2, 1, 1.
  const std::map<std::string, int> most{{"1g.5gb", 7},  {"1g.10gb", 4}, {"2g.10gb", 3},
                                        {"3g.20gb", 2}, {"4g.20gb", 1}, {"7g.40gb", 1}};
  for (const auto& [name, count] : most) {
    INFO(name);
    CHECK(may_stand({{name, count}}, "A100-SXM4-40"));
    CHECK_FALSE(may_stand({{name, count + 1}}, "A100-SXM4-40"));
  }
  const std::map<std::string, int> a30{{"1g.6gb", 4}, {"2g.12gb", 2}, {"4g.24gb", 1}};
  for (const auto& [name, count] : a30) {
    INFO(name);
    CHECK(may_stand({{name, count}}, "A30"));
    CHECK_FALSE(may_stand({{name, count + 1}}, "A30"));
  }
}

TEST_CASE("profiles are mixed where their places do not overlap") {
  CHECK(may_stand({{"3g.40gb", 1}, {"2g.20gb", 1}, {"1g.10gb", 1}}));
  CHECK(may_stand({{"3g.40gb", 1}, {"2g.20gb", 1}, {"1g.10gb", 2}}));  // mig-parted: all-balanced
  CHECK(may_stand({{"4g.40gb", 1}, {"3g.40gb", 1}}));
  CHECK(may_stand({{"4g.40gb", 1}, {"2g.20gb", 1}, {"1g.10gb", 1}}));
  CHECK(may_stand({{"3g.40gb", 1}, {"2g.20gb", 2}}));
  CHECK(may_stand({{"2g.20gb", 3}, {"1g.10gb", 1}}));
  // A 4g begins at 0 alone, a 2g at 0, 2 and 4: behind a 4g there is one.
  CHECK_THAT(mig_mistake({{"4g.40gb", 1}, {"2g.20gb", 2}}, "A100-SXM4-80").value(),
             Contains("8 compute slices"));
  CHECK_FALSE(may_stand({{"4g.40gb", 2}}));
  // Seven compute slices, and all eight of memory are taken by the two 3g.
  CHECK_THAT(mig_mistake({{"3g.40gb", 2}, {"1g.10gb", 1}}, "A100-SXM4-80").value(),
             Contains("9 memory slices"));
  CHECK_FALSE(may_stand({{"7g.80gb", 1}, {"1g.10gb", 1}}));
  CHECK_FALSE(may_stand({{"1g.20gb", 3}, {"2g.20gb", 1}, {"1g.10gb", 1}}));
  CHECK_THAT(mig_mistake({{"1g.10gb", 5}, {"2g.20gb", 1}, {"1g.10gb+me", 0}}, "A100-SXM4-80")
                 .value_or("none"),
             Contains("none"));
  CHECK_THAT(mig_mistake({{"1g.10gb+me", 2}}, "A100-SXM4-80").value(), Contains("media"));
}

TEST_CASE("on seven slices whatever is within compute and memory has places") {
  const std::vector<std::string> names = mig_profile_names("A100-SXM4-80");
  int stand = 0;
  for (int code = 0; code < 8 * 5 * 4 * 3 * 2 * 2; ++code) {
    Instances instances;
    int rest = code, slices = 0, memory = 0;
    for (std::size_t k = 0; k < names.size(); ++k) {
      constexpr int kMost[] = {8, 5, 4, 3, 2, 2};
      instances[names[k]] = rest % kMost[k];
      rest /= kMost[k];
      const MigProfile profile = *mig_profile(names[k], "A100-SXM4-80");
      slices += instances[names[k]] * profile.slices;
      memory += instances[names[k]] * profile.memory;
    }
    const bool within = slices <= 7 && memory <= 8;
    CHECK(may_stand(instances) == within);
    stand += within;
  }
  CHECK(stand > 50);
}

TEST_CASE("a profile's memory is that of the GPU") {
  CHECK(mig_profile("1g.10gb", "A100-SXM4-80")->memory == 1);
  CHECK(mig_profile("1g.20gb", "A100-SXM4-80")->memory == 2);
  CHECK(mig_profile("1g.10gb", "A100-SXM4-40")->memory == 2);
  CHECK(mig_profile("1g.18gb", "H200-SXM5-141")->memory == 1);
  CHECK(mig_profile("3g.71gb", "H200-SXM5-141")->slices == 3);
  CHECK_FALSE(mig_profile("3g.20gb", "A100-SXM4-80"));
  CHECK_FALSE(mig_profile("5g.50gb", "A100-SXM4-80"));
  CHECK_FALSE(mig_profile("gpu.shared", "A100-SXM4-80"));
  CHECK(mig_profile_names("A100-SXM4-80") ==
        std::vector<std::string>{"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"});
}
