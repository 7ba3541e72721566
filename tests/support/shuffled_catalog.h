#pragma once
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

// A catalog directory whose files hold the same rows and entries in another order.
namespace reckon::test {

inline std::string read_bytes(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line + "\n");
  return lines;
}

/// The rows behind the header of a CSV file, or the entries of a YAML file, in another order.
inline std::string shuffled_text(const std::filesystem::path& file, std::mt19937& generator) {
  const bool csv = file.extension() == ".csv";
  std::vector<std::string> parts;
  std::string head;
  bool header_read = false;
  for (const std::string& line : lines_of(read_bytes(file))) {
    const bool comment = line.starts_with("#");
    if (csv ? !header_read || comment : comment) {
      if (csv || parts.empty()) head += line;
      header_read = header_read || !comment;
    } else if (csv || (line[0] != ' ' && line[0] != '\n')) {
      parts.push_back(line);
    } else {
      parts.back() += line;
    }
  }
  std::shuffle(parts.begin(), parts.end(), generator);
  for (const std::string& part : parts) head += part;
  return head;
}

class ShuffledCatalog {
 public:
  ShuffledCatalog(const std::filesystem::path& original, std::uint32_t seed)
      : copy_(std::filesystem::temp_directory_path() /
              ("reckon-order-" + std::to_string(::getpid()) + "-" + std::to_string(seed))) {
    std::filesystem::create_directories(copy_);
    for (const auto& file : std::filesystem::directory_iterator(original)) {
      std::mt19937 generator(seed);  // of its own for each file: they come in any order
      const auto extension = file.path().extension();
      if (extension != ".csv" && extension != ".yaml") continue;
      const std::string text = shuffled_text(file.path(), generator);
      moved_ = moved_ || text != read_bytes(file.path());
      std::ofstream(copy_ / file.path().filename(), std::ios::binary) << text;
    }
  }
  ~ShuffledCatalog() {
    std::error_code ignored;
    std::filesystem::remove_all(copy_, ignored);
  }
  ShuffledCatalog(const ShuffledCatalog&) = delete;
  ShuffledCatalog& operator=(const ShuffledCatalog&) = delete;

  const std::filesystem::path& directory() const { return copy_; }
  bool moved() const { return moved_; }  // rows really stand elsewhere

 private:
  std::filesystem::path copy_;
  bool moved_ = false;
};

}  // namespace reckon::test
