#include "exchange/json_parts.h"

#include <array>
#include <catch2/catch.hpp>

using namespace reckon;
using Catch::Matchers::Contains;

namespace {

struct Taken {
  std::vector<std::pair<std::string, YamlNode>> parts;
  Diagnostics mistakes;
};

Taken parts_of(std::string_view text, std::vector<std::string_view> wanted) {
  Taken taken;
  taken.mistakes = for_each_json_part(text, "list.json", wanted, [&](const JsonPart& part) {
    std::string path;
    for (const std::string& key : part.path) path += "/" + key;
    taken.parts.emplace_back(path, part.value);
    return true;
  });
  return taken;
}

}  // namespace

TEST_CASE("the parts of a JSON file that were asked for come one by one, with their places") {
  const std::string text =
      "{\"date\": \"today\", \"other\": [1, {\"date\": 2}],\n"
      " \"products\": {\"A\": {\"price\": 0.5,\n   \"n\": 12\n}, \"B\": {\"price\": null}}}";
  const Taken taken = parts_of(text, {"date", "products.*"});
  CHECK(taken.mistakes.empty());
  REQUIRE(taken.parts.size() == 3);
  CHECK(taken.parts[0].first == "/date");
  CHECK(taken.parts[0].second.text == "today");
  CHECK(taken.parts[0].second.at == SourcePlace{"list.json", 1, 10});
  CHECK(taken.parts[1].first == "/products/A");
  const YamlNode::Entry* price = taken.parts[1].second.find("price");
  REQUIRE(price != nullptr);
  CHECK(price->value.text == "0.5");
  CHECK(price->key_at == SourcePlace{"list.json", 2, 21});
  CHECK(price->value.at == SourcePlace{"list.json", 2, 30});
  // A number is known by the byte behind it, which ends the line here.
  CHECK(taken.parts[1].second.find("n")->value.at == SourcePlace{"list.json", 3, 9});
  CHECK(taken.parts[2].second.find("price")->value.kind == YamlNode::Kind::null);
}

TEST_CASE("JSON lines are documents one after the other, and lists have items without keys") {
  const Taken lines = parts_of("{\"a\": 1}\n{\"a\": 2}\n\n", {""});
  CHECK(lines.mistakes.empty());
  REQUIRE(lines.parts.size() == 2);
  CHECK(lines.parts[1].second.at == SourcePlace{"list.json", 2, 1});
  CHECK(lines.parts[1].second.find("a")->value.text == "2");
  const Taken pages = parts_of(R"([{"Items": [1, 2]}, {"Items": [3]}])", {"Items.*", "*.Items.*"});
  REQUIRE(pages.parts.size() == 3);
  CHECK(pages.parts[2].first == "//Items/");
  CHECK(pages.parts[2].second.text == "3");
}

TEST_CASE("what is no JSON is said at its place, and a value that nobody could hold is refused") {
  const Taken cut = parts_of("{\"a\": 1,\n \"b\": ", {"a"});
  REQUIRE(cut.mistakes.size() == 1);
  CHECK(cut.mistakes.front().at.line == 2);
  CHECK_THAT(cut.mistakes.front().what, Contains("no JSON") && Contains("end of input"));
  CHECK(cut.parts.size() == 1);
  CHECK(parts_of("", {"a"}).mistakes.size() == 1);
  std::string deep;
  for (int k = 0; k < 100; ++k) deep += "[";
  deep += "1";
  for (int k = 0; k < 100; ++k) deep += "]";
  CHECK(parts_of(deep, {"a"}).mistakes.empty());  // passed over
  const Taken refused = parts_of(deep, {""});
  REQUIRE(refused.mistakes.size() == 1);
  CHECK_THAT(refused.mistakes.front().what, Contains("nested deeper"));
}
