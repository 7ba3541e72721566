#pragma once
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace reckon::test {

/// Compares `text` with a file of the tests' tree ("report/golden/forecast.txt"). UPDATE_GOLDEN=1
/// writes the file instead: the change is then reviewed as a diff.
inline void check_golden(const std::string& file, const std::string& text) {
  const std::string path = std::string(RECKON_SOURCE_DIR) + "/tests/" + file;
  if (const char* update = std::getenv("UPDATE_GOLDEN"); update && *update == '1') {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  INFO("golden file " << file << "; UPDATE_GOLDEN=1 writes it");
  REQUIRE(in);
  const std::string expected{std::istreambuf_iterator<char>(in), {}};
  CHECK(text == expected);
}

}  // namespace reckon::test
