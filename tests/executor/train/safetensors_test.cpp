#include "executor/train/checkpoint/safetensors.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <sstream>

#include "checkpoint_support.h"
#include "executor/train/checkpoint/durable_file.h"
#include "support/skip.h"

namespace reckon {
namespace {

using namespace reckon::test;

std::string refusal_of(const std::string& text) {
  const auto read = parse_safetensors(text);
  return read ? "" : read.error();
}

/// A header of one or two tensors, as text.
std::string one(const std::string& about) { return R"({"a":)" + about + "}"; }
std::string two(const std::string& a, const std::string& b) {
  return R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + a +
         R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + b + "}}";
}

TEST_CASE("a header that is written reads as the same, and aligns the data to 8 bytes") {
  const SafetensorsHeader header{.metadata = {{"format", "pt"}},
                                 .tensors = {{"z", ElementType::f64, {}, 0, 8},
                                             {"a", ElementType::f32, {2, 3}, 8, 32},
                                             {"b", ElementType::boolean, {0, 3}, 32, 32},
                                             {"c", ElementType::bf16, {1}, 32, 34}}};
  const std::string text = safetensors_text(header);
  CHECK((8 + text.size()) % 8 == 0);
  CHECK(text.starts_with(R"({"__metadata__":{"format":"pt"},"a":{"data_offsets":[8,32],)"));
  const auto read = parse_safetensors(text);
  REQUIRE(read);
  CHECK(*read == header);
}

TEST_CASE("what the format does not allow is refused with its reason") {
  const std::string good = one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})");
  CHECK(refusal_of(good).empty());
  CHECK(refusal_of(good + "   ").empty());
  CHECK(refusal_of("{}").empty());
  CHECK(refusal_of(" " + good) == "it does not begin with '{'");
  CHECK(refusal_of("").starts_with("it does not begin"));
  CHECK(contains(refusal_of(good + "x"), "parse error"));
  CHECK(contains(refusal_of(good.substr(0, good.size() - 3)), "parse error"));
  CHECK(refusal_of(R"({"a":1,"a":2})") == "'a' stands twice");
  CHECK(contains(refusal_of(R"({"a":1})"), "at()"));
  CHECK(contains(refusal_of(R"({"__metadata__":{"a":1}})"), "must be string"));
  CHECK(refusal_of(one(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})")) ==
        R"('a' has the type "F31")");
  CHECK(refusal_of(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})")) ==
        "'a' has the shape [-2]");
  CHECK(contains(refusal_of(one(R"({"dtype":"F32","shape":[1e3],"data_offsets":[0,8]})")),
                 "has the shape"));
  CHECK(contains(
      refusal_of(one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})")),
      "has the shape"));
  CHECK(refusal_of(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})")) ==
        "'a' has the offsets [0,9] for 8 bytes");
  CHECK(refusal_of(one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})")) ==
        "'a' has the offsets [8,0] for 8 bytes");
  CHECK(refusal_of(one(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})")) ==
        "'a' begins at byte 4 of the data, not at 0: a hole");
  CHECK(refusal_of(two("[0,8]", "[12,20]")) ==
        "'b' begins at byte 12 of the data, not at 8: a hole");
  CHECK(refusal_of(two("[0,8]", "[4,12]")) ==
        "'b' begins at byte 4 of the data, not at 8: an overlap");
  CHECK(refusal_of(two("[8,16]", "[0,8]")).empty());
  CHECK(refusal_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                   R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})") ==
        "'b' is not aligned to its elements");
}

TEST_CASE("a checkpoint is opened by a reader that knows the safetensors format alone") {
  if (std::system("python3 -c 0 > /dev/null 2>&1") != 0) skip_test("no python3");
  const Scratch scratch;
  save_toy(scratch.path(), 7);
  const auto file = shard_file(set_directory(scratch.path(), 7), 0), out = scratch.path() / "out";
  const auto read = [&](const std::string& name) {
    const std::string command = "python3 " RECKON_SOURCE_DIR
                                "/docs/examples/read_safetensors.py '" +
                                file.string() + "' " + name + " > '" + out.string() + "' 2>&1";
    const bool ended_well = std::system(command.c_str()) == 0;
    const std::string text = read_file_text(out);
    return ended_well ? text : "failed: " + text;
  };
  const std::string listed = read("");
  INFO(listed);
  CHECK(contains(listed, " F32  [40, 25]  [0:40, 0:25]\n"));
  CHECK(contains(listed, " F32  [500]  [0:500]\n"));
  std::istringstream numbers(read("weights"));
  std::vector<float> values;
  for (float value = 0; numbers >> value;) values.push_back(value);
  CHECK(values == ToyState::at(7, 0).weights);
}

}  // namespace
}  // namespace reckon
