#include "sim/base/text/names_like.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace reckon;

TEST_CASE("few names are all said, of many those that are near and how to see the rest") {
  std::vector<std::string> names{"n1-standard-1", "n1-standard-16", "n1-highmem-16",
                                 "a2-highgpu-1g"};
  const auto hint = [&](std::string_view word) {
    return names_like(word, names, "machines", "reckon catalog list machines");
  };
  CHECK(hint("n1-standart-16") ==
        "machines: n1-standard-1, n1-standard-16, n1-highmem-16, a2-highgpu-1g");
  for (int i = 0; i < 146; ++i) names.push_back("other-" + std::to_string(i));
  // A wrong letter is nearer than that and a missing one; n1-highmem-16 is too far.
  CHECK(hint("n1-standart-16") ==
        "like it: n1-standard-16, n1-standard-1; machines: 148 more, listed by "
        "`reckon catalog list machines`");
  // What begins with the word, or has it inside, whatever the case.
  CHECK_THAT(hint("N1-standard"), Catch::StartsWith("like it: n1-standard-1, n1-standard-16"));
  CHECK_THAT(hint("highgpu"), Catch::StartsWith("like it: a2-highgpu-1g; "));
  CHECK(hint("zzz") == "machines: 150, listed by `reckon catalog list machines`");
  CHECK(hint("") == "machines: 150, listed by `reckon catalog list machines`");
}

TEST_CASE("a word that very many names begin with shows five") {
  std::vector<std::string> names;
  for (int i = 100; i < 130; ++i) names.push_back("region-" + std::to_string(i));
  CHECK(names_like("region", names, "regions", "list") ==
        "like it: region-100, region-101, region-102, region-103, region-104; regions: 25 more, "
        "listed by `list`");
}
