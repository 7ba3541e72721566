#include "sim/base/text/base64.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("base64 is that of RFC 4648, section 10") {
  const std::pair<const char*, const char*> cases[]{{"", ""},
                                                    {"f", "Zg=="},
                                                    {"fo", "Zm8="},
                                                    {"foo", "Zm9v"},
                                                    {"foob", "Zm9vYg=="},
                                                    {"fooba", "Zm9vYmE="},
                                                    {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    CHECK(to_base64(bytes) == text);
    CHECK(from_base64(text) == std::string(bytes));
  }
}

TEST_CASE("every sequence of bytes comes back from its text") {
  CHECK(rc::check(
      [](const std::string& bytes) { RC_ASSERT(from_base64(to_base64(bytes)) == bytes); }));
}

TEST_CASE("what is no base64 gives nothing") {
  for (const char* text : {"Z", "Zg=", "Zg", "Zg==Zg==", "Z===", "====", "Zm-v", "Zm9v\n", "Zh=="})
    CHECK_FALSE(from_base64(text));
}
